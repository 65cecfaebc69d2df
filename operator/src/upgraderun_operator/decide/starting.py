"""From a journaled pod intent to its recorded UID: volume, Lease, pod, `done` (phase 1).

The same rules start a pod and take up a start that was cut anywhere: what exists under our name
and is ours is adopted, what is a stranger's is a conflict. Callers: `decide.run`.
"""

from upgraderun_operator import limits
from upgraderun_operator.build.claims import run_lease, workspace_claim
from upgraderun_operator.build.events import EventText
from upgraderun_operator.decide.chain import Chain
from upgraderun_operator.decide.decision import Decision, Need
from upgraderun_operator.decide.effects import (
    Append,
    CreateClaim,
    CreatePublisherPod,
    CreateRunLease,
    CreateRunnerPod,
)
from upgraderun_operator.decide.make import (
    DONE,
    Contradiction,
    append,
    conflict,
    draft,
    pause,
    quiet,
    unread,
)
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.planning import pod_manifest
from upgraderun_operator.decide.readings import ABSENT, NOT_READ, known
from upgraderun_operator.decide.views import ChildView, PodView
from upgraderun_operator.journal.records import PodRecord, Role
from upgraderun_operator.journal.writes import Change
from upgraderun_operator.model.conditions import StalledReason
from upgraderun_protocol.entries import EntryState
from upgraderun_protocol.outcomes import ConflictKind
from upgraderun_protocol.slugs import child_name


def pod_is_planned(seen: Observation) -> bool:
    """Asked while the intent of a pod stands and its UID isn't recorded."""
    writer = seen.state.writer
    return writer is not None and writer.pod_uid is None


def pod_is_a_strangers(seen: Observation) -> Decision | None:
    """A pod under the planned name that another owner made is a conflict; it isn't touched."""
    waiting = unread(seen, Need.POD)
    pod = known(seen.pod)
    if waiting is not None or pod is None or pod.owner_uid == seen.view.uid:
        return waiting
    planned = planned_pod(seen)
    found = Contradiction(
        ConflictKind.FOREIGN_POD,
        f"pod {pod.name} owned by this run",
        f"UID {pod.uid}, owner {pod.owner_uid or 'none'}",
    )
    kind = "delivery" if planned.role is Role.PUBLISHER else "attempt"
    entry = draft(planned.tag, kind, EntryState.CONFLICT, dict(found.data))
    return conflict(seen, found, (entry,))


def pod_is_there(seen: Observation) -> Decision | None:
    """Our pod under the planned name, just made or from before a crash, is recorded by its UID."""
    pod = known(seen.pod)
    if pod is None:
        return None
    planned = planned_pod(seen)
    publishes = planned.role is Role.PUBLISHER
    kind, point = ("delivery", "publisher_pod") if publishes else ("attempt", "runner_pod")
    effect = Append(
        Change(drafts=(draft(planned.tag, kind, DONE, {"podUID": pod.uid}),)),
        quiet(seen),
        events=() if publishes else (_started(planned, pod),),
        records=point,
    )
    return append(seen, "PodRecorded", f"{planned.tag} is pod {pod.name}", effect)


def volume_is_missing(seen: Observation) -> Decision | None:
    """A runner pod needs its run's volume; a stranger's under that name is a conflict."""
    if planned_pod(seen).role is not Role.RUNNER:
        return None
    waiting = _unread_child(seen, Need.CLAIM) or unread(seen, Need.FROZEN)
    if waiting is not None:
        return waiting
    claim = known(seen.claim)
    if claim is None:
        manifest = workspace_claim(seen.view.ref, seen.resolved.spec.workspace)
        return Decision("VolumeCreated", "the workspace volume is made", CreateClaim(manifest))
    return _foreign(seen, claim, ConflictKind.FOREIGN_CLAIM) or _going(claim)


def lease_is_missing(seen: Observation) -> Decision | None:
    """The run Lease exists before the pod that will hold it; a stranger's is a conflict."""
    waiting = _unread_child(seen, Need.LEASE)
    if waiting is not None:
        return waiting
    lease = known(seen.lease)
    if lease is None:
        effect = CreateRunLease(run_lease(seen.view.ref))
        return Decision("LeaseCreated", "the run Lease is made", effect)
    return _foreign(seen, lease, ConflictKind.FOREIGN_LEASE)


def pod_is_missing(seen: Observation) -> Decision | None:
    """Everything is there but the pod: it is created under its planned name."""
    waiting = unread(seen, Need.FROZEN)
    if waiting is not None:
        return waiting
    assert seen.pod is ABSENT
    planned = planned_pod(seen)
    manifest = pod_manifest(seen, planned)
    publishes = planned.role is Role.PUBLISHER
    effect = CreatePublisherPod(manifest) if publishes else CreateRunnerPod(manifest)
    return Decision("PodCreated", f"pod {planned.pod_name} is made", effect)


STARTING = Chain(
    "starting",
    "What does the planned pod need?",
    pod_is_planned,
    (
        pod_is_a_strangers,
        pod_is_there,
        volume_is_missing,
        lease_is_missing,
        pod_is_missing,
    ),
)


def planned_pod(seen: Observation) -> PodRecord:
    """The pod that was planned last."""
    pod = seen.state.last_pod
    assert pod is not None
    return pod


def last_entry(seen: Observation) -> str:
    """How far the run came, in a journal that has entries: id and state of the last one."""
    last = tuple(seen.state.fold)[-1]
    return f"{last.id} {last.state.value}"


def _unread_child(seen: Observation, need: Need) -> Decision | None:
    """Ask for a child, but not for one that surely isn't there yet: its creation will tell.

    A publisher's Lease is the runner's, so it stands: a quota that it fills would refuse to make it.
    """
    planned = planned_pod(seen)
    first = planned.role is Role.RUNNER and planned.number == 1
    fresh = first and seen.facts.wait is None
    missing = fresh and getattr(seen, need.value) is NOT_READ
    return None if missing else unread(seen, need)


def _started(planned: PodRecord, pod: PodView) -> EventText:
    message = f"runner pod {pod.name} is made; it validates the baseline next"
    return EventText("RunnerStarted", message, planned.tag)


def _foreign(seen: Observation, child: ChildView, kind: ConflictKind) -> Decision | None:
    if child.owner_uid == seen.view.uid:
        return None
    found = Contradiction(
        kind,
        f"{child_name(seen.view.ref.name, seen.view.uid)} owned by this run",
        f"UID {child.uid}, owner {child.owner_uid or 'none'}",
    )
    return conflict(seen, found)


def _going(claim: ChildView) -> Decision | None:
    """A volume that is being deleted can't be mounted; its name is free once it is gone."""
    if claim.deleted_at is None:
        return None
    message = (
        f"volume claim {claim.name} is being deleted since {claim.deleted_at}; "
        "a fresh one is made when it is gone; delete the pods that still mount it"
    )
    reason = StalledReason.STORAGE_UNAVAILABLE.value
    return pause(reason, message, limits.POLL_SECONDS, shown=True)
