"""From enough approvals to the push intent: every check again, then one write (§11, §12).

The grant, the push intent and the publisher's intent stand in the same append; before it the run
and the approvals are read once more and everything is decided again (`reconcile`).
Callers: `decide.approval` for the first push, `decide.publishing` for a repetition.
"""

from upgraderun_operator import limits
from upgraderun_operator.build.events import EventText
from upgraderun_operator.decide.admission import busy, take
from upgraderun_operator.decide.counting import count
from upgraderun_operator.decide.decision import Decision, Need
from upgraderun_operator.decide.effects import AddFinalizer, Append
from upgraderun_operator.decide.make import (
    DONE,
    INTENT,
    End,
    append,
    draft,
    end_run,
    pause,
    quiet,
    unread,
)
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.planning import base_commit, next_delivery, our_branch
from upgraderun_operator.decide.readings import ABSENT, known
from upgraderun_operator.decide.views import DestinationRefused, DestinationView
from upgraderun_operator.journal.records import Request
from upgraderun_operator.journal.writes import Change
from upgraderun_operator.model.conditions import STALLS, StalledReason
from upgraderun_operator.model.policy import PolicyRefusal, allowed_repository
from upgraderun_operator.model.policy_spec import OnBaseMoved
from upgraderun_protocol.ends import RequestDecision
from upgraderun_protocol.entries import Draft


def policy_still_allows(seen: Observation) -> Decision | None:
    """The policy's prohibitions are read again: a repository forbidden meanwhile isn't pushed to."""
    waiting = unread(seen, Need.POLICY)
    if waiting is not None:
        return waiting
    name = seen.run.spec.policy_name
    if seen.policy is ABSENT:
        message = f"UpgradePolicy {name} was deleted since the run was admitted"
        return end_run(seen, End("policy_refused", message))
    policy = known(seen.policy)
    assert policy is not None
    verdict = allowed_repository(seen.run.spec.repository.url, policy)
    if isinstance(verdict, PolicyRefusal):
        return end_run(seen, End("policy_refused", verdict.message))
    if policy.spec.forge.api_url != seen.resolved.spec.forge.api_url:
        message = f"UpgradePolicy {name} names another forge since the run was admitted"
        return end_run(seen, End("policy_refused", message))
    return None


def repository_is_ours(seen: Observation) -> Decision | None:
    """The repository is taken again before the first push intent, or waited for."""
    waiting = unread(seen, Need.REPOSITORY)
    if waiting is not None:
        return waiting
    return busy(seen) or take(seen, seen.resolved)


def destination_is_still_right(seen: Observation) -> Decision | None:
    """The destination is checked again: what was validated must still be what is asked for."""
    waiting = unread(seen, Need.DESTINATION)
    if waiting is not None:
        return waiting
    found = known(seen.destination)
    if isinstance(found, DestinationRefused):
        return forge_denies(seen, found.message)
    assert isinstance(found, DestinationView)
    gone = _gone(seen, found)
    if gone is not None:
        return end_run(seen, End("proposal_invalidated", gone))
    if found.may_push is False:
        return forge_denies(seen, "the push token has no write access to the repository")
    if found.creation_forbidden is not None:
        return forge_denies(seen, f"no branch of ours can be made: {found.creation_forbidden}")
    return None


def finalizer_is_set(seen: Observation) -> Decision | None:
    """From the first push intent on, the run object stays until what stands outside is told."""
    if seen.run.has_finalizer:
        return None
    effect = AddFinalizer(seen.view.raw)
    return Decision("FinalizerAdded", "the run object stays until it is finalized", effect)


def push_is_granted(seen: Observation) -> Decision:
    """Request answered, push intent and publisher's intent: one write, guarded by the journal."""
    request = seen.state.pending_request
    assert request is not None
    approver = count(seen, request).approves[0]
    data: dict[str, str | None] = {
        "decision": RequestDecision.APPROVED.value,
        "by": approver.approver,
        "approval": approver.name,
        "at": approver.created_at,
    }
    planned = next_delivery(seen, (approver.approver,))
    message = f"approved by {approver.approver}; branch {our_branch(seen)} is pushed next"
    effect = Append(
        Change(
            drafts=(
                draft(request.id, "request", DONE, data),
                push_intent(seen, request),
                planned.intent,
            )
        ),
        quiet(seen),
        blobs=(planned.bundle,),
        events=(EventText("Approved", message, request.id),),
        name="grant",
        same_wish=True,
    )
    return append(seen, "Approved", message, effect)


def push_intent(seen: Observation, grant: Request) -> Draft:
    """Word the next push: our branch, the frozen commit, under this grant."""
    proposal = seen.state.proposal
    assert proposal is not None
    number = len(seen.state.pushes) + 1
    data: dict[str, str | None] = {
        "branch": our_branch(seen),
        "commit": proposal.commit,
        "proposal": str(proposal.digest),
        "grant": grant.id,
    }
    return draft(f"push/{number}", "push", INTENT, data)


def forge_denies(seen: Observation, words: str, next_step: str | None = None) -> Decision:
    """A definite no: a person must act; it is tried again until the grant lapses."""
    stalled = StalledReason.FORGE_DENIED
    repository = seen.resolved.repository
    message = f"{repository}: {words}; {next_step or STALLS[stalled].next_step}"
    return pause(stalled.value, message, limits.FORGE_RETRY_SECONDS, shown=True)


def _gone(seen: Observation, found: DestinationView) -> str | None:
    """Say what of the destination is gone since the proposal was frozen."""
    base = base_commit(seen)
    moved = found.head is not None and found.head != base
    invalidates = seen.resolved.spec.publication.on_base_moved is OnBaseMoved.INVALIDATE
    checks = (
        (not found.exists, "the repository is gone"),
        (found.archived, "the repository was archived"),
        (found.disabled, "the forge disabled the repository"),
        (found.head is None, f"base branch {found.branch} is gone"),
        (found.commit_on_branch is False, f"base commit {base} is gone from {found.branch}"),
        (moved and invalidates, f"base branch {found.branch} moved from {base} to {found.head}"),
    )
    return next((message for failed, message in checks if failed), None)
