"""The credential of this pod for the git host and the forge: mounted, minted, or none.

Callers: `run` and `publish`. A minted token lives in this object only; it is renewed before it grows
old, and given back as soon as it isn't needed any more (security.md H18, H19).
"""

import ssl
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Final

from upgraderun_protocol.limits import FORGE_TOKEN_MARGIN_SECONDS
from upgraderun_protocol.messages import ErrorCode, HelloResponse, MintedToken
from upgraderun_protocol.redact import Redactor
from upgraderun_runner.errors import TransportError
from upgraderun_runner.forge.http import ForgeHttp, NoAnswer, WritePacer
from upgraderun_runner.workspace.git import Credential

TOKEN_USER: Final = "x-access-token"  # noqa: S105 - the user name that goes with a token
_MARGIN: Final = timedelta(seconds=FORGE_TOKEN_MARGIN_SECONDS)
_REFUSALS: Final = frozenset({ErrorCode.FORGE_DENIED, ErrorCode.PUBLICATION_HELD})


class TokenRefused(Exception):  # noqa: N818 - names how it is handled
    """The operator gives no token: the forge, or a wish of people, says no."""

    def __init__(self, message: str, *, held: bool) -> None:
        super().__init__(message)
        self.held = held


Mint = Callable[[], Awaitable[MintedToken]]


class Credentials:
    """Gives the credential that holds now, for the repository's own origin and no other (H22)."""

    def __init__(
        self,
        hello: HelloResponse,
        file: Path | None,
        origin: str,
        redactor: Redactor,
        now: Callable[[], datetime],
    ) -> None:
        self._kind = hello.clone_credential
        self._minted = hello.clone_token
        self._file = file
        self._origin = origin
        self._redactor = redactor
        self._now = now
        if self._minted is not None:
            redactor.register(self._minted.token)

    async def get(self, mint: Mint | None = None) -> Credential | None:
        """Give it, minted anew if the last one grew old and the caller knows how.

        Raises TokenRefused and TransportError.
        """
        if self._file is not None:
            return self._credential(self._file.read_text(encoding="utf-8").strip())
        if self._kind != "minted":
            return None
        if mint is not None and not self._is_fresh():
            await self._renew(mint)
        return None if self._minted is None else self._credential(self._minted.token)

    async def give_back(self, pacer: WritePacer, tls: ssl.SSLContext | bool) -> str | None:
        """Revoke a minted token, best effort; what went wrong is for the log.

        https://docs.github.com/rest/apps/installations#revoke-an-installation-access-token
        """
        minted, self._minted = self._minted, None
        if minted is None:
            return None
        http = ForgeHttp(minted.api_url, minted.token, pacer=pacer, tls=tls)
        try:
            answer = await http.delete("/installation/token")
        finally:
            await http.close()
        if isinstance(answer, NoAnswer):
            return f"the token wasn't revoked and ends {minted.expires_at}: {answer.reason}"
        done = answer.status == HTTPStatus.NO_CONTENT
        return None if done else f"the token wasn't revoked: {answer.status}"

    def _is_fresh(self) -> bool:
        if self._minted is None:
            return False
        try:
            ends = datetime.fromisoformat(self._minted.expires_at)
        except ValueError:
            return False
        return ends - self._now() > _MARGIN

    async def _renew(self, mint: Mint) -> None:
        try:
            self._minted = await mint()
        except TransportError as error:
            if error.code in _REFUSALS:
                held = error.code == ErrorCode.PUBLICATION_HELD.value
                raise TokenRefused(error.text, held=held) from error
            raise
        self._redactor.register(self._minted.token)

    def _credential(self, secret: str) -> Credential:
        self._redactor.register(secret)
        return Credential(self._origin, TOKEN_USER, secret)
