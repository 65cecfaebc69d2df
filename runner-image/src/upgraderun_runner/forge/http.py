"""The only HTTP client for the forge (style.md §9.4): bounded, no redirects, one host.

Callers: `forge.github`. A transport error, a 5xx, a limit or an unreadable body is `NoAnswer`.
"""

import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httpx

from upgraderun_protocol.forge_limits import is_limit, limit_seconds, named_seconds
from upgraderun_runner.forge import limits

Monotonic = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Reply:
    """The forge answered below 500, no limit; `body` is decoded JSON, None if there was none.

    A redirect is such an answer too: it isn't followed, and says that the repository moved.
    """

    status: int
    body: Any


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """No verdict: transport error, 5xx, limit. `retry_after_seconds` is obeyed."""

    reason: str
    retry_after_seconds: int | None = None


class WritePacer:
    """Keeps writes to one host at least `interval_seconds` apart; git push and API share one."""

    def __init__(
        self,
        monotonic: Monotonic,
        sleep: Sleep,
        interval_seconds: float = limits.WRITE_INTERVAL_SECONDS,
    ) -> None:
        self._monotonic = monotonic
        self._sleep = sleep
        self._interval = interval_seconds
        self._last: float | None = None

    async def wait(self) -> None:
        """Return when the next write may start. Call `finished` when it ended."""
        if self._last is not None:
            pause = self._last + self._interval - self._monotonic()
            if pause > 0:
                await self._sleep(pause)
        self._last = self._monotonic()

    def finished(self) -> None:
        """Count the interval from the end of the write."""
        self._last = self._monotonic()


class ForgeHttp:
    """JSON over HTTPS to one API root that the policy names; the token goes nowhere else (H22)."""

    def __init__(
        self,
        api_url: str,
        token: str,
        *,
        pacer: WritePacer,
        tls: ssl.SSLContext | bool = True,
        wire: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Without `wire` calls go through the network."""
        self._pacer = pacer
        self._client = httpx.AsyncClient(
            base_url=api_url.rstrip("/"),
            verify=tls,
            transport=wire,
            trust_env=False,
            follow_redirects=False,
            timeout=limits.HTTP_TIMEOUT_SECONDS,
            headers={
                "Accept": "application/vnd.github+json",
                "Authorization": f"Bearer {token}",
                "User-Agent": "upgraderun-publisher",
                "X-GitHub-Api-Version": "2022-11-28",
            },
        )

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Reply | NoAnswer:
        """Read; repeatable."""
        return await self._call("GET", path, query=query)

    async def post(self, path: str, body: Mapping[str, Any]) -> Reply | NoAnswer:
        """Write once, at its pace; never repeated by itself."""
        await self._pacer.wait()
        try:
            return await self._call("POST", path, body=body)
        finally:
            self._pacer.finished()

    async def delete(self, path: str) -> Reply | NoAnswer:
        """Delete; repeating it changes nothing."""
        return await self._call("DELETE", path)

    async def close(self) -> None:
        """Give the connections back."""
        await self._client.aclose()

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Reply | NoAnswer:
        try:
            async with self._client.stream(method, path, params=query, json=body) as response:
                content = await _read(response)
        except httpx.HTTPError as error:
            return NoAnswer(f"{method} {path}: {type(error).__name__}")
        if content is None:
            return NoAnswer(f"{method} {path}: more than {limits.ANSWER_BYTES_MAX} bytes")
        return _judge(f"{method} {path}", response, content)


async def _read(response: httpx.Response) -> bytes | None:
    content = bytearray()
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > limits.ANSWER_BYTES_MAX:
            return None
    return bytes(content)


def _judge(what: str, response: httpx.Response, content: bytes) -> Reply | NoAnswer:
    status = response.status_code
    body = _decode(content)
    if is_limit(status, response.headers, body):
        return NoAnswer(f"{what}: limited ({status})", limit_seconds(response.headers))
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return NoAnswer(f"{what}: {status}", named_seconds(response.headers))
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return Reply(status, body)
    if body is None and status != HTTPStatus.NO_CONTENT and content:
        return NoAnswer(f"{what}: {status} with a body that is no JSON")
    return Reply(status, body)


def _decode(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        return None
