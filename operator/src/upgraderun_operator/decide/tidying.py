"""Nobody works on the run for now: pods, run Lease and repository Lease go (upgrade-run.md §11).

Used while people are asked, while the run is suspended and between two pods. Each deletion names
the UID that the journal has. Callers: `decide.run` by `resting`, `attempts`, `ending`.
"""

from upgraderun_operator import limits
from upgraderun_operator.decide.decision import Decision, Need
from upgraderun_operator.decide.effects import DeletePod, DeleteRunLease, ReleaseRepositoryLease
from upgraderun_operator.decide.make import pause, unread
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.readings import known
from upgraderun_operator.decide.views import Holder, PodView
from upgraderun_operator.model.conditions import STALLS, StalledReason


def old_pods_go(seen: Observation, *, stuck_is_over: bool = False) -> Decision | None:
    """Delete what is left of ended pods, after 30 s for their own exit; wait until they are gone.

    `stuck_is_over`: a pod that is being deleted for more than 5 min is passed over (§6.4).
    """
    waiting = unread(seen, Need.OLD_PODS)
    if waiting is not None:
        return waiting
    for pod in known(seen.old_pods) or ():
        decision = _one_goes(seen, pod, stuck_is_over=stuck_is_over)
        if decision is not None:
            return decision
    return None


def run_lease_goes(seen: Observation) -> Decision | None:
    """Delete our run Lease; the next process makes a new one above the journal's epoch."""
    waiting = unread(seen, Need.LEASE)
    lease = known(seen.lease)
    if waiting is not None or lease is None or lease.owner_uid != seen.view.uid:
        return waiting
    if lease.deleted_at is not None:
        return None
    effect = DeleteRunLease(lease.name, lease.uid)
    return Decision("LeaseDeleted", "nobody holds the run now", effect)


def repository_goes(seen: Observation, *, frozen: str | None = None) -> Decision | None:
    """Give the repository back; `frozen` tells others which target waits for an approval."""
    waiting = unread(seen, Need.REPOSITORY)
    lease = known(seen.repository)
    if waiting is not None or lease is None or lease.holder is not Holder.OURS:
        return waiting
    effect = ReleaseRepositoryLease(seen.holder, frozen, lease)
    return Decision("RepositoryReleased", "other runs of this repository may go on", effect)


def _one_goes(seen: Observation, pod: PodView, *, stuck_is_over: bool) -> Decision | None:
    if pod.deleted_at is None:
        left = _own_exit_left(seen, pod) if pod.container == "running" else 0.0
        if left > 0:
            return pause("OwnExit", f"pod {pod.name} ends by itself", left)
        effect = DeletePod(pod.name, pod.uid)
        return Decision("PodDeleted", f"pod {pod.name} did its part", effect)
    age = seen.seconds_since(pod.deleted_at) or 0.0
    if age < limits.DELETE_STUCK_SECONDS:
        return pause("PodGoes", f"pod {pod.name} is being deleted", limits.POLL_SECONDS)
    if stuck_is_over:
        return None
    stalled = StalledReason.PREVIOUS_ATTEMPT_NOT_GONE
    message = (
        f"pod {pod.name} is being deleted since {pod.deleted_at} and may still write; "
        f"{STALLS[stalled].next_step}"
    )
    return pause(stalled.value, message, limits.DELETE_STUCK_SECONDS, shown=True)


def _own_exit_left(seen: Observation, pod: PodView) -> float:
    """Seconds that a pod still gets to end by itself after its part was over."""
    records = (*seen.state.attempts, *seen.state.deliveries)
    record = next((record for record in records if record.pod_uid == pod.uid), None)
    end = record.end.at if record is not None and record.end is not None else None
    over = seen.state.outcome.at if seen.state.outcome is not None else None
    since = end or over
    age = None if since is None else seen.seconds_since(since)
    return 0.0 if age is None else limits.OWN_EXIT_SECONDS - age
