"""A verdict that arrived by the termination message: read it, claim it (runner-protocol.md §5.3).

The message is taken like a request body: parsed strictly, and it counts only if run, pod and writer
tag are the recorded ones. Callers: `decide.loss`.
"""

from upgraderun_operator.build.events import EventText
from upgraderun_operator.decide.decision import Decision
from upgraderun_operator.decide.effects import Append
from upgraderun_operator.decide.make import DONE, append, draft
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.starting import planned_pod
from upgraderun_operator.journal.guards import AttemptIs
from upgraderun_operator.journal.writes import Change
from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.ends import EndCause
from upgraderun_protocol.entries import Draft
from upgraderun_protocol.ids import Sha256
from upgraderun_protocol.limits import OUTCOME_DATA_MESSAGE_MAX, VERDICT_BYTES_MAX
from upgraderun_protocol.messages import Verdict
from upgraderun_protocol.outcomes import OUTCOMES, ConflictKind
from upgraderun_protocol.records import RecordError, from_bytes

VERDICT_VERSION = 1


def verdict_of(seen: Observation, message: str) -> Verdict | None:
    """Read a verdict of the recorded pod; None for anything else, also for another pod's."""
    data = message.encode("utf-8", "surrogatepass")
    if len(data) > VERDICT_BYTES_MAX:
        return None
    try:
        verdict = from_bytes(Verdict, data)
    except RecordError:
        return None
    planned = planned_pod(seen)
    ours = (seen.view.uid, planned.tag, planned.pod_uid)
    if verdict.version != VERDICT_VERSION or verdict.outcome not in OUTCOMES:
        return None
    return verdict if (verdict.run_uid, verdict.writer, verdict.pod_uid) == ours else None


def verdict_decision(seen: Observation, verdict: Verdict, message: str) -> Decision:
    """Claim the verdict as `result` would: the attempt's end if the run goes on, else the run's."""
    blob = message.encode("utf-8")
    artifacts = {"verdict": sha256_of(blob)}
    if verdict.report is not None:
        artifacts["report"] = verdict.report
    stays = verdict.outcome == "proposal_prepared" and (
        seen.view.wants_publication and seen.state.proposal is not None
    )
    entry = _end(seen, verdict, artifacts) if stays else _outcome(verdict, artifacts)
    planned = planned_pod(seen)
    event = EventText(
        "VerdictHarvested",
        f"{planned.tag} left its verdict in the pod: {OUTCOMES[verdict.outcome].reason}",
        planned.tag,
    )
    effect = Append(
        Change(drafts=(entry,)),
        (AttemptIs(planned.tag, planned.pod_uid),),
        blobs=(blob,),
        events=(event,),
        name="append" if stays else "outcome",
    )
    return append(seen, "VerdictHarvested", verdict.message, effect)


def _end(seen: Observation, verdict: Verdict, artifacts: dict[str, Sha256]) -> Draft:
    data: dict[str, str | None] = {
        "cause": EndCause.VERDICT.value,
        "podUID": verdict.pod_uid,
        "exitCode": _exit_code(verdict),
        "outcome": verdict.outcome,
        "verdictId": verdict.verdict_id,
    }
    return draft(f"{planned_pod(seen).tag}/end", "end", DONE, data, artifacts)


def _outcome(verdict: Verdict, artifacts: dict[str, Sha256]) -> Draft:
    known_conflict = verdict.conflict in frozenset(kind.value for kind in ConflictKind)
    data: dict[str, str | None] = {
        "outcome": verdict.outcome,
        "podUID": verdict.pod_uid,
        "exitCode": _exit_code(verdict),
        "verdictId": verdict.verdict_id,
        "message": verdict.message[:OUTCOME_DATA_MESSAGE_MAX],
        "conflict": verdict.conflict if known_conflict else None,
        "expected": (verdict.expected or "") if known_conflict else None,
        "observed": (verdict.observed or "") if known_conflict else None,
    }
    return draft("outcome", "outcome", DONE, data, artifacts)


def _exit_code(verdict: Verdict) -> str | None:
    return str(verdict.exit_code) if 0 <= verdict.exit_code <= 255 else None
