"""Between two attempts: the old pod must be gone, then the next one resumes (§5.3, §13.1).

Callers: `decide.run`.
"""

from upgraderun_operator import limits
from upgraderun_operator.build.events import EventText
from upgraderun_operator.decide.admission import busy, take
from upgraderun_operator.decide.chain import Chain
from upgraderun_operator.decide.decision import Decision, Need
from upgraderun_operator.decide.effects import Append
from upgraderun_operator.decide.make import End, append, end_run, pause, quiet, unread
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.planning import next_attempt
from upgraderun_operator.decide.starting import planned_pod
from upgraderun_operator.decide.tidying import old_pods_go
from upgraderun_operator.journal.writes import Change
from upgraderun_operator.model.conditions import STALLS, StalledReason
from upgraderun_operator.model.run_spec import Mode
from upgraderun_protocol.ends import YieldReason


def attempt_has_ended(seen: Observation) -> bool:
    """Asked while no pod may write and nothing is frozen yet."""
    state = seen.state
    return bool(state.attempts) and state.writer is None and state.proposal is None


def journal_is_full(seen: Observation) -> Decision | None:
    """A runner that found the journal full would find it full again: a person must act."""
    if seen.state.parked != YieldReason.JOURNAL_FULL:
        return None
    stalled = StalledReason.JOURNAL_FULL
    message = f"the status reached its hard bound; {STALLS[stalled].next_step}"
    return pause(stalled.value, message, shown=True)


def baseline_is_not_resumed(seen: Observation) -> Decision | None:
    """Mode Baseline has one attempt: what ended it without a verdict ends the run."""
    if seen.run.spec.mode is not Mode.BASELINE or seen.state.parked is not None:
        return None
    planned = planned_pod(seen)
    words = planned.end.message if planned.end is not None else None
    message = (
        f"pod {planned.pod_name} ended without a verdict: {words or 'no message'}; "
        "mode Baseline isn't resumed"
    )
    return end_run(seen, End("runner_lost", message))


def old_pod_is_still_there(seen: Observation) -> Decision | None:
    """No new pod while the old UID exists: it may still write to the volume."""
    return old_pods_go(seen)


def runners_give_up(seen: Observation) -> Decision | None:
    """Runners that never reach the operator are no losses; from the tenth on a person must look."""
    ended = planned_pod(seen).end
    if seen.state.gave_up_in_row < limits.GAVE_UP_STALL or ended is None:
        return None
    left = limits.GAVE_UP_RETRY_SECONDS - (seen.seconds_since(ended.at) or 0.0)
    if left <= 0:
        return None
    stalled = StalledReason.RUNNER_API_UNREACHABLE
    message = (
        f"{seen.state.gave_up_in_row} runner pods in a row didn't reach the operator; "
        f"{STALLS[stalled].next_step}"
    )
    return pause(stalled.value, message, left, shown=True)


def repository_is_taken_again(seen: Observation) -> Decision | None:
    """A run that gave its repository back, to wait suspended, takes it again or waits."""
    waiting = unread(seen, Need.FROZEN, Need.REPOSITORY)
    if waiting is not None:
        return waiting
    return busy(seen) or take(seen, seen.resolved)


def next_attempt_starts(seen: Observation) -> Decision:
    """The next attempt's intent: a new pod on the same volume that resumes."""
    planned = next_attempt(seen)
    tag = planned.intent.id
    message = f"{tag} resumes where the journal ends; its pod comes next"
    effect = Append(
        Change(drafts=(planned.intent,)),
        quiet(seen),
        blobs=(planned.bundle,),
        events=(EventText("NextAttempt", message, tag),),
        same_wish=True,
    )
    return append(seen, "NextAttempt", message, effect)


ATTEMPTS = Chain(
    "attempts",
    "May the next attempt start?",
    attempt_has_ended,
    (
        journal_is_full,
        baseline_is_not_resumed,
        old_pod_is_still_there,
        runners_give_up,
        repository_is_taken_again,
        next_attempt_starts,
    ),
)
