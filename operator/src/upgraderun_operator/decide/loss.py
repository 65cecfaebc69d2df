"""Is the writer's pod still there? The two-observation rule (runner-protocol.md §5).

A verdict that can't be taken back needs two looks, the run's grace apart, and a compare-and-set
against what the first one wrote (reliability.md I12). Callers: `decide.run`.
"""

from upgraderun_operator import limits
from upgraderun_operator.build.events import EventText
from upgraderun_operator.decide.chain import Chain
from upgraderun_operator.decide.clock import active_seconds_left
from upgraderun_operator.decide.decision import Decision, Need
from upgraderun_operator.decide.effects import Append
from upgraderun_operator.decide.make import (
    DONE,
    Contradiction,
    End,
    append,
    draft,
    end_run,
    pause,
    unread,
)
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.readings import known
from upgraderun_operator.decide.sights import Evidence, Sight, evidence, held_back_by, sight
from upgraderun_operator.decide.starting import last_entry, planned_pod
from upgraderun_operator.decide.verdicts import verdict_decision, verdict_of
from upgraderun_operator.decide.views import Terminated
from upgraderun_operator.journal.guards import AttemptIs, Guard, StampIs
from upgraderun_operator.journal.records import Role
from upgraderun_operator.journal.writes import Change
from upgraderun_operator.model.conditions import STALLS, WAITS, StalledReason, WaitReason
from upgraderun_operator.model.run_spec import Mode
from upgraderun_protocol.ends import LOSSES, EndCause
from upgraderun_protocol.entries import Draft
from upgraderun_protocol.ids import PodUid
from upgraderun_protocol.outcomes import ConflictKind

_DEAD = frozenset({Sight.EXITED, Sight.LOST, Sight.FOREIGN})


def pod_is_recorded(seen: Observation) -> bool:
    """Asked while a pod with a recorded UID may speak for the run."""
    writer = seen.state.writer
    return writer is not None and writer.pod_uid is not None


def pod_is_unread(seen: Observation) -> Decision | None:
    """Without an answer about the pod there is no stamp, no clearing and no verdict."""
    return unread(seen, Need.POD, Need.FROZEN)


def node_is_silent(seen: Observation) -> Decision | None:
    """A pod whose node says nothing may still write: no verdict, a person is told after 5 min."""
    pod = known(seen.pod)
    if _sight(seen) is not Sight.SILENT or pod is None:
        return None
    assert pod.silent_at is not None
    age = seen.seconds_since(pod.silent_at) or 0.0
    message = (
        f"pod {pod.name} can't be judged, its node is silent since {pod.silent_at}; "
        f"{STALLS[StalledReason.PREVIOUS_ATTEMPT_NOT_GONE].next_step}"
    )
    reason = StalledReason.PREVIOUS_ATTEMPT_NOT_GONE.value
    left = limits.NODE_SILENT_SECONDS - age
    if left > 0:
        return pause(reason, message, left)
    return pause(reason, message, limits.NODE_SILENT_SECONDS, shown=True)


def pod_left_its_verdict(seen: Observation) -> Decision | None:
    """A valid verdict in the termination message is a delivered verdict: no window, no loss."""
    pod = known(seen.pod)
    if _sight(seen) is not Sight.EXITED or pod is None:
        return None
    if not isinstance(pod.container, Terminated):
        return None
    verdict = verdict_of(seen, pod.container.message)
    return None if verdict is None else verdict_decision(seen, verdict, pod.container.message)


def pod_is_back(seen: Observation) -> Decision | None:
    """A pod that is there after all loses its loss stamp."""
    if _sight(seen) in _DEAD or _stamp(seen) is None:
        return None
    effect = Append(_stamped(seen, None), _same_pod(seen))
    return append(seen, "LossCleared", "the pod is there after all", effect)


def pod_is_starting(seen: Observation) -> Decision | None:
    """A pod that doesn't start is never lost: people are told what holds it back."""
    pod = known(seen.pod)
    if _sight(seen) is not Sight.STARTING or pod is None:
        return None
    age = seen.seconds_since(pod.created_at) or 0.0
    if age < limits.POD_PENDING_SHOWN_SECONDS:
        return pause(
            WaitReason.POD_PENDING.value,
            f"pod {pod.name} starts",
            limits.POD_PENDING_SHOWN_SECONDS - age,
        )
    reason, words = held_back_by(pod)
    if age < limits.POD_STARTING_SECONDS:
        message = (
            f"pod {pod.name} hasn't started since {pod.created_at}: {words}; "
            f"{WAITS[WaitReason.POD_PENDING].next_step}"
        )
        left = limits.POD_STARTING_SECONDS - age
        return pause(WaitReason.POD_PENDING.value, message, left, shown=True)
    message = f"pod {pod.name} can't start: {words}; {STALLS[reason].next_step}"
    return pause(reason.value, message, limits.POD_STARTING_SECONDS, shown=True)


def lease_is_held_by_an_earlier_process(seen: Observation) -> Decision | None:
    """A new process waits until the Lease of an earlier one expires, and people see why."""
    pod, planned = known(seen.pod), planned_pod(seen)
    if _sight(seen) is not Sight.ALIVE or pod is None or planned.epoch is not None:
        return None
    age = seen.seconds_since(pod.created_at) or 0.0
    if seen.state.epoch == 0 or age < limits.LEASE_HELD_SHOWN_SECONDS:
        return None
    message = (
        f"pod {pod.name} runs and waits for the run Lease, which an earlier process held; "
        "nothing to do: it is free 30 s after that process was heard last"
    )
    return pause(WaitReason.LEASE_HELD.value, message, limits.LEASE_HELD_SHOWN_SECONDS, shown=True)


def pod_is_alive(seen: Observation) -> Decision | None:
    """A living pod works; the run looks again at its deadline."""
    if _sight(seen) is not Sight.ALIVE:
        return None
    left = active_seconds_left(seen)
    return pause("Working", f"{planned_pod(seen).tag} works", left)


def pod_is_seen_dead_for_the_first_time(seen: Observation) -> Decision | None:
    """The first look at a pod that ended or vanished only opens the window."""
    if _age(seen) is not None:
        return None
    effect = Append(_stamped(seen, seen.stamp), _same_pod(seen))
    return append(seen, "LossObserved", f"{planned_pod(seen).tag} seems lost", effect)


def window_is_open(seen: Observation) -> Decision | None:
    """Inside the grace nothing happens; the run wakes at its very end."""
    age, grace = _age(seen), seen.resolved.spec.recovery.loss_grace_seconds
    if age is None or age >= grace:
        return None
    return pause("LossWindow", f"judged {grace} s after the first look", grace - age)


def name_belongs_to_another_pod(seen: Observation) -> Decision | None:
    """Another pod under the recorded name, seen twice, is a conflict; the stranger stays."""
    pod = known(seen.pod)
    if _sight(seen) is not Sight.FOREIGN or pod is None:
        return None
    found = Contradiction(
        ConflictKind.FOREIGN_POD, f"pod {pod.name} with UID {_uid(seen)}", f"UID {pod.uid}"
    )
    return _end_in_conflict(seen, found)


def fenced_without_successor(seen: Observation) -> Decision | None:
    """A pod that says it was fenced, while nobody took over, contradicts the journal."""
    if evidence(seen.pod, _uid(seen)).cause is not EndCause.FENCED:
        return None
    tag = planned_pod(seen).tag
    found = Contradiction(
        ConflictKind.FENCED_WITHOUT_SUCCESSOR,
        f"an incarnation after {tag} in the journal",
        f"{tag} exited as fenced, none follows",
    )
    return _end_in_conflict(seen, found)


def losses_are_used_up(seen: Observation) -> Decision | None:
    """Baseline mode ends with the first lost runner, every mode at its limits of losses."""
    facts = evidence(seen.pod, _uid(seen))
    planned = planned_pod(seen)
    if facts.cause not in LOSSES:
        return None
    words = _too_many(seen, planned.role)
    if words is None:
        return None
    message = (
        f"pod {planned.pod_name} is lost: {facts.message}; {words}; last entry {last_entry(seen)}"
    )
    end = End("runner_lost", message, (_end_entry(seen, facts),), _same_pod(seen))
    return end_run(seen, end)


def pod_is_lost(seen: Observation) -> Decision:
    """The second look, a grace later, ends the pod's part; the next one resumes its work."""
    facts, planned = evidence(seen.pod, _uid(seen)), planned_pod(seen)
    message = f"{planned.tag} ended: {facts.message}"
    event = EventText("PodLost", f"{message}; the next pod goes on", planned.tag, warning=True)
    effect = Append(Change(drafts=(_end_entry(seen, facts),)), _same_pod(seen), events=(event,))
    return append(seen, "PodLost", message, effect)


LOSS = Chain(
    "loss",
    "Is the pod that may write still there?",
    pod_is_recorded,
    (
        pod_is_unread,
        node_is_silent,
        pod_left_its_verdict,
        pod_is_back,
        pod_is_starting,
        lease_is_held_by_an_earlier_process,
        pod_is_alive,
        pod_is_seen_dead_for_the_first_time,
        window_is_open,
        name_belongs_to_another_pod,
        fenced_without_successor,
        losses_are_used_up,
        pod_is_lost,
    ),
)


def _uid(seen: Observation) -> PodUid:
    uid = planned_pod(seen).pod_uid
    assert uid is not None
    return uid


def _sight(seen: Observation) -> Sight:
    return sight(seen.pod, _uid(seen))


def _stamp(seen: Observation) -> str | None:
    publishes = planned_pod(seen).role is Role.PUBLISHER
    return seen.facts.delivery_lost_at if publishes else seen.facts.attempt_lost_at


def _age(seen: Observation) -> float | None:
    """Age of the stamp; None if there is none, or none that can be read."""
    stamp = _stamp(seen)
    return None if stamp is None else seen.seconds_since(stamp)


def _stamped(seen: Observation, value: str | None) -> Change:
    if planned_pod(seen).role is Role.PUBLISHER:
        return Change(delivery_lost_at=value)
    return Change(attempt_lost_at=value)


def _same_pod(seen: Observation) -> tuple[Guard, ...]:
    """The claim counts only for the pod and the stamp that were read before the probe."""
    planned = planned_pod(seen)
    return (AttemptIs(planned.tag, planned.pod_uid), StampIs(planned.tag, _stamp(seen)))


def _end_entry(seen: Observation, facts: Evidence) -> Draft:
    planned = planned_pod(seen)
    data: dict[str, str | None] = {
        "cause": facts.cause.value,
        "podUID": planned.pod_uid,
        "exitCode": None if facts.exit_code is None else str(facts.exit_code),
        "reason": facts.reason[:64] or None,
        "message": facts.message,
    }
    return draft(f"{planned.tag}/end", "end", DONE, data)


def _end_in_conflict(seen: Observation, found: Contradiction) -> Decision:
    facts = evidence(seen.pod, _uid(seen))
    message = f"{found.kind.value}: expected {found.expected}, observed {found.observed}"
    end = End(
        "cluster_conflict",
        message,
        (_end_entry(seen, facts),),
        _same_pod(seen),
        conflict=found,
    )
    return end_run(seen, end)


def _too_many(seen: Observation, role: Role) -> str | None:
    """Say which limit this loss reaches, or None."""
    if role is Role.RUNNER and seen.run.spec.mode is Mode.BASELINE:
        return "mode Baseline isn't resumed"
    runner = role is Role.RUNNER
    count = seen.state.attempt_losses if runner else seen.state.delivery_losses
    total, in_row = seen.resolved.lost_attempts, seen.resolved.consecutive_lost_attempts
    if count.total + 1 >= total:
        return f"that is loss {count.total + 1} of at most {total}"
    if count.in_row + 1 >= in_row:
        return f"that is loss {count.in_row + 1} in a row without progress, of at most {in_row}"
    return None
