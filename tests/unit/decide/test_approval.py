"""Phase 13: what is shown and asked, which answers count, and what a grant needs (§11)."""

from dataclasses import replace
from typing import Any, ClassVar

import pytest

from support.scenes import (
    COMMIT,
    DIGEST,
    FINE,
    FREE,
    FROZEN_COMMIT,
    NONCE,
    OURS,
    UID,
    Scene,
    a_pod,
    a_policy,
    a_record,
    an_approval,
    at,
    ended,
    outcome_of,
    report,
)
from upgraderun_operator.decide.approval import counted
from upgraderun_operator.decide.decision import Decision, Look, Need, Pause
from upgraderun_operator.decide.effects import (
    AddFinalizer,
    Announce,
    Append,
    DeletePod,
    ReleaseRepositoryLease,
    TakeRepositoryLease,
    WriteReport,
)
from upgraderun_operator.decide.readings import ABSENT, NOT_READ
from upgraderun_operator.decide.run import decide
from upgraderun_operator.decide.views import (
    ApprovalView,
    DestinationRefused,
    DestinationView,
    Holder,
    Malformed,
    RepositoryLeaseView,
)
from upgraderun_operator.journal.guards import SeqIs
from upgraderun_protocol.bundle import Bundle
from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.ids import CommitId, RunUid
from upgraderun_protocol.records import from_bytes


def asked(**spec: Any) -> Scene:
    return Scene(**spec).frozen().asked()


def answered(scene: Scene, *approvals: ApprovalView, **parts: Any) -> Decision:
    return decide(scene.seen(**{"policy": scene.policy, "approvals": approvals, **parts}))


class TestAsking:
    """The report first, then the request that binds it."""

    def test_ends_a_run_that_isnt_published(self) -> None:
        scene = Scene(publication={"enabled": False}).frozen()
        found = outcome_of(scene, "ProposalPrepared")
        assert found["outcome"]["outcome"] == "proposal_prepared"

    def test_reads_record_and_report(self) -> None:
        scene = Scene().frozen()
        assert Look(Need.FROZEN) == decide(scene.seen(frozen=NOT_READ)).what
        assert Look(Need.RECORD) == decide(scene.seen()).what
        assert Look(Need.REPORT) == decide(scene.seen(record=a_record())).what

    @pytest.mark.parametrize(
        ("record", "words"), [(ABSENT, "gone from the store"), (Malformed("$.x: unknown"), "$.x")]
    )
    def test_is_impossible_without_a_readable_record(self, record: Any, words: str) -> None:
        scene = Scene().frozen()
        found = outcome_of(scene, "ProposalInvalidated", record=record)
        assert words in found["outcome"]["message"]

    def test_is_impossible_beside_a_strangers_report(self) -> None:
        scene = Scene().frozen()
        strange = report("Whatever", owner="x")
        found = outcome_of(scene, "", report=strange)
        assert found["outcome"]["outcome"] == "proposal_invalidated"

    def written(self, scene: Scene, seen_report: Any = ABSENT) -> WriteReport:
        decision = decide(scene.seen(record=a_record(), report=seen_report))
        assert isinstance(decision.what, WriteReport)
        return decision.what

    def test_writes_the_report_with_the_capability(self) -> None:
        effect = self.written(Scene().frozen())
        capability = effect.content.capability
        assert capability is not None
        assert (capability.commit, capability.base) == (FROZEN_COMMIT, COMMIT)
        assert capability.destination is not None
        assert capability.destination.branch == "upgraderun/lib-1.1-3f1c9a2b"
        assert effect.seen is None

    def test_replaces_a_report_that_shows_something_else(self) -> None:
        other = report("ProposalPrepared", "0" * 64)
        assert self.written(Scene().frozen(), other).seen == other

    def test_binds_what_is_shown(self) -> None:
        scene = Scene().frozen()
        content = self.written(scene).content
        shown = report("ProposalPrepared", content.presentation_sha256)
        decision = decide(scene.seen(record=a_record(), report=shown))
        assert isinstance(decision.what, Append)
        (request,) = decision.what.change.drafts
        assert request.artifacts == {"presentation": content.presentation_sha256}
        assert request.data["nonce"] == NONCE
        assert request.data["expiresAt"] == at(168 * 3600)
        assert sha256_of(decision.what.blobs[0]) == content.presentation_sha256
        assert decision.what.name == "request"
        assert SeqIs(scene.fold.seq) in decision.what.guards
        assert "kubectl get upgradereport run -n team" in decision.what.events[0].message

    def test_uses_the_configuration_of_the_context(self) -> None:
        from upgraderun_protocol.entries import EntryState

        plain, profiled = Scene().frozen(), Scene().working()
        profiled.entry("profile/1", "profile", EntryState.INTENT)
        data = {"configHash": "9" * 64, "ecosystem": "Python"}
        from support.scenes import ARTIFACT

        profiled.entry("profile/1", "profile", data=data, artifacts={"context": ARTIFACT})
        profiled.proposal().end(outcome="proposal_prepared")
        digests = set()
        for scene in (plain, profiled):
            shown = report("ProposalPrepared", self.written(scene).content.presentation_sha256)
            decision = decide(scene.seen(record=a_record(), report=shown))
            assert isinstance(decision.what, Append)
            digests.add(decision.what.change.drafts[0].data["digest"])
        assert len(digests) == 2

    def test_goes_on_when_the_runner_was_lost_after_the_freeze(self) -> None:
        scene = Scene().working().proposal().end(cause="crashed")
        assert Look(Need.RECORD) == decide(scene.seen()).what


class TestWaiting:
    """While people think, nothing is held and nothing is written."""

    def test_reads_approvals_and_prohibitions(self) -> None:
        assert Look(Need.FROZEN) == decide(asked().seen(frozen=NOT_READ)).what
        assert Look(Need.APPROVALS) == decide(asked().seen()).what
        assert Look(Need.POLICY) == decide(asked().seen(approvals=())).what

    def test_gives_everything_back(self) -> None:
        scene = asked()
        assert Look(Need.OLD_PODS) == answered(scene).what
        pod = a_pod("a1", **ended(0))
        assert isinstance(answered(scene, old_pods=(pod,)).what, DeletePod)
        decision = answered(scene, old_pods=(), lease=ABSENT, repository=OURS)
        assert ReleaseRepositoryLease(f"team/run/{UID}", "lib@1.1", OURS) == decision.what

    def test_wakes_when_the_request_expires(self) -> None:
        decision = answered(asked(), old_pods=(), lease=ABSENT, repository=FREE)
        assert Pause(3600) == decision.what
        assert decision.reason == "AwaitingApproval"

    def test_without_a_known_requester_is_told(self) -> None:
        scene = asked()
        scene.metadata["annotations"] = {}
        decision = answered(scene, old_pods=(), lease=ABSENT, repository=FREE)
        assert decision.reason == "RequesterUnknown"
        assert Pause(3600, shown=True) == decision.what

    def test_without_a_requester_is_fine_where_self_approval_is_allowed(self) -> None:
        scene = asked()
        scene.metadata["annotations"] = {}
        scene.policy = a_policy(approvals={"selfApproval": "Allow"})
        decision = answered(scene, old_pods=(), lease=ABSENT, repository=FREE)
        assert decision.reason == "AwaitingApproval"

    @pytest.mark.parametrize("expires", [-1, 0])
    def test_ends_when_nobody_decided(self, expires: float) -> None:
        scene = Scene().frozen().asked(expires=expires)
        found = outcome_of(scene, "ApprovalExpired", approvals=(an_approval(),))
        assert found["req/1"]["decision"] == "expired"
        assert found["outcome"]["outcome"] == "approval_expired"

    def test_ends_when_the_expiry_cant_be_read(self) -> None:
        scene = Scene().frozen().asked()
        view = scene.view
        (request,) = view.state.requests
        state = replace(view.state, requests=(replace(request, expires_at="soon"),))
        seen = scene.seen(
            view=replace(view, state=state),
            record=a_record(),
            report=report("ApprovalExpired"),
        )
        assert decide(seen).reason == "ApprovalExpired"


class TestCounting:
    """An approval counts only if everything fits (security.md H25)."""

    @pytest.mark.parametrize(
        ("fields", "words"),
        [
            ({"kind": "ScopeExpansion"}, "asks for kind Publication"),
            ({"digest": "0" * 64}, f"waits for {DIGEST[:12]}"),
            ({"requester": "somebody"}, "says somebody"),
            ({"requester": None}, "says nothing"),
            ({"approver": "rita"}, "another person"),
        ],
    )
    def test_says_why_one_doesnt(self, fields: Any, words: str) -> None:
        scene = asked()
        decision = answered(scene, an_approval(**fields))
        assert isinstance(decision.what, Announce)
        assert decision.what.event.warning
        assert words in decision.message

    def test_tells_it_once(self) -> None:
        scene = asked()
        approval = an_approval(digest="0" * 64)
        told = frozenset({f"{approval.uid}/{DIGEST}"})
        decision = answered(scene, approval, announced=told)
        assert Look(Need.OLD_PODS) == decision.what

    def test_never_sees_an_approval_of_another_run(self) -> None:
        scene = asked()
        seen = scene.seen(policy=scene.policy, approvals=(an_approval(run_uid=RunUid("another")),))
        assert counted(seen) == counted(scene.seen(policy=scene.policy, approvals=()))

    @pytest.mark.parametrize("frozen", [True, False])
    def test_respects_the_frozen_and_the_live_list(self, frozen: bool) -> None:
        scene = asked()
        listed = a_policy(approvals={"approvers": ["otto"]})
        live = listed
        if frozen:
            live, scene.policy = scene.policy, listed
        decision = decide(scene.seen(policy=live, approvals=(an_approval(),)))
        assert "anna isn't in approvals.approvers" in decision.message

    def test_takes_a_listed_approver(self) -> None:
        scene = asked()
        scene.policy = a_policy(approvals={"approvers": ["anna"]})
        seen = scene.seen(policy=scene.policy, approvals=(an_approval(),))
        assert [one.approver for one in counted(seen).approves] == ["anna"]

    def test_takes_the_requesters_own_where_the_policy_allows(self) -> None:
        scene = asked()
        scene.policy = a_policy(approvals={"selfApproval": "Allow"})
        own = an_approval(approver="rita", requester=None)
        seen = scene.seen(policy=scene.policy, approvals=(own,))
        assert counted(seen).approves == (own,)

    def test_takes_none_of_a_run_whose_requester_is_unknown(self) -> None:
        scene = asked()
        scene.metadata["annotations"] = {}
        seen = scene.seen(policy=scene.policy, approvals=(an_approval(),))
        assert "doesn't say who requested" in counted(seen).ignored[0].why

    def test_works_without_a_live_policy(self) -> None:
        seen = asked().seen(policy=ABSENT, approvals=(an_approval(),))
        assert len(counted(seen).approves) == 1

    @pytest.mark.parametrize(("comment", "words"), [("too early", ": too early"), ("", "rejected")])
    def test_one_reject_ends_the_run(self, comment: str, words: str) -> None:
        approvals = (an_approval(), an_approval(name="no", approves=False, comment=comment))
        found = outcome_of(asked(), "ApprovalRejected", approvals=approvals)
        assert found["req/1"]["decision"] == "rejected"
        assert words in found["outcome"]["message"]


class TestGrant:
    """Every check again, then request, push and publisher's intent in one write."""

    def go(self, scene: Scene | None = None, **parts: Any) -> Decision:
        return answered(scene or asked(), an_approval(), **parts)

    ready: ClassVar[dict[str, Any]] = {"old_pods": (), "repository": OURS}

    def test_needs_the_policy_that_was_there(self) -> None:
        found = outcome_of(asked(), "PolicyRefused", approvals=(an_approval(),), policy=ABSENT)
        assert found["outcome"]["outcome"] == "policy_refused"

    def test_needs_a_repository_that_is_still_allowed(self) -> None:
        forbidden = a_policy(repositories=["https://git.example/others/*"])
        found = outcome_of(asked(), "PolicyRefused", approvals=(an_approval(),), policy=forbidden)
        assert "spec.repositories" in found["outcome"]["message"]

    def test_needs_the_same_forge(self) -> None:
        moved = a_policy(forge={"type": "GitHub", "apiURL": "https://evil.example/api"})
        found = outcome_of(asked(), "PolicyRefused", approvals=(an_approval(),), policy=moved)
        assert "another forge" in found["outcome"]["message"]

    def test_needs_the_runner_to_be_gone(self) -> None:
        assert Look(Need.OLD_PODS) == self.go().what
        pod = a_pod("a1", **ended(0))
        assert isinstance(self.go(old_pods=(pod,)).what, DeletePod)

    def test_needs_the_repository(self) -> None:
        assert Look(Need.REPOSITORY) == self.go(old_pods=()).what
        assert isinstance(self.go(old_pods=(), repository=FREE).what, TakeRepositoryLease)
        busy = RepositoryLeaseView("repo-1", Holder.OTHER, "x/y")
        assert self.go(old_pods=(), repository=busy).reason == "RepositoryBusy"

    def held(self, **spec: Any) -> Scene:
        scene = asked(**spec)
        scene.metadata["finalizers"] = ["upgraderun.dev/world"]
        return scene

    def test_sets_the_finalizer_before_the_push_intent(self) -> None:
        assert isinstance(self.go(**self.ready).what, AddFinalizer)

    def test_looks_at_the_destination_again(self) -> None:
        assert Look(Need.DESTINATION) == self.go(self.held(), **self.ready).what

    @pytest.mark.parametrize(
        ("found", "words"),
        [
            (DestinationView(False), "the repository is gone"),
            (replace(FINE, archived=True), "was archived"),
            (replace(FINE, head=None), "base branch main is gone"),
            (replace(FINE, commit_on_branch=False), "is gone from main"),
        ],
    )
    def test_is_invalid_when_what_was_validated_is_gone(self, found: Any, words: str) -> None:
        parts = {"approvals": (an_approval(),), "destination": found, **self.ready}
        outcome = outcome_of(self.held(), "ProposalInvalidated", **parts)["outcome"]
        assert words in outcome["message"]

    @pytest.mark.parametrize(
        "found",
        [
            DestinationRefused("401"),
            replace(FINE, may_push=False),
            replace(FINE, creation_forbidden="ruleset 7"),
        ],
    )
    def test_waits_for_a_person_when_the_forge_denies(self, found: Any) -> None:
        decision = self.go(self.held(), destination=found, **self.ready)
        assert decision.reason == "ForgeDenied"
        assert isinstance(decision.what, Pause)
        assert decision.what.shown

    def test_respects_what_the_policy_says_of_a_moved_base(self) -> None:
        moved = replace(FINE, head=CommitId("7" * 40))
        noted = self.go(self.held(), destination=moved, **self.ready)
        assert noted.reason == "Approved"
        scene = self.held()
        scene.policy = a_policy(publication={"onBaseMoved": "Invalidate"})
        parts = {"approvals": (an_approval(),), "destination": moved, **self.ready}
        found = outcome_of(scene, "ProposalInvalidated", **parts)
        assert "moved from" in found["outcome"]["message"]

    def test_stands_in_one_write(self) -> None:
        scene = self.held()
        decision = self.go(scene, destination=FINE, **self.ready)
        assert isinstance(decision.what, Append)
        request, push, intent = decision.what.change.drafts
        assert (request.data["decision"], request.data["by"]) == ("approved", "anna")
        assert (push.id, push.data["grant"], push.data["commit"]) == (
            "push/1",
            "req/1",
            FROZEN_COMMIT,
        )
        assert intent.id == "d1"
        assert decision.what.name == "grant"
        assert decision.what.same_wish
        assert SeqIs(scene.fold.seq) in decision.what.guards
        told = from_bytes(Bundle, decision.what.blobs[0])
        assert told.delivery is not None
        assert (told.delivery.commit, told.delivery.approvers) == (FROZEN_COMMIT, ("anna",))
        assert told.delivery.branch == push.data["branch"]
