"""Guards compare null-safely with the version that is written (runner-protocol.md §1.3)."""

from dataclasses import replace

import pytest

from support.journal_story import (
    POD_UID,
    Story,
    admit,
    answer,
    ask,
    end,
    git_id,
    incarnation,
    outcome,
    pod,
    push,
)
from upgraderun_operator.journal.facts import Facts
from upgraderun_operator.journal.guards import (
    AttemptIs,
    EntryAbsent,
    EpochIs,
    Guard,
    GuardFailure,
    LeaderEpochAtMost,
    MayPublish,
    NobodyWrites,
    NoVerdict,
    SeqIs,
    StampIs,
    WriterIs,
    first_failure,
)
from upgraderun_operator.journal.run import RunView
from upgraderun_protocol.entries import EntryState
from upgraderun_protocol.ids import EntryId, Epoch, PodUid, WriterTag

A1, A2, D1 = WriterTag("a1"), WriterTag("a2"), WriterTag("d1")
PUSH, PR, COMMIT = EntryId("push/1"), EntryId("pr/1"), git_id("d")
UID_A1, UID_D1 = PodUid(f"{POD_UID}-a1"), PodUid(f"{POD_UID}-d1")


def empty() -> RunView:
    return Story().add(admit())


def running() -> RunView:
    story = Story()
    story.add(admit(), pod("a1"), pod("a1", "done"))
    return story.add(incarnation("a1", 4), epoch=4)


def planned() -> RunView:
    return Story().add(admit(), pod("a1"))


def publishing() -> RunView:
    story = Story()
    story.run_to_frozen()
    story.add(end("a1", "verdict"), ask())
    return story.add(answer("approved"), push(), pod("d1"), pod("d1", "done"))


def stamped(view: RunView) -> RunView:
    return replace(view, facts=Facts(Epoch(7), "2026-11-30T08:00:00Z", "2026-11-30T09:00:00Z"))


def wishing(wish: str) -> RunView:
    view = publishing()
    return replace(view, raw={**view.raw, "spec": {**view.spec, wish: True}})


def rejected() -> RunView:
    story = Story()
    story.run_to_frozen()
    return story.add(end("a1", "verdict"), ask(), answer("rejected"))


def ended() -> RunView:
    story = Story()
    story.add(admit())
    return story.add(outcome("cancelled"))


HOLDS = [
    (AttemptIs(A1, UID_A1), running()),
    (AttemptIs(A1, None), planned()),
    (AttemptIs(D1, UID_D1), publishing()),
    (WriterIs(UID_A1), running()),
    (WriterIs(UID_D1), publishing()),
    (NobodyWrites(), empty()),
    (EpochIs(Epoch(4)), running()),
    (LeaderEpochAtMost(Epoch(1)), running()),
    (LeaderEpochAtMost(Epoch(7)), stamped(running())),
    (StampIs(A1, None), running()),
    (StampIs(A1, "2026-11-30T08:00:00Z"), stamped(running())),
    (StampIs(D1, "2026-11-30T09:00:00Z"), stamped(publishing())),
    (NoVerdict(), running()),
    (EntryAbsent(EntryId("a2"), EntryState.INTENT), running()),
    (EntryAbsent(EntryId("a1"), EntryState.DONE), planned()),
    (EntryAbsent(EntryId("a1"), EntryState.CONFLICT), running()),
    (SeqIs(1), empty()),
    (MayPublish(PR, COMMIT), publishing()),
    (MayPublish(PUSH, "another"), publishing()),
    (MayPublish(PUSH, COMMIT), wishing("suspend")),
    (MayPublish(PUSH, COMMIT), wishing("cancel")),
]

FAILS = [
    (AttemptIs(A1, UID_A1), empty(), "no pod"),
    (AttemptIs(A2, UID_A1), running(), f"a1 {UID_A1}"),
    (AttemptIs(A1, None), running(), f"a1 {UID_A1}"),
    (AttemptIs(A1, UID_A1), planned(), "a1 None"),
    (WriterIs(UID_A1), empty(), "no writer"),
    (WriterIs(UID_A1), publishing(), f"d1 {UID_D1}"),
    (NobodyWrites(), running(), "a1"),
    (EpochIs(Epoch(3)), running(), "epoch 4"),
    (LeaderEpochAtMost(Epoch(6)), stamped(running()), "leader epoch 7"),
    (StampIs(A1, "2026-11-30T08:00:00Z"), running(), "a1, stamp None"),
    (StampIs(A1, None), stamped(running()), "a1, stamp 2026-11-30T08:00:00Z"),
    (StampIs(A2, None), running(), "a1, stamp None"),
    (StampIs(A1, None), empty(), "no pod, stamp None"),
    (NoVerdict(), ended(), "outcome cancelled"),
    (EntryAbsent(EntryId("a1"), EntryState.INTENT), running(), "entry is there"),
    (EntryAbsent(EntryId("a1"), EntryState.DONE), running(), "entry is there"),
    (SeqIs(2), empty(), "seq 1"),
    (MayPublish(PR, COMMIT), wishing("suspend"), "somebody wants the run to pause or to end"),
    (MayPublish(PR, COMMIT), wishing("cancel"), "somebody wants the run to pause or to end"),
    (MayPublish(PUSH, COMMIT), rejected(), "no grant stands for a proposal"),
    (MayPublish(PUSH, COMMIT), running(), "no grant stands for a proposal"),
    (MayPublish(PR, "another"), publishing(), f"the grant is for commit {COMMIT}"),
]


@pytest.mark.parametrize(("guard", "view"), HOLDS, ids=str)
def test_a_guard_holds_on_what_its_caller_saw(guard: Guard, view: RunView) -> None:
    assert first_failure([guard], view) is None


@pytest.mark.parametrize(("guard", "view", "found"), FAILS, ids=str)
def test_a_guard_fails_on_anything_else(guard: Guard, view: RunView, found: str) -> None:
    assert first_failure([guard], view) == GuardFailure(guard, found)


def test_the_first_failure_is_told() -> None:
    guards: list[Guard] = [NoVerdict(), SeqIs(9), EpochIs(Epoch(9))]

    failure = first_failure(guards, running())

    assert failure is not None
    assert failure.guard == SeqIs(9)
