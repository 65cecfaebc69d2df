"""From the intent of a pod to its recorded UID; cut anywhere, the same rules go on."""

from typing import Any

import pytest

from support.scenes import LEADER, UID, Scene, a_pod, at
from upgraderun_operator.decide.decision import Decision, Look, Need, Pause
from upgraderun_operator.decide.effects import (
    Append,
    CreateClaim,
    CreatePublisherPod,
    CreateRunLease,
    CreateRunnerPod,
)
from upgraderun_operator.decide.readings import ABSENT, NOT_READ, Unreadable
from upgraderun_operator.decide.run import decide
from upgraderun_operator.decide.views import ChildView
from upgraderun_operator.journal.facts import Facts, Wait

CLAIM = ChildView("run-3f1c9a2b", "claim", UID)
LEASE = ChildView("run-3f1c9a2b", "lease", UID)


def first() -> Scene:
    return Scene().admitted().planned("a1")


def delivery() -> Scene:
    return Scene().frozen().asked().granted().planned("d1")


def ends_in(decision: Decision) -> list[tuple[str, str]]:
    assert isinstance(decision.what, Append)
    return [(draft.id, draft.state.value) for draft in decision.what.change.drafts]


def test_the_pod_is_looked_for_first_under_its_planned_name() -> None:
    assert Look(Need.POD) == decide(first().seen()).what


def test_our_pod_is_adopted_and_its_uid_recorded() -> None:
    decision = decide(first().seen(pod=a_pod("a1")))
    assert isinstance(decision.what, Append)
    (entry,) = decision.what.change.drafts
    assert (entry.id, dict(entry.data)) == ("a1", {"podUID": "pod-a1"})
    assert decision.what.records == "runner_pod"
    assert [event.reason for event in decision.what.events] == ["RunnerStarted"]


def test_a_publishers_pod_is_recorded_as_a_delivery() -> None:
    decision = decide(delivery().seen(pod=a_pod("d1")))
    assert isinstance(decision.what, Append)
    assert decision.what.change.drafts[0].kind == "delivery"
    assert decision.what.records == "publisher_pod"


@pytest.mark.parametrize(("scene", "kind"), [(first(), "attempt"), (delivery(), "delivery")])
def test_a_strangers_pod_is_a_conflict_and_stays(scene: Scene, kind: str) -> None:
    tag = "a1" if kind == "attempt" else "d1"
    stranger = a_pod(tag, owner_uid=None)
    decision = decide(scene.seen(pod=stranger, record=ABSENT, report=ABSENT))
    assert decision.reason == "ReportWritten"
    shown = {"record": ABSENT, "report": Unreadable("cluster", "x")}
    assert isinstance(decide(scene.seen(pod=stranger, **shown)).what, Pause)


def test_a_conflict_is_one_append_of_entry_and_outcome() -> None:
    from upgraderun_operator.decide.views import ReportView
    from upgraderun_protocol.ids import ResourceVersion

    shown = ReportView("r", UID, "ClusterConflict", None, ResourceVersion("1"))
    stranger = a_pod("a1", owner_uid="other")
    decision = decide(first().seen(pod=stranger, record=ABSENT, report=shown))
    assert [("a1", "conflict"), ("outcome", "done")] == ends_in(decision)
    assert isinstance(decision.what, Append)
    assert decision.what.change.drafts[1].data["conflict"] == "foreign_pod"
    assert decision.what.events[0].reason == "Conflict"
    assert decision.what.name == "outcome"


class TestVolume:
    """A runner needs the run's own volume."""

    def test_is_made_if_missing(self) -> None:
        decision = decide(first().seen(pod=ABSENT, claim=ABSENT))
        assert isinstance(decision.what, CreateClaim)
        assert decision.what.manifest["metadata"]["name"] == "run-3f1c9a2b"

    def test_of_a_stranger_is_a_conflict(self) -> None:
        foreign = ChildView("run-3f1c9a2b", "x", "other")
        decision = decide(first().seen(pod=ABSENT, claim=foreign))
        assert Look(Need.RECORD) == decision.what

    def test_that_is_being_deleted_is_waited_for(self) -> None:
        going = ChildView("run-3f1c9a2b", "x", UID, deleted_at=at(-5))
        decision = decide(first().seen(pod=ABSENT, claim=going))
        assert decision.reason == "StorageUnavailable"
        assert isinstance(decision.what, Pause)
        assert decision.what.shown

    def test_isnt_made_for_a_publisher(self) -> None:
        assert isinstance(decide(delivery().seen(pod=ABSENT, lease=ABSENT)).what, CreateRunLease)

    def test_of_the_first_runner_is_made_without_a_look(self) -> None:
        assert isinstance(decide(first().seen(pod=ABSENT)).what, CreateClaim)

    def test_of_a_later_runner_is_looked_for(self) -> None:
        second = Scene().working().end(cause="crashed").planned("a2")
        assert Look(Need.CLAIM) == decide(second.seen(pod=ABSENT)).what
        assert Look(Need.LEASE) == decide(second.seen(pod=ABSENT, claim=CLAIM)).what

    def test_of_a_run_that_shows_a_wait_is_looked_for(self) -> None:
        waits = first()
        waits.facts = Facts(leader_epoch=LEADER, wait=Wait("StorageUnavailable", "m", at(-5)))
        assert Look(Need.CLAIM) == decide(waits.seen(pod=ABSENT)).what

    def test_is_built_from_the_frozen_policy(self) -> None:
        assert Look(Need.FROZEN) == decide(first().seen(pod=ABSENT, frozen=NOT_READ)).what


class TestLease:
    """The run Lease stands before the pod that will hold it."""

    def test_is_made_if_missing(self) -> None:
        decision = decide(first().seen(pod=ABSENT, claim=CLAIM, lease=ABSENT))
        assert isinstance(decision.what, CreateRunLease)

    def test_of_the_first_runner_is_made_without_a_look(self) -> None:
        assert isinstance(decide(first().seen(pod=ABSENT, claim=CLAIM)).what, CreateRunLease)

    def test_of_a_publisher_is_the_runners_and_looked_for(self) -> None:
        assert Look(Need.LEASE) == decide(delivery().seen(pod=ABSENT)).what

    def test_of_a_stranger_is_a_conflict(self) -> None:
        foreign = ChildView("run-3f1c9a2b", "x", None)
        decision = decide(first().seen(pod=ABSENT, claim=CLAIM, lease=foreign))
        assert Look(Need.RECORD) == decision.what


@pytest.mark.parametrize(
    ("scene", "effect"), [(first(), CreateRunnerPod), (delivery(), CreatePublisherPod)]
)
def test_the_pod_is_made_when_everything_else_is_there(scene: Scene, effect: type[Any]) -> None:
    decision = decide(scene.seen(pod=ABSENT, claim=CLAIM, lease=LEASE))
    assert isinstance(decision.what, effect)


def test_the_frozen_policy_is_read_before_a_pod_is_built() -> None:
    from upgraderun_operator.decide.readings import NOT_READ

    seen = delivery().seen(pod=ABSENT, lease=LEASE, frozen=NOT_READ)
    assert Look(Need.FROZEN) == decide(seen).what
