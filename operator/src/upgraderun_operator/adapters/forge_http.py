"""One bounded call to a forge's REST API over aiohttp, and what its refusals mean.

Callers: `forge` and `forge_tokens`. The credential goes to the policy's API host and nowhere else,
redirects aren't followed (H22). A forge that doesn't answer, limits or breaks is Unreadable; only a
definite no is a refusal. What a limit says is remembered, so that nobody asks again too early.
"""

import asyncio
import json
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

import aiohttp

from upgraderun_operator.decide.readings import Unreadable
from upgraderun_operator.decide.views import DestinationRefused
from upgraderun_protocol.forge_limits import is_limit, limit_seconds, named_seconds
from upgraderun_protocol.limits import MIB

CALL_SECONDS: Final = 15.0
ANSWER_BYTES_MAX: Final = 8 * MIB
LIMITS_KEPT_MAX: Final = 256
_MOVED: Final = re.compile(r"/repositories/([0-9]{1,20})(?:/.*)?")


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that tells something: its status, and decoded JSON."""

    status: int
    body: Any


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: `account` names whose limit is spent, `authorization` is the header's value."""

    api_url: str
    account: str
    authorization: str | None


class Stop(Exception):  # noqa: N818 - carries an answer, not an error
    """Ends a look with what is to be answered; never leaves the adapters.

    `moved_to` is the forge's own number of a repository that has another name now.
    """

    def __init__(self, reading: DestinationRefused | Unreadable, moved_to: str = "") -> None:
        super().__init__(str(reading))
        self.reading = reading
        self.moved_to = moved_to


class ForgeCalls:
    """Calls to forges. Async context manager around one connection pool.

    One for the whole process: what a limit said to one caller of an account holds for all.
    """

    def __init__(self, tls: ssl.SSLContext | bool = True) -> None:
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None
        self._limited: dict[tuple[str, str], float] = {}

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._tls, limit=16),
            timeout=aiohttp.ClientTimeout(total=CALL_SECONDS, sock_connect=5),
            headers={
                "Accept": "application/vnd.github+json",
                "User-Agent": "upgraderun-operator",
                "X-GitHub-Api-Version": "2022-11-28",
            },
            trust_env=False,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(
        self,
        caller: Caller,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        accepts: frozenset[int] = frozenset({HTTPStatus.OK, HTTPStatus.NOT_FOUND}),
    ) -> Reply:
        """Send one request below the API's URL; raises Stop unless its status is accepted."""
        assert self._session is not None, "ForgeCalls is used inside `async with` only"
        where = f"{method} {path.partition('?')[0]}"
        self._refuse_early(caller, where)
        headers = {} if caller.authorization is None else {"Authorization": caller.authorization}
        url = f"{caller.api_url.rstrip('/')}{path}"
        try:
            async with self._session.request(
                method, url, headers=headers, json=body, allow_redirects=False
            ) as answer:
                data = await answer.content.read(ANSWER_BYTES_MAX + 1)
                while not answer.content.at_eof() and len(data) <= ANSWER_BYTES_MAX:
                    data += await answer.content.read(ANSWER_BYTES_MAX + 1)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Stop(Unreadable("forge", f"{where}: {type(error).__name__}")) from error
        value = _decoded(data)
        self._refuse_limit(caller, answer, value, where)
        if answer.status not in accepts:
            raise _refusal(answer, value, where)
        if not isinstance(value, dict | list):
            raise Stop(Unreadable("forge", f"{where}: {_unreadable(caller, data)}"))
        return Reply(answer.status, value)

    def _refuse_early(self, caller: Caller, where: str) -> None:
        """Asking again before the time that a limit named may get the account locked out."""
        key = (caller.api_url, caller.account)
        left = self._limited.get(key, 0.0) - asyncio.get_running_loop().time()
        if left > 0:
            raise Stop(Unreadable("forge", f"{where}: limited", left, limited=True))
        self._limited.pop(key, None)

    def _refuse_limit(
        self, caller: Caller, answer: aiohttp.ClientResponse, body: Any, where: str
    ) -> None:
        if not is_limit(answer.status, answer.headers, body):
            return
        seconds = limit_seconds(answer.headers)
        self._limited[caller.api_url, caller.account] = asyncio.get_running_loop().time() + seconds
        while len(self._limited) > LIMITS_KEPT_MAX:
            del self._limited[next(iter(self._limited))]
        cause = f"{where}: {answer.status}, limited"
        raise Stop(Unreadable("forge", cause, seconds, limited=True))


def _refusal(answer: aiohttp.ClientResponse, body: Any, where: str) -> Stop:
    """Sort the statuses: 5xx tell nothing, 401, 403 and redirects are definite."""
    status = answer.status
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Stop(Unreadable("forge", f"{where}: {status}", named_seconds(answer.headers)))
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return Stop(
            DestinationRefused(
                f"the forge refuses the push token ({status}); give it contents and pull "
                f"requests, write, of this repository{said(body)}"
            )
        )
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        moved = _MOVED.search(urlsplit(answer.headers.get("Location", "")).path)
        words = f"the forge redirects ({status}): the repository was renamed or moved"
        return Stop(DestinationRefused(words), moved[1] if moved else "")
    return Stop(Unreadable("forge", f"{where}: {status}{said(body)}"))


def said(body: Any) -> str:
    """Quote the forge's own words, short; empty if it said none."""
    text = body.get("message") if isinstance(body, dict) else None
    return f": {text[:160]}" if isinstance(text, str) and text else ""


def _decoded(data: bytes) -> Any:
    if len(data) > ANSWER_BYTES_MAX:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _unreadable(caller: Caller, data: bytes) -> str:
    """Say what is wrong with an answer that is no JSON object; a wrong URL is the usual reason."""
    if len(data) > ANSWER_BYTES_MAX:
        return f"more than {ANSWER_BYTES_MAX} bytes"
    words = "the answer is no JSON object"
    if urlsplit(caller.api_url).path.strip("/"):
        return words
    return (
        f"{words}; is spec.forge.apiURL of the policy right? The API of GitHub Enterprise Server "
        "is https://HOST/api/v3"
    )
