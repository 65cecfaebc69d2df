"""The cases of real libraries keep their breadth; their page is compared in tests/unit/model/test_generated.py."""

import re
from collections import Counter

import pytest

from support.corpus.cases import CASES
from support.corpus.declared import Trait
from support.corpus.found import FOUND
from support.corpus.known import KNOWN

CASES_MIN = 12
BREAKING_MIN = 4
TRAIT_MIN = 3
BACKENDS = {"flit", "hatchling", "hatch-vcs", "setuptools", "setuptools-scm", "pdm", "poetry-core"}


def test_a_name_stands_for_one_case() -> None:
    assert [] == [name for name, count in Counter(case.name for case in CASES).items() if count > 1]
    assert (*KNOWN, *FOUND) == CASES


def test_enough_of_them_break_and_enough_do_not() -> None:
    breaking = [case for case in FOUND if case.answer.outcome != "proposal_prepared"]

    assert len(FOUND) >= CASES_MIN
    assert len(breaking) >= BREAKING_MIN
    assert len(FOUND) - len(breaking) >= BREAKING_MIN


@pytest.mark.parametrize("trait", Trait)
def test_each_trait_has_its_cases(trait: Trait) -> None:
    libraries = {case.sdist for case in FOUND if trait in case.traits}

    assert len(libraries) >= TRAIT_MIN


def test_every_usual_build_back_end_is_there() -> None:
    assert {case.backend for case in CASES} == BACKENDS


def test_what_is_asked_stays_as_it_is() -> None:
    """A release by its hash, and a version that is named: the registry can't change the answer."""
    for case in FOUND:
        assert re.fullmatch("[0-9a-f]{64}", case.sdist.sha256), case.name
        assert {"dependency", "version"} <= set(case.upgrade), case.name
