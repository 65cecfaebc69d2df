"""The operator's endpoints as typed calls (runner-protocol.md §1.5), with patience for outages (§1.8).

Callers: journal, lease and verdict of this package, and the start of a process. It turns refusals that
end a process into `Fenced`, `Terminal`, `Yielded` and `GaveUp`; everything else stays a TransportError.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from upgraderun_protocol.bundle import Bundle
from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.entries import Draft
from upgraderun_protocol.ids import Sha256
from upgraderun_protocol.limits import (
    OUTAGE_PATIENCE_SECONDS,
    OUTAGE_PAUSE_SECONDS,
    PROTOCOL_VERSION,
)
from upgraderun_protocol.messages import (
    ArtifactRef,
    ErrorCode,
    HelloRequest,
    HelloResponse,
    JournalAppendRequest,
    JournalAppendResponse,
    JournalReadResponse,
    LeaseRequest,
    LeaseResponse,
    MintedToken,
    ProtocolRange,
    PushTokenRequest,
    ResultResponse,
    WorkspaceMessage,
)
from upgraderun_protocol.records import RecordError, from_bytes, from_json, to_bytes
from upgraderun_runner.client.transport import BodyFactory, Seams, Transport
from upgraderun_runner.errors import Fenced, GaveUp, RunnerError, Terminal, TransportError, Yielded

T = TypeVar("T")
VERSION: Final = "0.1.0"


class AnswerUnreadable(RunnerError):  # noqa: N818 - names what it is
    """The operator answered 200 with something that isn't the promised message."""


class OperatorClient:
    """One run's endpoints. Every method may be repeated; the server recognises replays."""

    def __init__(self, transport: Transport, seams: Seams) -> None:
        self._transport = transport
        self._seams = seams

    async def hello(self, boot_nonce: str) -> HelloResponse:
        """Claim the run for this process; waits while the Lease is held by another (§1.6)."""
        request = HelloRequest(
            ProtocolRange(PROTOCOL_VERSION, PROTOCOL_VERSION), boot_nonce, VERSION
        )
        answer = await self._patiently(
            lambda: self._transport.call("POST", "hello", _json(request))
        )
        response = _read(HelloResponse, answer)
        self._transport.speak_for(response.epoch)
        return response

    async def bundle(self, expected: ArtifactRef) -> Bundle:
        """Read what this pod is told. Raises AnswerUnreadable if it isn't what `hello` named."""
        content = await self._patiently(lambda: self._transport.fetch_bytes("GET", "bundle"))
        if sha256_of(content) != expected.sha256:
            raise AnswerUnreadable(
                f"the bundle has digest {sha256_of(content)}, hello named {expected.sha256}"
            )
        try:
            return from_bytes(Bundle, content)
        except RecordError as error:
            raise AnswerUnreadable(f"the bundle is none: {error}") from error

    async def fix_base(self, base: WorkspaceMessage) -> WorkspaceMessage:
        """Tell base commit and tree; the first value stands for ever (§1.5)."""
        answer = await self._patiently(
            lambda: self._transport.call("POST", "workspace", _json(base))
        )
        return _read(WorkspaceMessage, answer)

    async def append(self, drafts: Sequence[Draft]) -> JournalAppendResponse:
        """Append all drafts or none; equal ones that stand already are replays."""
        request = JournalAppendRequest(tuple(_draft(draft) for draft in drafts))
        answer = await self._patiently(
            lambda: self._transport.call("POST", "journal", _json(request))
        )
        return _read(JournalAppendResponse, answer)

    async def entries(self, after: int) -> JournalReadResponse:
        """Read at most 100 entries after a `seq`."""
        answer = await self._patiently(
            lambda: self._transport.call("GET", f"journal?after={after}")
        )
        return _read(JournalReadResponse, answer)

    async def put_artifact(self, content: bytes) -> Sha256:
        """Store bytes under their digest; there already is fine."""
        digest = sha256_of(content)
        answer = await self._patiently(
            lambda: self._transport.call("PUT", f"artifacts/{digest}", lambda: content)
        )
        stored = _read(ArtifactRef, answer)
        assert stored == ArtifactRef(digest, len(content)), "the store names what it was given"
        return digest

    async def get_artifact(self, digest: Sha256) -> bytes:
        """Read an artifact of this run; raises TransportError with status 404 if there is none."""
        content = await self._patiently(
            lambda: self._transport.fetch_bytes("GET", f"artifacts/{digest}")
        )
        if sha256_of(content) != digest:
            raise AnswerUnreadable(f"artifact {digest} has other bytes: {sha256_of(content)}")
        return content

    async def has_artifact(self, digest: Sha256) -> bool:
        """Whether an artifact of this run is stored."""
        return await self._patiently(lambda: self._transport.exists(f"artifacts/{digest}"))

    async def push_token(self, request: PushTokenRequest) -> MintedToken:
        """Get another token of the forge. A refusal is raised as it is: its code decides."""
        answer = await self._patiently(
            lambda: self._transport.call("POST", "push-token", _json(request))
        )
        return _read(MintedToken, answer)

    async def renew(self, boot_nonce: str) -> LeaseResponse:
        """Renew the run Lease once; no patience, the caller comes again soon anyway."""
        try:
            answer = await self._transport.call("PUT", "lease", _json(LeaseRequest(boot_nonce)))
        except TransportError as error:
            raise _translated(error) from error
        return _read(LeaseResponse, answer)

    async def post_result(self, verdict: bytes) -> ResultResponse:
        """Post a verdict's bytes. Raises the TransportError as it is: its code decides (§6.2)."""
        answer = await self._transport.call("POST", "result", lambda: verdict)
        return _read(ResultResponse, answer)

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call again after each spent budget, until the operator was silent for too long."""
        while True:
            try:
                return await call()
            except TransportError as error:
                if not error.is_outage:
                    raise _translated(error) from error
                silent = self._seams.monotonic() - self._transport.last_answer
                if silent >= OUTAGE_PATIENCE_SECONDS:
                    raise GaveUp(
                        f"the operator was silent for {silent:.0f} s; last: {error}"
                    ) from error
                await self._seams.sleep(OUTAGE_PAUSE_SECONDS)


def _translated(error: TransportError) -> RunnerError:
    if error.is_fenced:
        return Fenced(str(error))
    if error.is_recorded:
        return Terminal(str(error))
    if error.code == ErrorCode.JOURNAL_FULL.value:
        return Yielded("journal_full", str(error))
    return error


def _draft(draft: Draft) -> dict[str, object]:
    return {
        "id": draft.id,
        "kind": draft.kind,
        "state": draft.state.value,
        "data": dict(draft.data),
        "artifacts": dict(draft.artifacts),
    }


def _json(message: object) -> BodyFactory:
    content = to_bytes(message)
    return lambda: content


def _read(kind: type[T], value: object) -> T:
    try:
        return from_json(kind, value)
    except RecordError as error:
        raise AnswerUnreadable(f"{kind.__name__}: {error}") from error
