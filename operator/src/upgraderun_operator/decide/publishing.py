"""Phase 14 between publisher pods: both done, denied, lost; the next one looks first (§12, §13.5).

Callers: `decide.run`. A push intent that is open is settled by the next publisher, which looks at
the remote before it acts; the operator itself pushes nothing.
"""

from upgraderun_operator import limits
from upgraderun_operator.build.events import EventText
from upgraderun_operator.decide.asking import ask
from upgraderun_operator.decide.chain import Chain
from upgraderun_operator.decide.counting import count
from upgraderun_operator.decide.decision import Decision, Need
from upgraderun_operator.decide.effects import Append
from upgraderun_operator.decide.granting import (
    destination_is_still_right,
    forge_denies,
    policy_still_allows,
    push_intent,
    repository_is_ours,
)
from upgraderun_operator.decide.make import End, append, end_run, pause, quiet, unread
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.planning import next_delivery
from upgraderun_operator.decide.tidying import old_pods_go
from upgraderun_operator.journal.records import PullRequest, Push, Request
from upgraderun_operator.journal.writes import Change
from upgraderun_operator.model.conditions import WAITS, WaitReason
from upgraderun_protocol.ends import YieldReason
from upgraderun_protocol.entries import Draft, EntryState


def publisher_has_ended(seen: Observation) -> bool:
    """Asked while a push intent was written and no pod may write."""
    state = seen.state
    return bool(state.pushes) and state.writer is None and not _is_asked_again(seen)


def both_are_done(seen: Observation) -> Decision | None:
    """Branch and pull request are recorded: the run is published, whoever made or found them."""
    opened = seen.state.opened
    if opened is None or seen.state.pushed is None:
        return None
    address = f"pull request {opened.pull_number}: {opened.url}"
    message = f"{address}; {opened.warnings}" if opened.warnings else address
    return end_run(seen, End("proposal_published", message, keeps_report=True))


def old_publisher_is_still_there(seen: Observation) -> Decision | None:
    """No new publisher while the old UID exists: it may still push."""
    return unread(seen, Need.FROZEN) or old_pods_go(seen)


def grant_has_lapsed(seen: Observation) -> Decision | None:
    """A grant that couldn't be used in its time is void: people are asked anew."""
    if _denied(seen) is None or _grant_seconds_left(seen) > 0:
        return None
    return ask(seen)


def forge_denied(seen: Observation) -> Decision | None:
    """After a definite refusal of the forge a person must act; it is tried every five minutes."""
    denied = _denied(seen)
    if denied is None:
        return None
    age = seen.seconds_since(denied.settled_at or "") or 0.0
    if age >= limits.FORGE_RETRY_SECONDS:
        return None
    return forge_denies(seen, denied.message or denied.reason or "the forge refused")


def forge_limits_the_publisher(seen: Observation) -> Decision | None:
    """A publisher that the forge told to wait parked itself: people see until when."""
    delivery = seen.state.delivery
    end = delivery.end if delivery is not None else None
    if end is None or end.reason != YieldReason.FORGE_LIMITED or end.until is None:
        return None
    left = seen.seconds_until(end.until)
    if left <= 0:
        return None
    message = (
        f"{end.message}; the next publisher starts after {end.until}; "
        f"{WAITS[WaitReason.FORGE_LIMITED].next_step}"
    )
    return pause(WaitReason.FORGE_LIMITED.value, message, left, shown=True)


def approval_was_taken_back(seen: Observation) -> Decision | None:
    """Before another push intent the approvals are read again; a revoked one stops it."""
    if _denied(seen) is None:
        return None
    waiting = unread(seen, Need.APPROVALS, Need.POLICY)
    if waiting is not None:
        return waiting
    counted = count(seen, grant_of(seen))
    if counted.rejects:
        by = counted.rejects[0].approver
        return end_run(seen, End("approval_rejected", f"rejected by {by} after the grant"))
    if counted.approves:
        return None
    digest = grant_of(seen).digest
    taken = f"the approval of digest {digest} was taken back before the push"
    return forge_denies(seen, taken, "approve the same digest again, or cancel the run")


def next_publisher_starts(seen: Observation) -> Decision:
    """The next publisher's intent, with a new push intent where the last one was refused."""
    push = seen.state.push
    again: tuple[Draft, ...] = ()
    if push is not None and push.state in {EntryState.FAILED, EntryState.INTERRUPTED}:
        again = (push_intent(seen, grant_of(seen)),)
    grant = grant_of(seen)
    by = grant.answer.by if grant.answer is not None else None
    planned = next_delivery(seen, (by,) if by else ())
    tag = planned.intent.id
    message = f"{tag} looks at the remote and goes on"
    effect = Append(
        Change(drafts=(*again, planned.intent)),
        quiet(seen),
        blobs=(planned.bundle,),
        events=(EventText("NextPublisher", message, tag),),
        name="grant" if again else "append",
        same_wish=True,
    )
    return append(seen, "NextPublisher", message, effect)


PUBLISHING = Chain(
    "publishing",
    "How does the publication go on?",
    publisher_has_ended,
    (
        both_are_done,
        old_publisher_is_still_there,
        grant_has_lapsed,
        forge_denied,
        forge_limits_the_publisher,
        approval_was_taken_back,
        policy_still_allows,
        repository_is_ours,
        destination_is_still_right,
        next_publisher_starts,
    ),
)


def grant_of(seen: Observation) -> Request:
    """The grant that the pushes rest on."""
    grant = seen.state.grant
    assert grant is not None
    return grant


def _is_asked_again(seen: Observation) -> bool:
    """A new request is open because the last grant lapsed."""
    return seen.state.pending_request is not None


def _denied(seen: Observation) -> Push | PullRequest | None:
    """The last remote effect, if the forge refused it."""
    last = seen.state.pull_request or seen.state.push
    return last if last is not None and last.state is EntryState.FAILED else None


def _grant_seconds_left(seen: Observation) -> float:
    grant = grant_of(seen)
    granted_at = grant.answer.at if grant.answer is not None else ""
    age = seen.seconds_since(granted_at)
    ttl = seen.resolved.spec.approvals.grant_ttl_seconds
    return 0.0 if age is None else ttl - age
