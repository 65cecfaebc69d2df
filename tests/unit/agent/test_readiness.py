"""Readiness lists every failure, and nothing that isn't one (upgrade-run.md §10)."""

from dataclasses import replace

import pytest

from support.records import COVERAGE, READY, VALIDATION, check
from upgraderun_protocol.ids import Sha256
from upgraderun_runner.agent.readiness import Candidate, failures_of
from upgraderun_runner.ecosystems.base import Finding, GateViolation, LineJudgement

REPAIRED = replace(READY, sources=("app.py",), lines=2, coverage=COVERAGE)


def test_candidate_with_all_evidence_is_ready() -> None:
    assert () == failures_of(READY)
    assert () == failures_of(REPAIRED)


@pytest.mark.parametrize(
    ("candidate", "code"),
    [
        (replace(READY, journaled_tree="f" * 40), "candidate_tree_mismatch"),
        (replace(READY, validation=None), "validation_not_bound"),
        (replace(READY, validation=replace(VALIDATION, tree="f" * 40)), "validation_not_bound"),
        (replace(READY, config_hash=Sha256("f" * 64)), "validation_not_bound"),
        (replace(READY, images=("other",)), "validation_not_bound"),
        (
            replace(
                READY,
                validation=replace(VALIDATION, conclusive=False, checks=(check("test", False),)),
            ),
            "validation_inconclusive",
        ),
        (
            replace(READY, validation=replace(VALIDATION, introduced=(Finding("k", 1, "d"),))),
            "validation_regressed",
        ),
        (replace(READY, violations=(GateViolation("c", "s", "e", "o"),)), "manifest_violation"),
        (replace(READY, protected=(".github/x.yml",)), "protected_file_changed"),
        (replace(REPAIRED, lines=401), "scope_exceeded"),
        (replace(REPAIRED, coverage=None), "repair_not_exercised"),
        (replace(REPAIRED, coverage=replace(COVERAGE, tree="f" * 40)), "repair_not_exercised"),
        (replace(REPAIRED, coverage=replace(COVERAGE, problem="none")), "repair_not_exercised"),
        (
            replace(
                REPAIRED,
                coverage=replace(
                    COVERAGE, judgements=(LineJudgement("app.py", 3, 4, False, "not run"),)
                ),
            ),
            "repair_not_exercised",
        ),
    ],
)
def test_one_broken_rule_is_one_failure(candidate: Candidate, code: str) -> None:
    assert [code] == [failure.code for failure in failures_of(candidate)]


def test_all_failures_are_listed_at_once() -> None:
    broken = replace(
        REPAIRED,
        journaled_tree=None,
        validation=None,
        protected=("a", "b"),
        lines=999,
        coverage=None,
    )

    codes = [failure.code for failure in failures_of(broken)]

    assert [
        "candidate_tree_mismatch",
        "validation_not_bound",
        "protected_file_changed",
        "protected_file_changed",
        "scope_exceeded",
        "repair_not_exercised",
    ] == codes
