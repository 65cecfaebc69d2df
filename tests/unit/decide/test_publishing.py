"""Phase 14 between publishers: done, denied, lapsed, lost (§12, §13.5)."""

from dataclasses import replace
from typing import Any

from support.scenes import (
    FINE,
    FREE,
    FROZEN_COMMIT,
    OURS,
    Scene,
    a_pod,
    a_policy,
    a_record,
    an_approval,
    at,
    ended,
    outcome_of,
)
from upgraderun_operator.decide.decision import Look, Need, Pause
from upgraderun_operator.decide.effects import Append, DeletePod, TakeRepositoryLease
from upgraderun_operator.decide.readings import NOT_READ
from upgraderun_operator.decide.run import decide
from upgraderun_protocol.bundle import Bundle
from upgraderun_protocol.entries import EntryState
from upgraderun_protocol.records import from_bytes


def lost() -> Scene:
    """The publisher vanished with an open push."""
    return Scene().publishing().end("d1", "crashed")


def denied(settled: float = -20) -> Scene:
    """The forge refused the push; the publisher ended."""
    scene = Scene().publishing()
    scene.clock = settled - 10
    data = {"reason": "forge_denied", "message": "a rule forbids it"}
    scene.entry("push/1", "push", EntryState.FAILED, data)
    return scene.end("d1", "yield", reason="not_resumable")


def seen(scene: Scene, **parts: Any) -> Any:
    return decide(scene.seen(**{"policy": scene.policy, "old_pods": (), **parts}))


def test_both_done_is_published_without_asking_anybody() -> None:
    scene = Scene().publishing().entry("push/1", "push", data={"commit": FROZEN_COMMIT})
    pr = {"number": "12", "state": "open", "commit": FROZEN_COMMIT, "url": "https://x/12"}
    scene.entry("pr/1", "pullRequest", data=pr).end("d1", "crashed")
    decision = decide(scene.seen())
    assert isinstance(decision.what, Append)
    (outcome,) = decision.what.change.drafts
    assert outcome.data["outcome"] == "proposal_published"


def test_what_the_dead_publisher_couldnt_set_stands_beside_the_address() -> None:
    scene = Scene().publishing().entry("push/1", "push", data={"commit": FROZEN_COMMIT})
    pr = {"number": "12", "state": "open", "commit": FROZEN_COMMIT, "url": "https://x/12"}
    pr["warnings"] = "reviewers ann not set: 422"
    scene.entry("pr/1", "pullRequest", data=pr).end("d1", "crashed")
    decision = decide(scene.seen())
    assert isinstance(decision.what, Append)
    (outcome,) = decision.what.change.drafts
    said = "pull request 12: https://x/12; reviewers ann not set: 422"
    assert said == outcome.data["message"]


def test_a_pull_request_without_a_recorded_push_isnt_enough() -> None:
    scene = Scene().publishing()
    pr = {"number": "12", "state": "open", "commit": FROZEN_COMMIT, "url": "https://x/12"}
    scene.entry("pr/1", "pullRequest", data=pr).end("d1", "crashed")
    assert Look(Need.OLD_PODS) == decide(scene.seen()).what


def test_the_old_publisher_must_be_gone() -> None:
    assert Look(Need.FROZEN) == decide(lost().seen(frozen=NOT_READ)).what
    assert Look(Need.OLD_PODS) == decide(lost().seen()).what
    assert isinstance(seen(lost(), old_pods=(a_pod("d1", **ended(1)),)).what, DeletePod)


def test_an_open_push_is_settled_by_the_next_publisher() -> None:
    assert Look(Need.POLICY) == decide(lost().seen(old_pods=())).what
    assert Look(Need.REPOSITORY) == seen(lost()).what
    assert isinstance(seen(lost(), repository=FREE).what, TakeRepositoryLease)
    decision = seen(lost(), repository=OURS, destination=FINE)
    assert isinstance(decision.what, Append)
    (intent,) = decision.what.change.drafts
    assert intent.id == "d2"
    assert decision.what.name == "append"
    told = from_bytes(Bundle, decision.what.blobs[0])
    assert told.delivery is not None
    assert told.delivery.approvers == ("anna",)


class TestLimited:
    """A publisher that the forge told to wait parked itself; the next one comes as told."""

    def limited(self, until: str) -> Scene:
        scene = Scene().publishing()
        data = {"reason": "forge_limited", "message": "the forge limits: POST /pulls"}
        return scene.end("d1", "yield", **data, until=until)

    def test_is_told_with_its_end(self) -> None:
        decision = seen(self.limited(at(600)))
        assert Pause(600.0, shown=True) == decision.what
        assert decision.reason == "ForgeLimited"
        assert f"POST /pulls; the next publisher starts after {at(600)}" in decision.message

    def test_goes_on_afterwards(self) -> None:
        assert Look(Need.REPOSITORY) == seen(self.limited(at(-1))).what

    def test_a_time_that_is_none_doesnt_hold_it(self) -> None:
        scene = self.limited("2026-99-99T99:99:99Z")
        assert Look(Need.REPOSITORY) == seen(scene).what


class TestDenied:
    """A definite refusal waits for a person and is tried every five minutes."""

    def test_is_told(self) -> None:
        decision = seen(denied())
        assert decision.reason == "ForgeDenied"
        assert "a rule forbids it" in decision.message

    def test_reads_the_approvals_before_another_push_intent(self) -> None:
        assert Look(Need.APPROVALS) == seen(denied(-400)).what

    def test_stops_when_the_approval_was_taken_back(self) -> None:
        decision = seen(denied(-400), approvals=())
        assert decision.reason == "ForgeDenied"
        assert "taken back" in decision.message

    def test_ends_when_somebody_rejects_meanwhile(self) -> None:
        parts = {"approvals": (an_approval(approves=False),), "old_pods": ()}
        found = outcome_of(denied(-400), "ApprovalRejected", **parts)
        assert found["outcome"]["outcome"] == "approval_rejected"

    def test_is_tried_again_under_a_new_intent(self) -> None:
        parts = {"approvals": (an_approval(),), "repository": OURS, "destination": FINE}
        decision = seen(denied(-400), **parts)
        assert isinstance(decision.what, Append)
        assert ["push/2", "d2"] == [draft.id for draft in decision.what.change.drafts]
        assert decision.what.name == "grant"

    def test_of_the_pull_request_counts_like_one_of_the_push(self) -> None:
        scene = Scene().publishing().entry("push/1", "push", data={"commit": FROZEN_COMMIT})
        intent = {"branch": "b", "commit": FROZEN_COMMIT}
        scene.entry("pr/1", "pullRequest", EntryState.INTENT, intent)
        scene.entry("pr/1", "pullRequest", EntryState.FAILED, {"reason": "forge_denied"})
        scene.end("d1", "yield", reason="not_resumable")
        scene_now = seen(scene, now=scene.seen().now.replace(hour=13))
        assert Look(Need.APPROVALS) == scene_now.what
        parts = {"approvals": (an_approval(),), "repository": OURS, "destination": FINE}
        decision = seen(scene, now=scene.seen().now.replace(hour=13), **parts)
        assert ["d2"] == [draft.id for draft in decision.what.change.drafts]


class TestLapsed:
    """A grant that couldn't be used in its time is void and asked anew."""

    def scene(self) -> Scene:
        scene = denied(-90)
        scene.policy = a_policy(approvals={"grantTTLSeconds": 60})
        return scene

    def test_asks_again(self) -> None:
        assert Look(Need.RECORD) == seen(self.scene()).what

    def test_then_waits_for_people_again(self) -> None:
        scene = self.scene().asked(2)
        assert Look(Need.APPROVALS) == decide(scene.seen()).what

    def test_is_granted_again_under_the_next_push(self) -> None:
        scene = self.scene().asked(2)
        scene.metadata["finalizers"] = ["upgraderun.dev/world"]
        parts = {"approvals": (an_approval(),), "repository": OURS, "destination": FINE}
        decision = seen(scene, record=a_record(), **parts)
        assert isinstance(decision.what, Append)
        assert ["req/2", "push/2", "d2"] == [d.id for d in decision.what.change.drafts]

    def test_also_when_the_time_of_the_grant_cant_be_read(self) -> None:
        scene = denied()
        view = scene.view
        (request,) = view.state.requests
        assert request.answer is not None
        answer = replace(request.answer, at="x")
        state = replace(view.state, requests=(replace(request, answer=answer),))
        decision = decide(scene.seen(view=replace(view, state=state), old_pods=()))
        assert Look(Need.RECORD) == decision.what


def test_a_refusal_whose_time_cant_be_read_waits_the_whole_time() -> None:
    scene = denied()
    view = scene.view
    (push,) = view.state.pushes
    state = replace(view.state, pushes=(replace(push, settled_at=None, message=None),))
    decision = decide(scene.seen(view=replace(view, state=state), old_pods=()))
    assert decision.reason == "ForgeDenied"
    assert "forge_denied" in decision.message


def test_a_publisher_that_was_stopped_goes_on_when_the_suspend_is_over() -> None:
    scene = Scene().publishing().end("d1", "stopped", reason="suspended")
    decision = seen(scene, repository=OURS, destination=FINE)
    assert isinstance(decision.what, Append)
    assert decision.what.change.drafts[0].id == "d2"
