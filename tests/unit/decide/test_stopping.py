"""Cancel, deadline and suspend in every state (runner-protocol.md §9)."""

from dataclasses import replace
from typing import Any

import pytest

from support.scenes import COMMIT, FROZEN_COMMIT, UID, Scene, a_pod, at, ended
from upgraderun_operator.decide.decision import Decision, Look, Need, Pause
from upgraderun_operator.decide.effects import (
    Append,
    DeletePod,
    DeleteRunLease,
    ReleaseRepositoryLease,
)
from upgraderun_operator.decide.readings import ABSENT, Unreadable
from upgraderun_operator.decide.run import decide
from upgraderun_operator.decide.views import (
    ChildView,
    DestinationRefused,
    FoundPull,
    Holder,
    RemoteView,
    ReportView,
    RepositoryLeaseView,
)
from upgraderun_operator.journal.facts import Wait
from upgraderun_protocol.ids import ResourceVersion

CANCELLED = ReportView("r", UID, "Cancelled", None, ResourceVersion("1"))
OURS = RepositoryLeaseView("repo-1", Holder.OURS)
LEASE = ChildView("run-3f1c9a2b", "lease", UID)


def entries(decision: Decision) -> dict[str, dict[str, str]]:
    assert isinstance(decision.what, Append)
    return {
        f"{draft.id} {draft.state.value}": dict(draft.data) for draft in decision.what.change.drafts
    }


def cancelled(scene: Scene, **parts: Any) -> Decision:
    scene.spec["cancel"] = True
    return decide(scene.seen(**{"record": ABSENT, "report": CANCELLED, **parts}))


@pytest.mark.parametrize(
    "scene",
    [
        Scene(),
        Scene().admitted().planned(),
        Scene().working(),
        Scene().frozen(),
        Scene().frozen().asked(),
        Scene(suspend=True).working().end(cause="yield", reason="suspended"),
    ],
    ids=["queued", "provisioning", "running", "frozen", "asked", "suspended"],
)
def test_before_a_push_a_cancelled_run_ends_at_once(scene: Scene) -> None:
    found = entries(cancelled(scene))
    assert found["outcome done"]["outcome"] == "cancelled"
    assert "nothing was pushed" in found["outcome done"]["message"]


def test_a_cancel_in_the_loss_window_needs_no_stamp() -> None:
    scene = Scene().working()
    scene.facts = replace(scene.facts, attempt_lost_at=at(-10))
    assert "outcome done" in entries(cancelled(scene))


class TestCancelWhilePublishing:
    """No new effect; what exists is looked up, never repeated."""

    def test_stops_the_publisher_first(self) -> None:
        assert Look(Need.POD) == cancelled(Scene().publishing()).what
        decision = cancelled(Scene().publishing(), pod=a_pod("d1"))
        assert DeletePod("run-3f1c9a2b-d1", a_pod("d1").uid) == decision.what

    def test_waits_until_the_publisher_is_gone(self) -> None:
        decision = cancelled(Scene().publishing(), pod=a_pod("d1", deleted_at=at(-5)))
        assert Pause(5.0) == decision.what

    @pytest.mark.parametrize("pod", [ABSENT, a_pod("d1", "other"), a_pod("d1", owner_uid="x")])
    def test_ends_the_delivery_when_its_pod_is_gone(self, pod: Any) -> None:
        found = entries(cancelled(Scene().publishing(), pod=pod))
        assert found["d1/end done"]["cause"] == "stopped"

    def scene(self) -> Scene:
        return Scene().publishing().end("d1", "stopped")

    def test_looks_at_the_remote(self) -> None:
        assert Look(Need.OLD_PODS) == cancelled(self.scene()).what
        assert Look(Need.REMOTE) == cancelled(self.scene(), old_pods=()).what

    def test_waits_for_a_silent_forge(self) -> None:
        silent = Unreadable("forge", "timeout")
        decision = cancelled(self.scene(), old_pods=(), remote=silent)
        assert Pause(backoff=True) == decision.what

    def look(self, remote: Any, scene: Scene | None = None) -> dict[str, dict[str, str]]:
        return entries(cancelled(scene or self.scene(), old_pods=(), remote=remote))

    def test_finds_the_pull_request_and_is_too_late(self) -> None:
        pull = FoundPull(12, "open", FROZEN_COMMIT, ours=True)
        found = self.look(RemoteView(FROZEN_COMMIT, (pull,)))
        assert found["push/1 done"] == {"commit": FROZEN_COMMIT, "found": "true"}
        assert found["pr/1 done"]["url"] == "https://git.example/team/lib/pull/12"
        assert found["outcome done"]["outcome"] == "proposal_published"

    def test_settles_an_open_pull_request_intent(self) -> None:
        scene = Scene().publishing()
        scene.entry("push/1", "push", data={"commit": FROZEN_COMMIT})
        intent = {"branch": "b", "commit": FROZEN_COMMIT}
        from upgraderun_protocol.entries import EntryState

        scene.entry("pr/1", "pullRequest", EntryState.INTENT, intent).end("d1", "stopped")
        pull = FoundPull(12, "merged", FROZEN_COMMIT, ours=True)
        found = self.look(RemoteView(FROZEN_COMMIT, (pull,)), scene)
        assert list(found) == ["pr/1 done", "outcome done"]

    def test_knows_a_recorded_pull_request(self) -> None:
        scene = Scene().publishing()
        scene.entry("push/1", "push", data={"commit": FROZEN_COMMIT})
        pr = {"number": "12", "state": "open", "commit": FROZEN_COMMIT, "url": "u"}
        scene.entry("pr/1", "pullRequest", data=pr).end("d1", "stopped")
        pull = FoundPull(12, "open", FROZEN_COMMIT, ours=True)
        assert list(self.look(RemoteView(FROZEN_COMMIT, (pull,)), scene)) == ["outcome done"]

    @pytest.mark.parametrize(
        "pull",
        [
            FoundPull(1, "open", FROZEN_COMMIT, ours=False),
            FoundPull(1, "closed", FROZEN_COMMIT, ours=True),
            FoundPull(1, "open", COMMIT, ours=True),
        ],
    )
    def test_takes_no_other_pull_request_for_ours(self, pull: FoundPull) -> None:
        found = self.look(RemoteView(FROZEN_COMMIT, (pull,)))
        assert found["outcome done"]["outcome"] == "cancelled"
        assert f"stays at {FROZEN_COMMIT}" in found["outcome done"]["message"]

    @pytest.mark.parametrize("commit", [None, COMMIT])
    def test_interrupts_a_push_that_isnt_there(self, commit: Any) -> None:
        found = self.look(RemoteView(commit))
        assert found["push/1 interrupted"]["reason"] == "cancelled"
        assert found["outcome done"]["outcome"] == "cancelled"

    def test_says_when_the_forge_refuses_to_tell(self) -> None:
        found = self.look(DestinationRefused("401"))
        assert "isn't known: 401" in found["outcome done"]["message"]


class TestDeadline:
    """Time with a live attempt is bounded."""

    def test_ends_the_run(self) -> None:
        shown = ReportView("r", UID, "DeadlineExceeded", None, ResourceVersion("1"))
        scene = Scene(activeDeadlineSeconds=500).working()
        found = entries(decide(scene.seen(record=ABSENT, report=shown)))
        assert found["outcome done"]["outcome"] == "deadline_exceeded"

    def test_adds_up_over_attempts_and_not_over_waiting(self) -> None:
        scene = Scene(activeDeadlineSeconds=100).working()
        scene.end(cause="yield", reason="suspended")
        scene.clock = -60
        scene.working("a2")
        decision = decide(scene.seen(pod=a_pod("a2")))
        assert isinstance(decision.what, Pause)
        assert decision.what.after_seconds == 100 - 30 - 50

    def test_doesnt_count_a_publisher(self) -> None:
        scene = Scene(activeDeadlineSeconds=60).publishing()
        assert Look(Need.POD) == decide(scene.seen()).what

    def test_ignores_a_time_that_cant_be_read(self) -> None:
        from upgraderun_operator.decide.clock import active_seconds

        scene = Scene().working()
        view = scene.view
        (attempt,) = view.state.attempts
        state = replace(view.state, attempts=(replace(attempt, planned_at="x"),))
        assert active_seconds(scene.seen(view=replace(view, state=state))) == 0


class TestSuspend:
    """The step in hand ends, the pod goes, Leases go, nothing starts."""

    def test_stops_a_pod_that_has_not_begun(self) -> None:
        scene = Scene(suspend=True).admitted().planned()
        assert Look(Need.POD) == decide(scene.seen()).what
        assert isinstance(decide(scene.seen(pod=a_pod())).what, DeletePod)
        found = entries(decide(scene.seen(pod=ABSENT)))
        assert found["a1/end done"] == {"cause": "stopped", "reason": "suspended"}

    def test_lets_the_step_in_hand_end(self) -> None:
        scene = Scene(suspend=True).working()
        assert Look(Need.POD) == decide(scene.seen()).what
        decision = decide(scene.seen(pod=a_pod()))
        assert decision.reason == "SuspendRequested"
        assert Pause(180, shown=True) == decision.what

    def waiting(self, since: float) -> Scene:
        scene = Scene(suspend=True).working()
        wait = Wait("SuspendRequested", "m", at(since))
        scene.facts = replace(scene.facts, wait=wait)
        return scene

    def test_deletes_the_pod_after_three_minutes(self) -> None:
        decision = decide(self.waiting(-100).seen(pod=a_pod()))
        assert Pause(80, shown=True) == decision.what
        assert isinstance(decide(self.waiting(-180).seen(pod=a_pod())).what, DeletePod)

    def test_doesnt_call_a_stopped_pod_lost(self) -> None:
        found = entries(decide(self.waiting(-180).seen(pod=ABSENT)))
        assert found["a1/end done"]["cause"] == "stopped"

    def test_judges_a_pod_that_vanished_earlier_as_always(self) -> None:
        assert decide(self.waiting(-20).seen(pod=ABSENT)).reason == "LossObserved"
        scene = Scene(suspend=True).working()
        assert decide(scene.seen(pod=ABSENT)).reason == "LossObserved"
        pod = a_pod("a1", **ended(1))
        assert decide(self.waiting(-200).seen(pod=pod)).reason == "LossObserved"

    def test_comes_to_rest_without_pod_and_leases(self) -> None:
        scene = Scene(suspend=True).working().end(cause="yield", reason="suspended")
        assert Look(Need.OLD_PODS) == decide(scene.seen()).what
        assert Look(Need.LEASE) == decide(scene.seen(old_pods=())).what
        decision = decide(scene.seen(old_pods=(), lease=LEASE))
        assert DeleteRunLease("run-3f1c9a2b", "lease") == decision.what
        going = replace(LEASE, deleted_at=at(-1))
        assert Look(Need.REPOSITORY) == decide(scene.seen(old_pods=(), lease=going)).what
        seen = scene.seen(old_pods=(), lease=ABSENT, repository=OURS)
        expected = ReleaseRepositoryLease(f"team/run/{UID}", None, OURS)
        assert expected == decide(seen).what

    def test_keeps_its_target_from_others_while_it_rests(self) -> None:
        scene = Scene(suspend=True).frozen().asked()
        decision = decide(scene.seen(old_pods=(), lease=ABSENT, repository=OURS))
        assert isinstance(decision.what, ReleaseRepositoryLease)
        assert decision.what.frozen == "lib@1.1"

    def test_then_waits(self) -> None:
        scene = Scene(suspend=True).working().end(cause="yield", reason="suspended")
        free = RepositoryLeaseView("repo-1", Holder.FREE)
        decision = decide(scene.seen(old_pods=(), lease=ABSENT, repository=free))
        assert Pause() == decision.what

    def test_leaves_a_strangers_lease_alone(self) -> None:
        scene = Scene(suspend=True).working().end(cause="yield", reason="suspended")
        foreign = replace(LEASE, owner_uid="x")
        free = RepositoryLeaseView("repo-1", Holder.FREE)
        decision = decide(scene.seen(old_pods=(), lease=foreign, repository=free))
        assert Pause() == decision.what
