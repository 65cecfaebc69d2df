"""`POST result`: the claim of a verdict (runner-protocol.md §6.1, §6.2).

    frozen proposal, publication wanted   ends the attempt: `<tag>/end`, cause verdict
    everything else                       ends the run: `outcome`, written once

A verdict is a claim, never an instruction: it names an outcome of the table, and what it says of
proposal and pull request must stand in the journal already. Nothing has to be revoked or sealed
yet, so a recorded verdict is answered at once; the leader finalizes by itself (§6.3).
"""

from typing import Final

from aiohttp import web

from upgraderun_operator.answers import Stored
from upgraderun_operator.api.bodies import answer, parse_message, read_body
from upgraderun_operator.api.context import Call, Tools, done_or_refuse
from upgraderun_operator.api.errors import ApiError
from upgraderun_operator.api.journal import require_artifacts
from upgraderun_operator.build.drafts import fitted
from upgraderun_operator.journal.guards import NoVerdict, SeqIs, WriterIs
from upgraderun_operator.journal.records import PodRecord, Role
from upgraderun_operator.journal.state import RunState
from upgraderun_operator.journal.writes import Change, GuardFailed
from upgraderun_protocol.ends import EndCause
from upgraderun_protocol.entries import Draft, EntryState
from upgraderun_protocol.ids import Sha256
from upgraderun_protocol.limits import OUTCOME_DATA_MESSAGE_MAX, RESULT_BODY_BYTES_MAX
from upgraderun_protocol.messages import ErrorCode, ResultResponse, Verdict
from upgraderun_protocol.outcomes import OUTCOMES, ConflictKind
from upgraderun_protocol.redact import Redactor

VERDICT_VERSION: Final = 1
_PREPARED: Final = "proposal_prepared"
_PUBLISHED: Final = "proposal_published"
_BEFORE_WORK: Final = frozenset({"attempt", "delivery", "incarnation"})


async def result(
    tools: Tools, redactor: Redactor, call: Call, request: web.Request
) -> web.Response:
    """Record a verdict, or tell what stands instead. The same verdict is answered the same way."""
    body = await read_body(request, RESULT_BODY_BYTES_MAX)
    verdict = parse_message(Verdict, body)
    pod = _speaker(call, verdict)
    if _stands(call.view.state, pod, verdict):
        return _recorded(verdict)
    _check(call, verdict)
    if verdict.report is not None:
        await require_artifacts(tools, call.view.uid, (verdict.report,))
    stored = await tools.store.put_bytes(call.view.uid, body)
    if not isinstance(stored, Stored):
        raise ApiError(ErrorCode.STORE_UNAVAILABLE, f"the verdict can't be stored: {stored}", 2)
    await _claim(tools, redactor, call, verdict, Sha256(stored.sha256))
    tools.bell.ring(call.key)
    return _recorded(verdict)


async def _claim(
    tools: Tools, redactor: Redactor, call: Call, verdict: Verdict, blob: Sha256
) -> None:
    """One guarded write. It rests on the journal as it was read, so another one is a new try."""
    assert call.caller.pod_uid is not None, "the caller's UID was compared"
    goes_on = _run_goes_on(call, verdict)
    draft = (_end if goes_on else _outcome)(call, redactor, verdict, blob)
    now = tools.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    change = Change((draft,)) if goes_on else Change((draft,), renewed_at=now)
    written = await tools.writer.guarded_write(
        call.view.ref,
        (NoVerdict(), WriterIs(call.caller.pod_uid), SeqIs(call.view.state.seq)),
        change,
    )
    if isinstance(written, GuardFailed):
        failed = written.view.state
        if isinstance(written.failure.guard, NoVerdict):
            _refuse_ended(failed, verdict)
        if isinstance(written.failure.guard, SeqIs):
            raise ApiError(ErrorCode.CONTENDED, "the run moved on; try again", 1)
    done_or_refuse(written)


def _recorded(verdict: Verdict) -> web.Response:
    return answer(ResultResponse(verdict.verdict_id, recorded=True, finalized=False))


def _speaker(call: Call, verdict: Verdict) -> PodRecord:
    """Find the pod whose verdict it is: the caller's, or one that a predecessor spooled."""
    state = call.view.state
    known = {pod.tag: pod for pod in (*state.attempts, *state.deliveries)}
    pod = next((pod for tag, pod in known.items() if tag == verdict.writer), None)
    if (
        verdict.version != VERDICT_VERSION
        or verdict.run_uid != call.view.uid
        or pod is None
        or pod.pod_uid != verdict.pod_uid
        or pod.role is not call.caller.role
    ):
        raise ApiError(ErrorCode.INVALID_REQUEST, "the verdict isn't one of this run's pods")
    return pod


def _stands(state: RunState, pod: PodRecord, verdict: Verdict) -> bool:
    """Whether exactly this verdict is recorded. Raises ApiError if another one is."""
    if state.outcome is not None:
        return _refuse_ended(state, verdict)
    if pod.end is None or pod.end.verdict_id is None:
        return False
    if pod.end.verdict_id != verdict.verdict_id:
        raise ApiError(ErrorCode.VERDICT_CONFLICT, f"{pod.tag} ended by another verdict")
    return True


def _refuse_ended(state: RunState, verdict: Verdict) -> bool:
    """True if the run ended by exactly this verdict; raises ApiError otherwise (§6.2)."""
    assert state.outcome is not None
    if state.outcome.verdict_id == verdict.verdict_id:
        return True
    if state.outcome.verdict_id is None:
        raise ApiError(ErrorCode.RUN_TERMINAL, f"the run has ended: {state.outcome.name}")
    raise ApiError(ErrorCode.VERDICT_CONFLICT, "the run ended by another verdict")


def _check(call: Call, verdict: Verdict) -> None:
    """What the verdict claims must stand in the journal; a stale one is no first act."""
    state = call.view.state
    if verdict.outcome not in OUTCOMES:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"no outcome {verdict.outcome[:64]!r}")
    if verdict.conflict is not None and verdict.conflict not in set(ConflictKind):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"no conflict {verdict.conflict[:64]!r}")
    frozen = state.proposal.digest if state.proposal else None
    if verdict.proposal_digest not in {None, frozen}:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the journal has no such proposal")
    if verdict.outcome == _PREPARED and frozen is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the journal has no frozen proposal")
    if verdict.outcome == _PUBLISHED and state.opened is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the journal has no pull request")
    if verdict.writer != call.caller.tag and not _is_first_act(state, verdict.writer):
        raise ApiError(ErrorCode.VERDICT_STALE, f"{call.caller.tag} has begun its own work")


def _is_first_act(state: RunState, tag: str) -> bool:
    """Whether nothing but the start of a successor came after a pod's end (§6.1)."""
    end = state.fold.outcome(f"{tag}/end")
    if end is None:
        return False
    return all(entry.kind in _BEFORE_WORK for entry in list(state.fold)[end.seq :])


def _run_goes_on(call: Call, verdict: Verdict) -> bool:
    """A frozen commit that shall be published ends its runner, not the run."""
    return (
        call.caller.role is Role.RUNNER
        and verdict.outcome == _PREPARED
        and call.view.wants_publication
    )


def _artifacts(verdict: Verdict, blob: Sha256) -> dict[str, Sha256]:
    return (
        {"verdict": blob} if verdict.report is None else {"verdict": blob, "report": verdict.report}
    )


def _end(call: Call, redactor: Redactor, verdict: Verdict, blob: Sha256) -> Draft:
    return fitted(
        f"{call.caller.tag}/end",
        "end",
        EntryState.DONE,
        {
            "cause": EndCause.VERDICT.value,
            "outcome": verdict.outcome,
            "verdictId": verdict.verdict_id,
            "message": redactor.redact(verdict.message, OUTCOME_DATA_MESSAGE_MAX),
        },
        _artifacts(verdict, blob),
    )


def _outcome(call: Call, redactor: Redactor, verdict: Verdict, blob: Sha256) -> Draft:
    """Pod, exit code and whole texts stand in the verdict's artifact; the entry has ≤ 512 bytes.

    A conflict that has its own entry isn't repeated: the room is for the words that people read.
    """
    conflict = verdict.conflict if call.view.state.conflict is None else None

    def shown(text: str | None) -> str | None:
        return None if text is None else redactor.redact(text, OUTCOME_DATA_MESSAGE_MAX)

    return fitted(
        "outcome",
        "outcome",
        EntryState.DONE,
        {
            "outcome": verdict.outcome,
            "verdictId": verdict.verdict_id,
            "message": shown(verdict.message),
            "conflict": conflict,
            "expected": shown(verdict.expected) if conflict else None,
            "observed": shown(verdict.observed) if conflict else None,
        },
        _artifacts(verdict, blob),
    )
