"""Phase 13: people are asked, nobody works meanwhile, and their answer is counted (§11).

Callers: `decide.run`. A run without publication ends here with its frozen proposal.
"""

from upgraderun_operator.build.events import EventText
from upgraderun_operator.decide.asking import ask
from upgraderun_operator.decide.chain import Chain
from upgraderun_operator.decide.counting import Count, count
from upgraderun_operator.decide.decision import Decision, Need
from upgraderun_operator.decide.effects import Announce
from upgraderun_operator.decide.granting import (
    destination_is_still_right,
    finalizer_is_set,
    policy_still_allows,
    push_is_granted,
    repository_is_ours,
)
from upgraderun_operator.decide.make import DONE, End, draft, end_run, pause, quiet, unread
from upgraderun_operator.decide.observation import Observation, read_time
from upgraderun_operator.decide.stopping import frozen_target
from upgraderun_operator.decide.tidying import old_pods_go, repository_goes, run_lease_goes
from upgraderun_operator.decide.views import ApprovalView
from upgraderun_operator.journal.records import Request
from upgraderun_operator.model.conditions import STALLS, LiveReason, StalledReason
from upgraderun_operator.model.policy_spec import SelfApproval
from upgraderun_protocol.ends import RequestDecision
from upgraderun_protocol.entries import Draft


def proposal_is_frozen(seen: Observation) -> bool:
    """Asked while a proposal is frozen, no pod may write, and no push rests on a grant."""
    state = seen.state
    is_asked = not state.pushes or state.pending_request is not None
    return state.proposal is not None and state.writer is None and is_asked


def nothing_is_published(seen: Observation) -> Decision | None:
    """A run without publication ends with its proposal, also if its runner was lost by then."""
    if seen.view.wants_publication:
        return None
    assert seen.state.proposal is not None
    message = f"proposal {seen.state.proposal.digest[:12]} is frozen; nothing is published"
    return end_run(seen, End("proposal_prepared", message))


def people_are_asked(seen: Observation) -> Decision | None:
    """A frozen proposal, or a runner's question, that isn't asked about yet is shown and asked."""
    return None if seen.state.pending_request is not None else ask(seen)


def request_has_expired(seen: Observation) -> Decision | None:
    """A request that nobody answered in time ends the run; later approvals don't count."""
    if not _is_expired(seen):
        return None
    request = pending(seen)
    message = (
        f"nobody decided on digest {request.digest[:12]} between {request.requested_at} and "
        f"{request.expires_at}"
    )
    entry = answer(request, RequestDecision.EXPIRED, seen, None)
    return end_run(seen, End("approval_expired", message, (entry,), quiet(seen)))


def approvals_are_unread(seen: Observation) -> Decision | None:
    """Approvals are read from the API server itself, and the policy's prohibitions with them."""
    return unread(seen, Need.FROZEN, Need.APPROVALS, Need.POLICY)


def somebody_rejects(seen: Observation) -> Decision | None:
    """One reject that counts ends the run, whoever approved."""
    rejects = counted(seen).rejects
    if not rejects:
        return None
    first = rejects[0]
    comment = f": {first.comment}" if first.comment else ""
    message = f"rejected by {first.approver} at {first.created_at}{comment}"
    entry = answer(pending(seen), RequestDecision.REJECTED, seen, first)
    return end_run(seen, End("approval_rejected", message, (entry,), quiet(seen)))


def approval_is_ignored(seen: Observation) -> Decision | None:
    """An approval that doesn't count is told once, with what to do about it."""
    request = pending(seen)
    for ignored in counted(seen).ignored:
        approval = ignored.approval
        key = f"{approval.uid}/{request.digest}"
        if key in seen.announced:
            continue
        message = f"UpgradeApproval {approval.name} of {approval.approver} ignored: {ignored.why}"
        event = EventText("ApprovalIgnored", message, key, warning=True)
        return Decision("ApprovalIgnored", message, Announce(event))
    return None


def nobody_works_meanwhile(seen: Observation) -> Decision | None:
    """While people think, the run holds no pod, no run Lease and no repository Lease."""
    if counted(seen).approves:
        return None
    return (
        old_pods_go(seen)
        or run_lease_goes(seen)
        or repository_goes(seen, frozen=frozen_target(seen))
    )


def requester_is_unknown(seen: Observation) -> Decision | None:
    """Where self-approval is denied and nobody knows the requester, no approval can count."""
    allowed = seen.resolved.spec.approvals.self_approval is SelfApproval.ALLOW
    if allowed or seen.run.requester is not None:
        return None
    stalled = StalledReason.REQUESTER_UNKNOWN
    message = f"{STALLS[stalled].meaning}; {STALLS[stalled].next_step}"
    return pause(stalled.value, message, _seconds_to_answer(seen), shown=True)


def nobody_approves(seen: Observation) -> Decision | None:
    """The run waits for an approval of exactly its digest, and makes no write meanwhile."""
    if counted(seen).approves:
        return None
    return pause(
        LiveReason.AWAITING_APPROVAL.value,
        f"approve or reject digest {pending(seen).digest}",
        _seconds_to_answer(seen),
    )


def old_pods_are_gone(seen: Observation) -> Decision | None:
    """A runner that is still there must be gone before a publisher speaks for the run."""
    return old_pods_go(seen)


APPROVAL = Chain(
    "approval",
    "Do people let the proposal out?",
    proposal_is_frozen,
    (
        nothing_is_published,
        people_are_asked,
        request_has_expired,
        approvals_are_unread,
        somebody_rejects,
        approval_is_ignored,
        nobody_works_meanwhile,
        requester_is_unknown,
        nobody_approves,
        policy_still_allows,
        old_pods_are_gone,
        repository_is_ours,
        finalizer_is_set,
        destination_is_still_right,
        push_is_granted,
    ),
)


def pending(seen: Observation) -> Request:
    """The open request; only after `people_are_asked`."""
    request = seen.state.pending_request
    assert request is not None
    return request


def counted(seen: Observation) -> Count:
    """Approvals of the open request, judged."""
    return count(seen, pending(seen))


def answer(
    request: Request, decision: RequestDecision, seen: Observation, by: ApprovalView | None
) -> Draft:
    """Word the outcome of a request."""
    data: dict[str, str | None] = {
        "decision": decision.value,
        "by": by.approver if by else None,
        "approval": by.name if by else None,
        "at": by.created_at if by else seen.stamp,
        "message": by.comment[:160] or None if by else None,
    }
    return draft(request.id, "request", DONE, data)


def _is_expired(seen: Observation) -> bool:
    return _seconds_to_answer(seen) <= 0


def _seconds_to_answer(seen: Observation) -> float:
    """Seconds until the request expires; a time that can't be read has passed."""
    expires = read_time(pending(seen).expires_at)
    return 0.0 if expires is None else (expires - seen.now).total_seconds()
