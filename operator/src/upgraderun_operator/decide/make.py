"""Answers in few words: appends with the leader's guards, pauses, looks, ends of a run.

Callers: the rule modules of `decide`. Every append of the leader is guarded by its epoch, carries
that epoch into the run and clears an older wait, so no rule can forget it (reliability.md §2).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from upgraderun_operator import limits
from upgraderun_operator.build.drafts import brief, fitted
from upgraderun_operator.build.events import EventText
from upgraderun_operator.build.reports import empty_record, with_outcome
from upgraderun_operator.decide.decision import Decision, Look, Need, Pause
from upgraderun_operator.decide.effects import Append, WriteReport
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.readings import NOT_READ, Unreadable, known
from upgraderun_operator.decide.views import Malformed, ReportView
from upgraderun_operator.journal.guards import Guard, LeaderEpochAtMost, NoVerdict, SeqIs
from upgraderun_operator.journal.writes import Change
from upgraderun_operator.model.conditions import WAITS, WaitReason
from upgraderun_operator.model.report import content_of
from upgraderun_protocol.entries import Draft, EntryState
from upgraderun_protocol.ids import Sha256
from upgraderun_protocol.limits import OUTCOME_DATA_MESSAGE_MAX
from upgraderun_protocol.outcomes import CONFLICT_OUTCOMES, OUTCOMES, ConflictKind
from upgraderun_protocol.report import ReportRecord

DONE, INTENT = EntryState.DONE, EntryState.INTENT


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Journal and world side by side, as an entry tells it."""

    kind: ConflictKind
    expected: str
    observed: str

    @property
    def data(self) -> dict[str, str]:
        """Spell it as entries do."""
        return {
            "conflict": self.kind.value,
            "expected": self.expected[:160],
            "observed": self.observed[:160],
        }


@dataclass(frozen=True, slots=True)
class End:
    """How the leader ends a run: entries that come before `outcome`, and guards of the claim."""

    outcome: str
    message: str
    before: tuple[Draft, ...] = ()
    guards: tuple[Guard, ...] = ()
    conflict: Contradiction | None = None
    cause: str | None = None
    blobs: tuple[bytes, ...] = ()
    verdict: Sha256 | None = None
    data: dict[str, str] = field(default_factory=dict)
    keeps_report: bool = False


def pause(
    reason: str, message: str, after: float | None = None, *, shown: bool = False
) -> Decision:
    """Wait, for so many seconds at most."""
    return Decision(reason, message, Pause(after, shown=shown))


def look(need: Need) -> Decision:
    """Ask for a part of the world."""
    return Decision("Look", f"needs {need.value}", Look(need))


def unread(seen: Observation, *needs: Need) -> Decision | None:
    """Ask for the first of these parts that wasn't read, or wait for one that can't be read.

    None if all of them are known. Unreadable is never a verdict (DESIGN §2, principle 5).
    """
    for need in needs:
        reading = getattr(seen, need.value)
        if reading is NOT_READ:
            return look(need)
        if isinstance(reading, Unreadable):
            return unanswered(seen, reading)
    return None


def unanswered(seen: Observation, reading: Unreadable) -> Decision:
    """Wait for a world that didn't answer; people are told from the third pass in a row."""
    if reading.limited:
        named = reading.retry_after
        after = limits.FORGE_RETRY_SECONDS if named is None else named
        message = (
            f"the forge limits how often this account may ask ({reading.cause}); it is asked again "
            f"after {seen.after(after)}; {WAITS[WaitReason.FORGE_LIMITED].next_step}"
        )
        return pause(WaitReason.FORGE_LIMITED.value, message, after, shown=True)
    reason = {
        "forge": WaitReason.REMOTE_UNREACHABLE,
        "store": WaitReason.ARTIFACT_STORE_UNREACHABLE,
    }.get(reading.where, WaitReason.REMOTE_UNREACHABLE)
    shown = reading.where != "cluster" and seen.unanswered >= limits.UNANSWERED_SHOWN
    where = {"store": "artifact store"}.get(reading.where, reading.where)
    message = (
        f"the {where} didn't answer: {reading.cause}; it is asked again, at least every 5 minutes; "
        f"{WAITS[reason].next_step}"
    )
    return Decision(reason.value, message, Pause(reading.retry_after, shown=shown, backoff=True))


def append(
    seen: Observation,
    reason: str,
    message: str,
    effect: Append,
) -> Decision:
    """Append as leader: guards and epoch are added here."""
    change = replace(effect.change, leader_epoch=seen.leader, wait=None)
    guards: tuple[Guard, ...] = (LeaderEpochAtMost(seen.leader), NoVerdict(), *effect.guards)
    return Decision(reason, message, replace(effect, change=change, guards=guards))


def quiet(seen: Observation) -> tuple[Guard, ...]:
    """Guard of decisions that rest on the whole journal while nobody else writes it."""
    return (SeqIs(seen.state.seq),)


def draft(
    entry_id: str,
    kind: str,
    state: EntryState,
    data: dict[str, str | None],
    artifacts: dict[str, Sha256] | None = None,
) -> Draft:
    """Make a draft that fits into an entry."""
    return fitted(entry_id, kind, state, data, artifacts)


def end_run(seen: Observation, end: End) -> Decision:
    """Write the report, then claim the end (runner-protocol.md §6.1, leader's claim)."""
    return _report_first(seen, end) or _claim(seen, end)


def conflict(seen: Observation, found: Contradiction, before: Sequence[Draft] = ()) -> Decision:
    """End the run in a conflict: nothing is repaired, deleted or touched again."""
    message = f"{found.kind.value}: expected {found.expected}, observed {found.observed}"
    outcome = CONFLICT_OUTCOMES[found.kind]
    return end_run(seen, End(outcome, message, tuple(before), conflict=found))


def _report_first(seen: Observation, end: End) -> Decision | None:
    """People must be able to read why before the pods are gone (DESIGN §3)."""
    if end.keeps_report:
        return None
    return unread(seen, Need.RECORD, Need.REPORT) or report_decision(seen, end.outcome, end.message)


def report_decision(seen: Observation, outcome: str, message: str) -> Decision | None:
    """Write the UpgradeReport unless one with this outcome stands there, or a stranger's does."""
    report = known(seen.report)
    if isinstance(report, ReportView) and (
        report.owner_uid != seen.view.uid or report.outcome == OUTCOMES[outcome].reason
    ):
        return None
    content = content_of(_final_record(seen, outcome, message), None)
    return Decision(
        "ReportWritten", f"the report says {content.outcome}", WriteReport(content, report)
    )


def _final_record(seen: Observation, outcome: str, message: str) -> ReportRecord:
    record = known(seen.record)
    if isinstance(record, ReportRecord):
        return with_outcome(record, outcome, message)
    empty = empty_record(outcome, message)
    if isinstance(record, Malformed):
        return replace(empty, notes=(f"the runner's record can't be read: {record.message}"[:512],))
    return empty


def _claim(seen: Observation, end: End) -> Decision:
    row = OUTCOMES[end.outcome]
    artifacts = {"verdict": end.verdict} if end.verdict is not None else {}
    data: dict[str, str | None] = {
        **end.data,
        **(end.conflict.data if end.conflict else {}),
        "outcome": end.outcome,
        "cause": end.cause,
        "message": brief(end.message, OUTCOME_DATA_MESSAGE_MAX),
    }
    outcome = draft("outcome", "outcome", DONE, data, artifacts)
    effect = Append(
        Change(drafts=(*end.before, outcome)),
        end.guards,
        blobs=end.blobs,
        events=conflict_events(end.conflict),
        name="outcome",
    )
    return append(seen, row.reason, end.message, effect)


def conflict_events(found: Contradiction | None) -> tuple[EventText, ...]:
    """A contradiction is told at once, beside the Event of the end."""
    if found is None:
        return ()
    message = (
        f"{found.kind.value}: expected {found.expected}, observed {found.observed}; "
        "nothing of it is touched, a person must look"
    )
    return (EventText("Conflict", message, f"conflict/{found.kind.value}", warning=True),)
