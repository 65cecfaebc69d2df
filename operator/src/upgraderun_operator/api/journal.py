"""`POST journal`, `GET journal`, `POST workspace`, `PUT lease`: what a working process calls (§1.5)."""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from aiohttp import web

from upgraderun_operator.answers import Absent, StoreDown
from upgraderun_operator.api.bodies import answer, read_message
from upgraderun_operator.api.context import Call, Tools, done_or_refuse
from upgraderun_operator.api.errors import ApiError
from upgraderun_operator.api.run_lease import RunLeases
from upgraderun_operator.build.leases import holder_of
from upgraderun_operator.journal.guards import EpochIs, Guard, MayPublish, NoVerdict, WriterIs
from upgraderun_operator.journal.run import RunView
from upgraderun_operator.journal.writes import Change, Contradicted
from upgraderun_protocol.canonical import is_git_id
from upgraderun_protocol.ends import EndCause, YieldReason
from upgraderun_protocol.entries import (
    Draft,
    EntryError,
    EntryState,
    draft_from_json,
    entry_from_draft,
)
from upgraderun_protocol.ids import EntryId, PodUid, RunUid, Sha256
from upgraderun_protocol.kinds import check_draft
from upgraderun_protocol.limits import (
    ENTRIES_PER_READ_MAX,
    JOURNAL_BODY_BYTES_MAX,
    LEASE_BODY_BYTES_MAX,
    RUN_LEASE_SECONDS,
    WORKSPACE_BODY_BYTES_MAX,
)
from upgraderun_protocol.messages import (
    Accepted,
    ErrorCode,
    Head,
    JournalAppendRequest,
    JournalAppendResponse,
    JournalReadResponse,
    LeaseRequest,
    LeaseResponse,
    WorkspaceMessage,
)

_WORST_SEQ: Final = 99_999
_TAG: Final = re.compile(r"[ad][1-9][0-9]*")
_REMOTE: Final = frozenset({"push", "pullRequest"})
_YIELDS: Final = frozenset(reason.value for reason in YieldReason)


async def append(tools: Tools, call: Call, request: web.Request) -> web.Response:
    """Append all drafts or none, for the writer, under its epoch."""
    message = await read_message(JournalAppendRequest, request, JOURNAL_BODY_BYTES_MAX)
    drafts = tuple(_draft(call, value) for value in message.entries)
    if not drafts:
        raise ApiError(ErrorCode.INVALID_REQUEST, "no entries")
    await require_artifacts(
        tools, call.view.uid, (digest for draft in drafts for digest in draft.artifacts.values())
    )
    result = await tools.writer.guarded_write(
        call.view.ref, (*_guards(call), *_publishes(drafts)), Change(drafts, call.epoch)
    )
    done = done_or_refuse(result)
    if any(draft.kind == "end" for draft in drafts):
        tools.bell.ring(call.key)
    accepted = tuple(
        Accepted(item.entry.id, item.entry.seq, item.entry.draft.content, item.replayed)
        for item in done.placed
    )
    return answer(JournalAppendResponse(accepted, head_of(done.view)))


async def read(call: Call, request: web.Request) -> web.Response:
    """At most 100 entries after a `seq`, and the head."""
    text = request.query.get("after", "0")
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise ApiError(ErrorCode.INVALID_REQUEST, "after is a whole number")
    entries = list(call.view.state.fold)[int(text) : int(text) + ENTRIES_PER_READ_MAX]
    return answer(
        JournalReadResponse(tuple(entry.to_json() for entry in entries), head_of(call.view))
    )


async def workspace(tools: Tools, call: Call, request: web.Request) -> web.Response:
    """Fix base commit and tree once; the equal value is a replay, another one a mismatch."""
    message = await read_message(WorkspaceMessage, request, WORKSPACE_BODY_BYTES_MAX)
    commit, tree = message.base_commit.lower(), message.base_tree.lower()
    if not is_git_id(commit) or not is_git_id(tree):
        raise ApiError(ErrorCode.INVALID_REQUEST, "commit and tree have 40 hex digits each")
    admission = call.view.state.admission
    if admission is not None and admission.base_commit not in {None, commit}:
        raise ApiError(
            ErrorCode.WORKSPACE_BASE_MISMATCH,
            f"admission fixed commit {admission.base_commit}, not {commit}",
        )
    base = Draft(EntryId("base"), "base", EntryState.DONE, {"commit": commit, "tree": tree})
    result = await tools.writer.guarded_write(
        call.view.ref, _guards(call), Change((base,), call.epoch)
    )
    if isinstance(result, Contradicted):
        raise ApiError(ErrorCode.WORKSPACE_BASE_MISMATCH, result.message)
    done_or_refuse(result)
    return web.json_response({"baseCommit": commit, "baseTree": tree})


async def lease(tools: Tools, leases: RunLeases, call: Call, request: web.Request) -> web.Response:
    """Renew the run Lease of this process, and tell what people want."""
    message = await read_message(LeaseRequest, request, LEASE_BODY_BYTES_MAX)
    await leases.renew(call, holder_of(_pod_uid(call), message.boot_nonce))
    now = tools.clock.now()
    expires = now + timedelta(seconds=RUN_LEASE_SECONDS)
    return answer(
        LeaseResponse(
            epoch=call.epoch,
            expires_at=expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
            server_time=now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            suspend=call.view.wants_suspend,
            cancel=call.view.wants_cancel,
        )
    )


def head_of(view: RunView) -> Head:
    """End of the journal's chain."""
    return Head(view.state.seq, view.journal.digest, view.state.epoch)


async def require_artifacts(tools: Tools, run_uid: RunUid, digests: Iterable[Sha256]) -> None:
    """No entry names an artifact that isn't stored. Raises ApiError `artifact_missing`."""
    for digest in dict.fromkeys(digests):
        match await tools.store.head(run_uid, digest):
            case Absent():
                raise ApiError(ErrorCode.ARTIFACT_MISSING, f"artifact {digest} isn't stored")
            case StoreDown(cause):
                raise ApiError(ErrorCode.STORE_UNAVAILABLE, cause, 2)
            case _:
                pass


def _guards(call: Call) -> tuple[Guard, ...]:
    return (NoVerdict(), WriterIs(_pod_uid(call)), EpochIs(call.epoch))


def _publishes(drafts: Iterable[Draft]) -> tuple[Guard, ...]:
    """What begins a remote effect is checked again in its own write (upgrade-run.md §12)."""
    return tuple(
        MayPublish(draft.id, draft.data["commit"])
        for draft in drafts
        if draft.kind in _REMOTE and draft.state is EntryState.INTENT
    )


def _pod_uid(call: Call) -> PodUid:
    assert call.caller.pod_uid is not None, "the caller's UID was compared"
    return call.caller.pod_uid


def _draft(call: Call, value: Mapping[str, Any]) -> Draft:
    """Read one draft and check it: shape, kind, writer, size, and that it speaks for itself."""
    try:
        _check_fields(value)
        draft = draft_from_json(value)
        check_draft(draft, call.writer_kind)
        _check_own(call, draft)
        entry_from_draft(
            draft,
            seq=_WORST_SEQ,
            at="0000-00-00T00:00:00Z",
            attempt=call.caller.tag,
            epoch=call.epoch,
        )
    except EntryError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from error
    return draft


def _check_fields(value: Mapping[str, Any]) -> None:
    if unknown := sorted(set(value) - {"id", "kind", "state", "data", "artifacts"}):
        raise EntryError(f"an entry has no field {unknown[0][:64]!r}")


def _check_own(call: Call, draft: Draft) -> None:
    """A pod ends itself only, and only by yielding: verdicts come by `result`, losses are judged."""
    head = draft.id.partition("/")[0]
    if _TAG.fullmatch(head) and head != call.caller.tag:
        raise EntryError(f"entry {draft.id!r}: {call.caller.tag} doesn't speak for {head}")
    if draft.kind == "end":
        reason = draft.data.get("reason")
        if draft.data["cause"] != EndCause.YIELD or reason not in _YIELDS:
            raise EntryError(f"entry {draft.id!r}: a pod ends itself by cause yield with a reason")
        if (reason == YieldReason.AWAITING_APPROVAL) != ("question" in draft.artifacts):
            raise EntryError(f"entry {draft.id!r}: who asks names the question, nobody else does")
        if (reason == YieldReason.ANOTHER_PYTHON) != ("python" in draft.data):
            raise EntryError(f"entry {draft.id!r}: who needs another Python says which")
