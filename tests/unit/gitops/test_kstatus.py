"""What kstatus makes of a run in every state: GitOps tools wait for it by these rules (DESIGN §3)."""

import pytest

from support import runstates
from support.kstatus import CURRENT, FAILED, IN_PROGRESS, TERMINATING, judge
from upgraderun_operator.model.conditions import STALLS, WAITS, StalledReason, WaitReason
from upgraderun_operator.model.crds import definitions
from upgraderun_protocol.outcomes import OUTCOMES


@pytest.mark.parametrize("name", OUTCOMES)
def test_an_end_is_current_or_failed_once_it_is_cleaned_up(name: str) -> None:
    row = OUTCOMES[name]

    verdict, message = judge(runstates.ended(name))

    assert (CURRENT if row.succeeded else FAILED) == verdict
    assert row.succeeded or f"{row.reason}: {row.next_step}" == message
    assert IN_PROGRESS == judge(runstates.finalizing(name))[0]


@pytest.mark.parametrize("reason", WAITS)
def test_a_wait_is_in_progress(reason: WaitReason) -> None:
    assert (IN_PROGRESS, f"waits: {reason}") == judge(runstates.waiting(reason))


@pytest.mark.parametrize("reason", STALLS)
def test_what_needs_a_person_has_failed(reason: StalledReason) -> None:
    assert (FAILED, f"waits: {reason}") == judge(runstates.waiting(reason))


@pytest.mark.parametrize("state", [runstates.queued, runstates.asked, runstates.suspended])
def test_what_may_still_go_on_is_in_progress(state: object) -> None:
    assert callable(state)

    verdict, message = judge(state())

    assert IN_PROGRESS == verdict
    assert message


@pytest.mark.parametrize("too_new", [False, True])
def test_a_journal_that_cannot_be_used_has_failed(*, too_new: bool) -> None:
    assert FAILED == judge(runstates.unreadable(too_new=too_new))[0]


def test_a_changed_wish_is_in_progress_until_it_was_seen() -> None:
    done = runstates.ended("proposal_published")
    done["metadata"]["generation"] = 2

    assert IN_PROGRESS == judge(done)[0]


def test_a_new_run_is_in_progress_before_any_operator_saw_it() -> None:
    """The CRD's default of `status` says so: without it a new run would count as settled."""
    version = definitions()["upgraderuns"]["spec"]["versions"][0]
    default = version["schema"]["openAPIV3Schema"]["properties"]["status"]["default"]

    assert runstates.new()["status"] == default
    assert IN_PROGRESS == judge(runstates.new())[0]


def test_a_deleted_run_is_terminating() -> None:
    run = runstates.queued()
    run["metadata"]["deletionTimestamp"] = "2026-11-30T08:00:00Z"

    assert TERMINATING == judge(run)[0]


@pytest.mark.parametrize(
    "run",
    [
        *(runstates.waiting(reason) for reason in (*WAITS, *STALLS)),
        *(runstates.ended(name) for name in OUTCOMES),
        *(runstates.unreadable(too_new=flag) for flag in (False, True)),
    ],
)
def test_it_never_moves_and_stands_still_at_once(run: runstates.Run) -> None:
    """Kstatus takes the first of the two, so the order would decide."""
    true = {item["type"] for item in run["status"]["conditions"] if item["status"] == "True"}

    assert not {"Reconciling", "Stalled"} <= true
