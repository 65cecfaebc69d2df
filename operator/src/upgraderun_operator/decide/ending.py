"""Phase 15: the ordered end of a run (runner-protocol.md §6.4).

Each step is skipped by what it left in the world, never by a list beside it; `finalized` comes when
nothing is left. After a conflict only our own pods, Leases and finalizer go. Callers: `decide.run`.
"""

from typing import Final

from upgraderun_operator.build.events import EventText
from upgraderun_operator.decide.chain import Chain
from upgraderun_operator.decide.decision import Decision, Need, Pause
from upgraderun_operator.decide.effects import Announce, Append, DeleteClaim, RemoveFinalizer
from upgraderun_operator.decide.make import DONE, draft, report_decision, unread
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.readings import known
from upgraderun_operator.decide.tidying import old_pods_go, repository_goes, run_lease_goes
from upgraderun_operator.journal.guards import LeaderEpochAtMost
from upgraderun_operator.journal.records import Outcome
from upgraderun_operator.journal.writes import Change
from upgraderun_operator.model.conflicts import CONFLICTS, next_step_of
from upgraderun_protocol.limits import MESSAGE_MAX
from upgraderun_protocol.outcomes import OUTCOMES, ConflictKind

_SHOWN: Final = frozenset({"proposal_published"})
"""Ends whose report stays what people approved."""


def run_is_finalized(seen: Observation) -> bool:
    """Asked once `finalized` stands."""
    return seen.state.finalized_at is not None


def nothing_is_left(_seen: Observation) -> Decision:
    """A finalized run is never touched again."""
    return Decision("Finished", "nothing is left to do", Pause(over=True))


FINISHED = Chain("finished", "Is anything left?", run_is_finalized, (nothing_is_left,))


def outcome_stands(seen: Observation) -> bool:
    """Asked while an outcome stands and the run isn't finalized."""
    return seen.state.outcome is not None


def report_says_the_end(seen: Observation) -> Decision | None:
    """The UpgradeReport tells why, also when the runner left no record of its own."""
    outcome = ended(seen)
    if outcome.name in _SHOWN:
        return None
    waiting = unread(seen, Need.RECORD, Need.REPORT)
    return waiting or report_decision(seen, outcome.name, _words(seen, outcome))


def end_is_announced(seen: Observation) -> Decision | None:
    """One Event tells the outcome and what a person can do next."""
    outcome = ended(seen)
    row = OUTCOMES[outcome.name]
    key = f"outcome/{outcome.name}"
    if key in seen.announced:
        return None
    # The entry's message is cut to its room; people get the whole words, and what to do last.
    conflict = seen.state.conflict
    step = next_step_of(outcome.name, None if conflict is None else conflict.kind)
    words = _words(seen, outcome)[: MESSAGE_MAX - len(step) - 2]
    message = f"{words}; {step}"
    event = EventText(row.reason, message, key, warning=not row.succeeded)
    return Decision(row.reason, message, Announce(event))


def volume_goes(seen: Observation) -> Decision | None:
    """The workspace volume goes, unless a conflict makes it evidence."""
    if seen.state.conflict is not None or seen.state.admission is None:
        return None
    waiting = unread(seen, Need.CLAIM)
    claim = known(seen.claim)
    if waiting is not None or claim is None:
        return waiting
    if claim.owner_uid != seen.view.uid or claim.deleted_at is not None:
        return None
    effect = DeleteClaim(claim.name, claim.uid)
    return Decision("VolumeDeleted", "the workspace isn't needed any more", effect)


def pods_go(seen: Observation) -> Decision | None:
    """Our pods go last of all effects, after half a minute for their own exit."""
    if seen.state.admission is None:
        return None
    return old_pods_go(seen, stuck_is_over=True)


def leases_go(seen: Observation) -> Decision | None:
    """The run Lease and the repository Lease are free again."""
    admitted = seen.state.admission is not None
    return (run_lease_goes(seen) if admitted else None) or repository_goes(seen)


def object_is_let_go(seen: Observation) -> Decision | None:
    """Our finalizer goes before the last entry, so that nothing has to come after it."""
    if not seen.run.has_finalizer:
        return None
    effect = RemoveFinalizer(seen.view.raw)
    return Decision("FinalizerRemoved", "the run object may be deleted", effect)


def run_is_over(seen: Observation) -> Decision:
    """The last entry: nothing of the run is left but report, Events and the run itself."""
    entry = draft("finalized", "finalized", DONE, {})
    change = Change(drafts=(entry,), leader_epoch=seen.leader, renewed_at=seen.stamp, wait=None)
    effect = Append(change, (LeaderEpochAtMost(seen.leader),), name="finalized")
    return Decision("Finalized", "the run is over", effect)


ENDING = Chain(
    "ending",
    "What is left of an ended run?",
    outcome_stands,
    (
        report_says_the_end,
        end_is_announced,
        volume_goes,
        pods_go,
        leases_go,
        object_is_let_go,
        run_is_over,
    ),
)


def ended(seen: Observation) -> Outcome:
    """The outcome; only where it stands."""
    outcome = seen.state.outcome
    assert outcome is not None
    return outcome


def _words(seen: Observation, outcome: Outcome) -> str:
    """The end in a sentence: the runner's own words where its record ends the same way.

    Else what the report says of this end: an entry has room for the beginning only. A contradiction
    is told by what it means, both sides beside each other.
    """
    conflict = seen.state.conflict
    if conflict is not None:
        meaning, push = CONFLICTS[ConflictKind(conflict.kind)].meaning, seen.state.push
        branch = "" if push is None else f" (branch {push.branch})"
        return f"{meaning}{branch}: expected {conflict.expected}, observed {conflict.observed}"
    record, report = known(seen.record), known(seen.report)
    own = getattr(record, "message", "") if getattr(record, "outcome", "") == outcome.name else ""
    reason = OUTCOMES[outcome.name].reason
    if report is not None and (report.owner_uid, report.outcome) == (seen.view.uid, reason):
        own = own or report.message
    return own or outcome.message or reason
