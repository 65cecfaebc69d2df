"""`decide`: one observation in, one decision out. Pure and total (house style, point 1).

The order of the chains is the order of what may never wait: deletion, the end, contradictions,
wishes of people, then the run's own way. Callers: `reconcile`, `hack/decisions.py`.
"""

from typing import Final

from upgraderun_operator.decide.admission import ADMISSION
from upgraderun_operator.decide.approval import APPROVAL
from upgraderun_operator.decide.attempts import ATTEMPTS
from upgraderun_operator.decide.chain import Chain
from upgraderun_operator.decide.decision import Decision, Look, Pause
from upgraderun_operator.decide.deleting import DELETING
from upgraderun_operator.decide.effects import Announce, Append, WriteReport
from upgraderun_operator.decide.ending import ENDING, FINISHED
from upgraderun_operator.decide.loss import LOSS
from upgraderun_operator.decide.make import End, end_run
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.publishing import PUBLISHING
from upgraderun_operator.decide.questions import QUESTIONS
from upgraderun_operator.decide.starting import STARTING
from upgraderun_operator.decide.stopping import CANCEL, DEADLINE, SUSPEND
from upgraderun_operator.journal.guards import LeaderEpochAtMost
from upgraderun_operator.journal.writes import Change
from upgraderun_protocol.outcomes import CONFLICT_OUTCOMES, ConflictKind


def always(_seen: Observation) -> bool:
    """Asked in every pass."""
    return True


def view_is_stale(seen: Observation) -> Decision | None:
    """A look that took longer than 90 s is no information: look again."""
    if seen.fresh:
        return None
    return Decision("Stale", "the look took too long", Pause(0.0, backoff=True))


def journal_holds_a_conflict(seen: Observation) -> Decision | None:
    """A contradiction that a pod recorded ends the run, also if that pod said no more."""
    found = seen.state.conflict
    if found is None:
        return None
    outcome = CONFLICT_OUTCOMES[ConflictKind(found.kind)]
    message = f"{found.kind} in {found.entry}: expected {found.expected}, observed {found.observed}"
    return end_run(seen, End(outcome, message))


RUN: Final = Chain(
    "run",
    "What does this run need next?",
    always,
    (
        view_is_stale,
        DELETING,
        FINISHED,
        ENDING,
        journal_holds_a_conflict,
        CANCEL,
        DEADLINE,
        ADMISSION,
        SUSPEND,
        STARTING,
        LOSS,
        QUESTIONS,
        ATTEMPTS,
        APPROVAL,
        PUBLISHING,
    ),
)


def decide(seen: Observation) -> Decision:
    """Answer every observation. The leader's epoch enters the run before anything is done to it."""
    decision = RUN(seen)
    assert decision is not None, "the chains cover every state of a journal"
    return _claimed(seen, decision)


def _claimed(seen: Observation, decision: Decision) -> Decision:
    """Raise `leaderEpoch` before an effect on a run that an earlier leader acted on (DESIGN §7).

    An append carries the epoch itself; a run that nobody acted on has no older leader to fence.
    """
    known_epoch = seen.facts.leader_epoch
    if isinstance(decision.what, Pause | Look | Append | Announce | WriteReport):
        return decision
    if known_epoch is None or known_epoch >= seen.leader or seen.view.is_deleting:
        return decision
    message = f"leader {seen.leader} takes the run over from leader {known_epoch}"
    effect = Append(Change(leader_epoch=seen.leader), (LeaderEpochAtMost(seen.leader),))
    return Decision("RunTakenOver", message, effect, "run.takeover")
