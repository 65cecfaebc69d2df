"""The one place that sends to the operator: classes of loss, budgets, retries (runner-protocol.md §2).

Callers: `client.operator` alone. A call names method and path; the policy table decides about
replay, so nothing outside this module takes a policy, a budget or a retry argument (§1.7).
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import httpx

from upgraderun_protocol import retry
from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.effects import FaultPoint, Position, no_fault
from upgraderun_protocol.endpoints import EndpointPolicy, endpoint_key, policy_for
from upgraderun_protocol.limits import PROTOCOL_VERSION
from upgraderun_protocol.messages import (
    HEADER_EPOCH,
    HEADER_PROTOCOL,
    HEADER_REQUEST,
    HEADER_SHA256,
    HEADER_TRY,
)
from upgraderun_protocol.records import RecordError, parse_json
from upgraderun_protocol.redact import Redactor
from upgraderun_runner import limits
from upgraderun_runner.errors import LossClass, TransportError

BodyFactory = Callable[[], bytes | AsyncIterator[bytes]]
"""Called for each attempt: a generator that is used twice would send an empty body (§2.1)."""

_UNDELIVERED: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_AMBIGUOUS: Final = (
    httpx.ReadError,
    httpx.ReadTimeout,
    httpx.WriteError,
    httpx.WriteTimeout,
    httpx.CloseError,
    httpx.RemoteProtocolError,
    httpx.DecodingError,
)
WIRE: Final[Mapping[tuple[str, str], str]] = {
    ("POST", "hello"): "lease_acquire",
    ("POST", "workspace"): "base",
    ("POST", "journal"): "append_entries",
    ("PUT", "artifacts"): "artifact",
    ("POST", "result"): "verdict",
}
"""Calls that are effects, by endpoint. A renewal only moves a time, a minted token is the operator's."""

_TRANSIENT_STATUS: Final = frozenset({500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Seams:
    """Clock, sleep and chance of the process; `main` makes them, tests hand in their own.

    `jitter` is in [0, 1); `new_id` gives 32 random hex digits. `wire` carries HTTP where there is no
    network (the simulated world); None is the network.
    """

    monotonic: Callable[[], float]
    now: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]]
    jitter: Callable[[], float]
    new_id: Callable[[], str]
    wire: httpx.AsyncBaseTransport | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """Where the operator is and how this pod proves who it is. `base_url` ends with the run UID."""

    base_url: str
    token_file: Path
    ca_file: Path | None


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer: status, headers, and the body as far as it was wanted."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True, slots=True)
class _Loss:
    """One failed attempt."""

    loss: LossClass
    text: str
    status: int | None = None
    code: str | None = None
    retry_after: str | None = None


class _AnswerUnusable(Exception):  # noqa: N818 - internal to one attempt
    """A 200 that can't be believed: no length, wrong digest, too long."""

    def __init__(self, loss: LossClass, text: str) -> None:
        super().__init__(text)
        self.loss = loss


class Transport:
    """Calls to one run's endpoints with the retries of §2.2. One per process; close it at the end."""

    def __init__(
        self, target: Target, seams: Seams, redactor: Redactor, fault: FaultPoint = no_fault
    ) -> None:
        self._target = target
        self._fault = fault
        self._seams = seams
        self._redactor = redactor
        self._client: httpx.AsyncClient | None = None
        self._distrusted = False
        self._token = ""
        self._epoch: int | None = None
        self._last_answer = seams.monotonic()

    @property
    def last_answer(self) -> float:
        """Monotonic time of the operator's last answer of any status; the start if none came."""
        return self._last_answer

    def speak_for(self, epoch: int) -> None:
        """Send this epoch with every later call."""
        self._epoch = epoch

    async def aclose(self) -> None:
        """Give the connections back."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def call(self, method: str, path: str, body: BodyFactory | None = None) -> Any:
        """Send JSON or bytes, return the decoded JSON of the answer (None for an empty one).

        Raises TransportError; cancellation and an outer timeout pass untouched.
        """
        reply = await self._exchange(method, path, body, as_bytes=False)
        if not reply.content:
            return None
        try:
            return parse_json(reply.content)
        except RecordError as error:
            raise TransportError(
                f"{method} {path}",
                LossClass.FATAL,
                attempts=1,
                elapsed_ms=0,
                answer=(reply.status, None),
                text=f"the answer is no JSON: {error}",
            ) from error

    async def fetch_bytes(self, method: str, path: str) -> bytes:
        """Read bytes; their length and `UpgradeRun-SHA256` were checked in each attempt."""
        return (await self._exchange(method, path, None, as_bytes=True)).content

    async def exists(self, path: str) -> bool:
        """Ask with HEAD whether there is something; 404 is an answer here."""
        try:
            await self._exchange("HEAD", path, None, as_bytes=False)
        except TransportError as error:
            if error.status == 404:
                return False
            raise
        return True

    async def _exchange(
        self, method: str, path: str, body: BodyFactory | None, *, as_bytes: bool
    ) -> Reply:
        """Run the algorithm of §2.2 around single attempts."""
        call = _Call(
            method,
            path,
            policy_for(method, path),
            started=self._seams.monotonic(),
            request_id=self._seams.new_id()[:16],
        )
        token_renewed = False
        self._at(call, Position.BEFORE)
        while True:
            outcome = await self._attempt(call, body, as_bytes=as_bytes)
            if isinstance(outcome, Reply):
                if not self._at(call, Position.REPLY_LOST):
                    self._at(call, Position.APPLIED)
                    return outcome
                outcome = _Loss(LossClass.AMBIGUOUS, "the answer was lost")
            if outcome.status == 401 and not token_renewed and self._token_changed():
                token_renewed = True
                continue
            wait = self._wait_before_retry(call, outcome)
            if wait is None:
                raise self._failure(call, outcome)
            await self._seams.sleep(wait / 1000)

    def _at(self, call: "_Call", position: Position) -> bool:
        effect = WIRE.get(endpoint_key(call.method, call.path))
        return effect is not None and bool(self._fault(effect, position))

    def _wait_before_retry(self, call: "_Call", loss: _Loss) -> int | None:
        """Milliseconds until the next try, or None to give up (§2.2 steps 1 to 3)."""
        if loss.loss is LossClass.FATAL:
            return None
        after = retry.retry_after_ms(loss.retry_after, self._seams.now())
        if loss.loss is LossClass.LIMITED:
            if call.limited_retries >= retry.LIMITED_RETRIES:
                return None
            call.limited_retries += 1
            return retry.RETRY_AFTER_DEFAULT_MS if after is None else after
        if loss.loss is LossClass.AMBIGUOUS and not call.policy.replay_safe:
            return None
        elapsed = round((self._seams.monotonic() - call.started) * 1000)
        wait = retry.next_wait_ms(
            transient_retries=call.transient_retries,
            jitter=self._seams.jitter(),
            retry_after=after,
            remaining_ms=call.policy.budget_seconds * 1000 - elapsed,
        )
        call.transient_retries += wait is not None
        return wait

    def _failure(self, call: "_Call", loss: _Loss) -> TransportError:
        return TransportError(
            f"{call.method} {call.path}",
            loss.loss,
            attempts=call.attempts,
            elapsed_ms=round((self._seams.monotonic() - call.started) * 1000),
            answer=None if loss.status is None else (loss.status, loss.code),
            text=self._redactor.redact(loss.text, 512),
        )

    async def _attempt(
        self, call: "_Call", body: BodyFactory | None, *, as_bytes: bool
    ) -> Reply | _Loss:
        """One attempt, reading of the body included, and its class (§2.1)."""
        try:
            return await self._send(call, body, as_bytes=as_bytes)
        except (asyncio.CancelledError, TimeoutError):
            raise
        except _AnswerUnusable as error:
            return _Loss(error.loss, str(error), status=200)
        except Exception as error:  # noqa: BLE001 - the one place where a failed send is classified
            if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes(error)):
                self._distrusted = True
            return _Loss(classify(error), _describe(error))
        finally:
            call.attempts += 1

    async def _send(
        self, call: "_Call", body: BodyFactory | None, *, as_bytes: bool
    ) -> Reply | _Loss:
        content = body() if body is not None else None
        client = await self._connected()
        request = client.build_request(
            call.method,
            f"{self._target.base_url}/{call.path}",
            content=content,
            headers=self._headers(call),
            timeout=_timeout(call, content),
        )
        response = await client.send(request, stream=True)
        try:
            self._last_answer = self._seams.monotonic()
            if response.status_code != 200:
                return await _refused(response)
            return await _whole(response, as_bytes=as_bytes, head=call.method == "HEAD")
        finally:
            await response.aclose()

    async def _connected(self) -> httpx.AsyncClient:
        """The client; made anew with the CA file of now after a certificate was refused."""
        if self._distrusted:
            await self.aclose()
            self._distrusted = False
        if self._client is None:
            self._client = httpx.AsyncClient(
                verify=_tls(self._target.ca_file) if self._seams.wire is None else True,
                transport=self._seams.wire,
                trust_env=False,
                follow_redirects=False,
                headers={"Accept-Encoding": "identity"},
            )
        return self._client

    def _headers(self, call: "_Call") -> dict[str, str]:
        self._token = self._read_token()
        self._redactor.register(self._token)
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": call.content_type,
            HEADER_PROTOCOL: str(PROTOCOL_VERSION),
            HEADER_REQUEST: call.request_id,
            HEADER_TRY: str(call.attempts),
        }
        if self._epoch is not None:
            headers[HEADER_EPOCH] = str(self._epoch)
        return headers

    def _read_token(self) -> str:
        return self._target.token_file.read_text(encoding="ascii").strip()

    def _token_changed(self) -> bool:
        return self._read_token() != self._token


@dataclass(slots=True)
class _Call:
    """Counters of one call; `request_id` is the same for all its tries."""

    method: str
    path: str
    policy: EndpointPolicy
    started: float
    request_id: str
    attempts: int = 0
    transient_retries: int = 0
    limited_retries: int = 0

    @property
    def content_type(self) -> str:
        is_raw = endpoint_key(self.method, self.path) == ("PUT", "artifacts")
        return "application/octet-stream" if is_raw else "application/json"


def classify(error: BaseException) -> LossClass:
    """Class of a failed send by its outermost type alone (§2.1).

    Every httpx timeout has a CancelledError among its causes: searching the chain would take it for
    the caller's own.
    """
    if isinstance(error, _UNDELIVERED):
        return LossClass.UNDELIVERED
    return LossClass.AMBIGUOUS if isinstance(error, _AMBIGUOUS) else LossClass.FATAL


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Walk causes, contexts and members of groups, each once: for the log and for the CA rule."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if isinstance(current, BaseExceptionGroup):
            waiting.extend(current.exceptions)
        waiting.extend(c for c in (current.__cause__, current.__context__) if c is not None)


def _describe(error: BaseException) -> str:
    names = dict.fromkeys(
        f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
        for cause in _causes(error)
    )
    return "; ".join(list(names)[:4])


def _timeout(call: _Call, content: object) -> httpx.Timeout:
    """Timeouts of one attempt (§2)."""
    read = limits.READ_SECONDS
    if endpoint_key(call.method, call.path)[1] == "result":
        read = limits.RESULT_READ_SECONDS
    if isinstance(content, bytes) and len(content) > limits.LARGE_UPLOAD_BYTES:
        read = limits.LARGE_UPLOAD_READ_SECONDS
    return httpx.Timeout(
        connect=limits.CONNECT_SECONDS,
        pool=limits.POOL_SECONDS,
        write=limits.WRITE_SECONDS,
        read=read,
    )


def _tls(ca_file: Path | None) -> ssl.SSLContext | bool:
    return True if ca_file is None else ssl.create_default_context(cafile=str(ca_file))


async def _read(response: httpx.Response, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_raw():
        size += len(part)
        if size > limit:
            raise _AnswerUnusable(LossClass.FATAL, f"the answer is longer than {limit} bytes")
        parts.append(part)
    return b"".join(parts)


async def _whole(response: httpx.Response, *, as_bytes: bool, head: bool) -> Reply:
    """Read a 200 and believe it only if its length was announced and its digest fits (§1.4)."""
    headers = {name.lower(): value for name, value in response.headers.items()}
    announced = "content-length" in headers or "chunked" in headers.get("transfer-encoding", "")
    if not announced:
        raise _AnswerUnusable(LossClass.AMBIGUOUS, "a 200 without length may be cut")
    if head:
        return Reply(200, headers, b"")
    content = await _read(response, limits.BYTES_READ_MAX if as_bytes else limits.JSON_READ_MAX)
    if as_bytes and headers.get(HEADER_SHA256.lower()) != sha256_of(content):
        raise _AnswerUnusable(LossClass.AMBIGUOUS, "the bytes don't have the announced SHA-256")
    return Reply(200, headers, content)


async def _refused(response: httpx.Response) -> _Loss:
    """Class of an answer that is no 200; its error body is read as part of the attempt."""
    status = response.status_code
    code, text = _error_of(await _read(response, limits.ERROR_BODY_READ_MAX))
    if status == 429:
        loss = LossClass.LIMITED
    else:
        loss = LossClass.AMBIGUOUS if status in _TRANSIENT_STATUS else LossClass.FATAL
    return _Loss(loss, text, status, code, response.headers.get("Retry-After"))


def _error_of(content: bytes) -> tuple[str | None, str]:
    """Code and message of an error body; (None, its beginning) for anything else."""
    try:
        value = json.loads(content)
        error = value["error"]
        code, message = error["code"], error["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None, content[:200].decode("utf-8", "replace")
    if not isinstance(code, str) or not isinstance(message, str):
        return None, content[:200].decode("utf-8", "replace")
    return code[:64], message
