"""Wishes of people and of the clock: cancel, deadline, suspend (upgrade-run.md §3; protocol §9).

Cancel works in every state: no new effect, and what may stand on the remote is looked up, never
repeated. Callers: `decide.run`.
"""

from upgraderun_operator import limits
from upgraderun_operator.decide.chain import Chain
from upgraderun_operator.decide.clock import active_seconds
from upgraderun_operator.decide.decision import Decision, Need
from upgraderun_operator.decide.effects import Append, DeletePod
from upgraderun_operator.decide.make import (
    DONE,
    End,
    append,
    draft,
    end_run,
    pause,
    unread,
)
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.planning import our_branch
from upgraderun_operator.decide.readings import known
from upgraderun_operator.decide.sights import Sight, sight
from upgraderun_operator.decide.starting import last_entry, planned_pod
from upgraderun_operator.decide.tidying import old_pods_go, repository_goes, run_lease_goes
from upgraderun_operator.decide.views import DestinationRefused, FoundPull, RemoteView
from upgraderun_operator.journal.guards import AttemptIs
from upgraderun_operator.journal.records import Role
from upgraderun_operator.journal.writes import Change
from upgraderun_operator.model.conditions import LiveReason
from upgraderun_protocol.ends import EndCause
from upgraderun_protocol.entries import Draft, EntryState
from upgraderun_protocol.ids import CommitId


def cancel_is_wanted(seen: Observation) -> bool:
    """Asked while `spec.cancel` is set and no outcome stands."""
    return seen.view.wants_cancel


def nothing_was_pushed(seen: Observation) -> Decision | None:
    """Before the first push intent nothing can stand on the remote: the run ends at once."""
    if seen.state.pushes:
        return None
    return end_run(seen, End("cancelled", "cancelled; nothing was pushed"))


def publisher_is_stopped(seen: Observation) -> Decision | None:
    """A publisher that may be at work is deleted and gone before anybody looks at the remote."""
    writer = seen.state.writer
    if writer is None:
        return old_pods_go(seen)
    waiting = unread(seen, Need.POD)
    if waiting is not None:
        return waiting
    return _stop_pod(seen) or _ended(seen, "cancelled")


def remote_is_unread(seen: Observation) -> Decision | None:
    """What stands on the remote must be known, so that the end can say it."""
    return unread(seen, Need.FROZEN, Need.REMOTE)


def pull_request_is_open(seen: Observation) -> Decision | None:
    """A pull request of ours that stands there is the end of the run: the cancel came too late."""
    found, pull = known(seen.remote), _ours(seen)
    if pull is None or not isinstance(found, RemoteView):
        return None
    message = f"pull request {pull.number} was open before the cancel; close it there"
    before = (*_settled_push(seen, found), *_settled_pull(seen, pull))
    return end_run(seen, End("proposal_published", message, before, keeps_report=True))


def rest_is_named(seen: Observation) -> Decision:
    """Without a pull request the run ends cancelled, naming the branch if it exists."""
    found = known(seen.remote)
    branch = our_branch(seen)
    if isinstance(found, RemoteView):
        what = "doesn't exist" if found.commit is None else f"stays at {found.commit}"
        message = f"cancelled; branch {branch} {what}"
        return end_run(seen, End("cancelled", message, _settled_push(seen, found)))
    assert isinstance(found, DestinationRefused)
    message = f"cancelled; whether branch {branch} exists isn't known: {found.message}"
    return end_run(seen, End("cancelled", message))


CANCEL = Chain(
    "cancel",
    "How does a cancelled run end?",
    cancel_is_wanted,
    (
        nothing_was_pushed,
        publisher_is_stopped,
        remote_is_unread,
        pull_request_is_open,
        rest_is_named,
    ),
)


def deadline_has_passed(seen: Observation) -> bool:
    """Asked while a runner may work and its time is used up."""
    writer = seen.state.writer
    runs = writer is not None and writer.role is Role.RUNNER
    return runs and active_seconds(seen) >= seen.run.spec.active_deadline_seconds


def run_took_too_long(seen: Observation) -> Decision:
    """Time with a live attempt is bounded; waiting for people or queues is free."""
    seconds = seen.run.spec.active_deadline_seconds
    message = (
        f"active for {int(active_seconds(seen))} s, at most {seconds} s were allowed; last entry "
        f"{last_entry(seen)}"
    )
    return end_run(seen, End("deadline_exceeded", message))


DEADLINE = Chain(
    "deadline", "Has the run worked for too long?", deadline_has_passed, (run_took_too_long,)
)


def suspend_is_wanted(seen: Observation) -> bool:
    """Asked while `spec.suspend` is set."""
    return seen.view.wants_suspend


def pod_has_not_begun(seen: Observation) -> Decision | None:
    """A pod that has said no `hello` is deleted; its part is over without a loss."""
    writer = seen.state.writer
    if writer is None or writer.epoch is not None:
        return None
    waiting = unread(seen, Need.POD)
    if waiting is not None:
        return waiting
    return _stop_pod(seen) or _ended(seen, "suspended")


def step_in_hand_ends(seen: Observation) -> Decision | None:
    """A working pod ends its step and parks itself; after three minutes it is deleted."""
    writer = seen.state.writer
    if writer is None:
        return None
    waiting = unread(seen, Need.POD)
    if waiting is not None:
        return waiting
    assert writer.pod_uid is not None
    if sight(seen.pod, writer.pod_uid) is not Sight.ALIVE:
        return None
    left = _suspend_patience(seen)
    if left > 0:
        message = f"{writer.tag} ends its step and parks itself"
        return pause(LiveReason.SUSPENDED.value, message, left, shown=True)
    return _stop_pod(seen)


def stopped_pod_is_gone(seen: Observation) -> Decision | None:
    """A pod that was deleted for the suspend and is gone did not get lost."""
    writer = seen.state.writer
    if writer is None or not _is_suspend_shown(seen) or _suspend_patience(seen) > 0:
        return None
    assert writer.pod_uid is not None
    if sight(seen.pod, writer.pod_uid) is not Sight.LOST:
        return None
    return _ended(seen, "suspended")


def nothing_is_held(seen: Observation) -> Decision | None:
    """A suspended run holds no pod and no Lease, and waits."""
    if seen.state.writer is not None:
        return None
    return (
        old_pods_go(seen)
        or run_lease_goes(seen)
        or repository_goes(seen, frozen=frozen_target(seen))
        or pause(LiveReason.SUSPENDED.value, "set spec.suspend to false to go on")
    )


SUSPEND = Chain(
    "suspend",
    "How does a suspended run come to rest?",
    suspend_is_wanted,
    (pod_has_not_begun, step_in_hand_ends, stopped_pod_is_gone, nothing_is_held),
)


def frozen_target(seen: Observation) -> str | None:
    """Target that a frozen, unfinished run keeps others from proposing (DESIGN §7)."""
    proposal = seen.state.proposal
    if proposal is None or not seen.view.wants_publication:
        return None
    return f"{proposal.target.name}@{proposal.target.to_version}"


def _stop_pod(seen: Observation) -> Decision | None:
    """Delete the writer's pod and wait until it is gone; None once it is, or was never ours."""
    pod = known(seen.pod)
    planned = planned_pod(seen)
    if pod is None or pod.owner_uid != seen.view.uid:
        return None
    if planned.pod_uid is not None and pod.uid != planned.pod_uid:
        return None
    if pod.deleted_at is not None:
        return pause("PodGoes", f"pod {pod.name} is being deleted", limits.POLL_SECONDS)
    return Decision("PodDeleted", f"pod {pod.name} is stopped", DeletePod(pod.name, pod.uid))


def _ended(seen: Observation, reason: str) -> Decision:
    planned = planned_pod(seen)
    data: dict[str, str | None] = {
        "cause": EndCause.STOPPED.value,
        "podUID": planned.pod_uid,
        "reason": reason,
    }
    entry = draft(f"{planned.tag}/end", "end", DONE, data)
    effect = Append(Change(drafts=(entry,)), (AttemptIs(planned.tag, planned.pod_uid),))
    return append(seen, "PodStopped", f"{planned.tag} is stopped: {reason}", effect)


def _is_suspend_shown(seen: Observation) -> bool:
    wait = seen.facts.wait
    return wait is not None and wait.reason == LiveReason.SUSPENDED.value


def _suspend_patience(seen: Observation) -> float:
    """Seconds that the step in hand still gets, counted from when people were told."""
    wait = seen.facts.wait
    if wait is None or not _is_suspend_shown(seen):
        return limits.SUSPEND_PATIENCE_SECONDS
    return limits.SUSPEND_PATIENCE_SECONDS - (seen.seconds_since(wait.since) or 0.0)


def _ours(seen: Observation) -> FoundPull | None:
    found, proposal = known(seen.remote), seen.state.proposal
    if not isinstance(found, RemoteView) or proposal is None:
        return None
    standing = {"open", "merged"}
    return next(
        (
            pull
            for pull in found.pulls
            if pull.ours and pull.state in standing and pull.head == proposal.commit
        ),
        None,
    )


def _settled_push(seen: Observation, found: RemoteView) -> tuple[Draft, ...]:
    push = seen.state.push
    if push is None or push.state is not None:
        return ()
    if found.commit == push.commit:
        data: dict[str, str | None] = {"commit": push.commit, "found": "true"}
        return (draft(push.id, "push", DONE, data),)
    data = {"reason": "cancelled", "message": f"found {found.commit or 'no branch'}"}
    return (draft(push.id, "push", EntryState.INTERRUPTED, data),)


def _settled_pull(seen: Observation, pull: FoundPull) -> tuple[Draft, ...]:
    if seen.state.opened is not None:
        return ()
    last = seen.state.pull_request
    open_one = last is not None and last.state is None
    entry_id = last.id if open_one and last else f"pr/{len(seen.state.pull_requests) + 1}"
    repository = seen.resolved.repository
    data: dict[str, str | None] = {
        "number": str(pull.number),
        "state": pull.state,
        "commit": CommitId(pull.head),
        "url": f"{repository.origin}/{repository.path}/pull/{pull.number}",
        "found": "true",
    }
    return (draft(entry_id, "pullRequest", DONE, data),)
