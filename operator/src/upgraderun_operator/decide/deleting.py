"""Somebody deleted the run object: no new effect, and our finalizer goes within a minute (§13.2).

Children are collected by owner; the remote is left as it is, and an Event names it. Callers:
`decide.run`.
"""

from upgraderun_operator import limits
from upgraderun_operator.build.events import EventText
from upgraderun_operator.decide.chain import Chain
from upgraderun_operator.decide.decision import Decision, Need, Pause
from upgraderun_operator.decide.effects import Announce, DeletePod, RemoveFinalizer
from upgraderun_operator.decide.make import look, pause
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.planning import our_branch
from upgraderun_operator.decide.readings import NOT_READ, Unreadable, known
from upgraderun_operator.decide.views import RemoteView


def run_is_being_deleted(seen: Observation) -> bool:
    """Asked once somebody deleted the object, whatever else is wanted of it."""
    return seen.view.is_deleting


def nothing_holds_it(seen: Observation) -> Decision | None:
    """Without our finalizer there is nothing to do: the object is gone or other people's."""
    if seen.run.has_finalizer:
        return None
    return Decision("Deleted", "the run object was deleted", Pause(over=True))


def publisher_stops(seen: Observation) -> Decision | None:
    """A publisher that may still act is deleted and given a minute to be gone."""
    writer = seen.state.writer
    if writer is None or _age(seen) >= limits.DELETION_LOOKUP_SECONDS:
        return None
    if seen.pod is NOT_READ:
        return look(Need.POD)
    pod = known(seen.pod)
    if pod is None and not isinstance(seen.pod, Unreadable):
        return None
    if pod is not None and (pod.owner_uid != seen.view.uid or pod.uid != writer.pod_uid):
        return None
    if pod is None or pod.deleted_at is not None:
        return pause("PodGoes", "the publisher's end is awaited", limits.POLL_SECONDS)
    return Decision("PodDeleted", f"pod {pod.name} is stopped", DeletePod(pod.name, pod.uid))


def remote_is_looked_up_once(seen: Observation) -> Decision | None:
    """What may stand on the remote is read for the Event, for a minute at most."""
    if not seen.state.pushes or seen.state.proposal is None:
        return None
    for need in (Need.FROZEN, Need.REMOTE):
        reading = getattr(seen, need.value)
        if reading is NOT_READ:
            return look(need)
        if isinstance(reading, Unreadable):
            left = limits.DELETION_LOOKUP_SECONDS - _age(seen)
            return pause("RemoteAwaited", reading.cause, limits.POLL_SECONDS) if left > 0 else None
    return None


def end_is_announced(seen: Observation) -> Decision | None:
    """One Event says what stays on the remote."""
    if "deleted" in seen.announced:
        return None
    message = f"the run was deleted; {_stays(seen)}"
    event = EventText("RunDeleted", message, "deleted", warning=True)
    return Decision("RunDeleted", message, Announce(event))


def object_is_let_go(seen: Observation) -> Decision:
    """Our finalizer goes; owned objects are collected by the cluster."""
    effect = RemoveFinalizer(seen.view.raw)
    return Decision("FinalizerRemoved", "the run object is let go", effect)


DELETING = Chain(
    "deleting",
    "How does a deleted run go?",
    run_is_being_deleted,
    (
        nothing_holds_it,
        publisher_stops,
        remote_is_looked_up_once,
        end_is_announced,
        object_is_let_go,
    ),
)


def _age(seen: Observation) -> float:
    """Seconds since the deletion was asked for."""
    return seen.seconds_since(seen.run.metadata.deletion_timestamp or "") or 0.0


def _stays(seen: Observation) -> str:
    if not seen.state.pushes or seen.state.proposal is None:
        return "nothing was pushed"
    found, branch = known(seen.remote), our_branch(seen)
    if not isinstance(found, RemoteView):
        return f"branch {branch} may exist and stays as it is"
    pulls = ", ".join(f"pull request {pull.number} ({pull.state})" for pull in found.pulls)
    where = f"branch {branch} stays at {found.commit}" if found.commit else f"no branch {branch}"
    return f"{where}; {pulls}" if pulls else where
