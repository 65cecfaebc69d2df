"""Versions that a pass went on from: equality, bounded, dropped with the run."""

from upgraderun_operator.keys import Key, of_pod
from upgraderun_operator.observe.seen import VERSIONS_MAX, SeenVersions

RUN, OTHER = Key("team", "run"), Key("team", "other")


def test_only_exactly_this_version_of_this_run_is_known() -> None:
    seen = SeenVersions()
    seen.note(RUN, "7")
    assert seen.has(RUN, "7")
    assert not seen.has(RUN, "6")
    assert not seen.has(OTHER, "7")
    assert not seen.has(RUN, None)


def test_a_run_and_its_pod_may_have_the_same_number() -> None:
    seen = SeenVersions()
    seen.note(RUN, "7")
    assert not seen.has(RUN, of_pod("7"))
    seen.note(RUN, of_pod("8"))
    assert seen.has(RUN, of_pod("8"))
    assert not seen.has(RUN, "8")


def test_a_few_versions_are_kept() -> None:
    seen = SeenVersions()
    for number in range(VERSIONS_MAX + 1):
        seen.note(RUN, str(number))
        seen.note(RUN, str(number))
    assert not seen.has(RUN, "0")
    assert seen.has(RUN, "1")
    assert seen.has(RUN, str(VERSIONS_MAX))


def test_a_run_that_is_over_is_forgotten() -> None:
    seen = SeenVersions()
    seen.note(RUN, "7")
    seen.forget(RUN)
    seen.forget(OTHER)
    assert not seen.has(RUN, "7")
