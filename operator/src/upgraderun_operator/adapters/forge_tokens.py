"""Mints installation tokens of a GitHub App: one repository, the least rights, an hour at most.

statement (JWT, RS256, 9 min) -> installation of the repository -> token. Callers: `observe.access`
for the operator's own looks and for pods. What a pod gets is never kept; a look's token is kept in
memory until it grows old. An answer that grants more than was asked is refused.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import jwt

from upgraderun_operator.adapters.forge_http import Caller, ForgeCalls, Stop, said
from upgraderun_operator.adapters.ports import Clock
from upgraderun_operator.decide.readings import Unreadable
from upgraderun_operator.decide.views import DestinationRefused
from upgraderun_operator.observe.ports import (
    AppGrant,
    Before,
    Minted,
    Purpose,
    nothing_before,
)
from upgraderun_protocol.limits import FORGE_TOKEN_MARGIN_SECONDS, FORGE_TOKEN_MAX
from upgraderun_protocol.redact import SecretText

STATEMENT_SECONDS: Final = 540
BACKDATED_SECONDS: Final = 60
"""The documentation asks for both: at most ten minutes of life, and a minute for clocks that drift."""
LOOKS_KEPT_MAX: Final = 512

RIGHTS: Final[Mapping[Purpose, Mapping[str, str]]] = {
    Purpose.LOOK: {"contents": "read", "metadata": "read", "pull_requests": "read"},
    Purpose.CLONE: {"contents": "read", "metadata": "read"},
    Purpose.PUSH: {"contents": "write", "metadata": "read", "pull_requests": "write"},
}
"""What each token may do; never `workflows` (security.md H18, H19)."""

_LEVELS: Final = ("none", "read", "write", "admin")
_NEEDED: Final = "contents and pull requests, write"


@dataclass(frozen=True, slots=True)
class _Installation:
    number: int
    permissions: Mapping[str, str]


class InstallationTokens:
    """Tokens of Apps, over calls that somebody else opens and closes."""

    def __init__(self, calls: ForgeCalls, clock: Clock) -> None:
        self._calls = calls
        self._clock = clock
        self._looks: OrderedDict[tuple[str, str, str, str], Minted] = OrderedDict()

    async def mint(
        self, app: AppGrant, purpose: Purpose, before: Before = nothing_before
    ) -> Minted | DestinationRefused | Unreadable:
        """Mint a token for exactly the grant's repository; a look's token may be an earlier one.

        `before` is awaited between the questions and the one call that makes a token, so that an
        outage of the forge counts as no mint.
        """
        if purpose is not Purpose.LOOK:
            return await self._minted(app, purpose, before)
        key = (app.namespace, app.api_url, app.app_id, app.repository.lower())
        kept = self._looks.get(key)
        if kept is not None and kept.key == app.key and self._is_fresh(kept):
            return kept
        found = await self._minted(app, purpose, before)
        self._looks.pop(key, None)
        if isinstance(found, Minted):
            self._looks[key] = found
            while len(self._looks) > LOOKS_KEPT_MAX:
                self._looks.popitem(last=False)
        return found

    def _is_fresh(self, kept: Minted) -> bool:
        margin = timedelta(seconds=FORGE_TOKEN_MARGIN_SECONDS)
        return kept.expires_at - self._clock.now() > margin

    async def _minted(
        self, app: AppGrant, purpose: Purpose, before: Before
    ) -> Minted | DestinationRefused | Unreadable:
        try:
            statement = await asyncio.to_thread(self._statement, app)
            caller = Caller(app.api_url, f"app {app.app_id}", f"Bearer {statement}")
            installation = await self._installation(caller, app)
            rights = _rights(app, purpose)
            _refuse_poor(app, installation, RIGHTS[Purpose.PUSH] if app.publishes else rights)
            await before()
            return await self._token(caller, app, installation, rights)
        except _KeyUnusable:
            return DestinationRefused(
                f"{app.where} is no private key of an App; store the PEM file that GitHub gave you"
            )
        except Stop as stop:
            if stop.moved_to:
                return DestinationRefused(
                    f"repository {app.repository} was renamed or moved (it is number "
                    f"{stop.moved_to}); name the new one in spec.repository.url and in the policy"
                )
            return stop.reading

    def _statement(self, app: AppGrant) -> str:
        """https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app."""
        now = int(self._clock.now().timestamp())
        claims = {"iat": now - BACKDATED_SECONDS, "exp": now + STATEMENT_SECONDS, "iss": app.app_id}
        try:
            return jwt.encode(claims, app.key.reveal(), algorithm="RS256")
        except (ValueError, TypeError, jwt.exceptions.PyJWTError) as error:
            raise _KeyUnusable from error

    async def _installation(self, caller: Caller, app: AppGrant) -> _Installation:
        """https://docs.github.com/rest/apps/apps#get-a-repository-installation-for-the-authenticated-app."""
        path = f"/repos/{quote(app.repository)}/installation"
        accepts = frozenset({HTTPStatus.OK, HTTPStatus.NOT_FOUND, HTTPStatus.UNAUTHORIZED})
        reply = await self._calls.call(caller, "GET", path, accepts=accepts)
        body = reply.body if isinstance(reply.body, Mapping) else {}
        if reply.status == HTTPStatus.UNAUTHORIZED:
            raise _refused(
                f"the key of {app.where} doesn't speak for App {app.app_id}{said(body)}; compare "
                "both, and the clocks"
            )
        if reply.status == HTTPStatus.NOT_FOUND:
            raise _refused(
                f"App {app.app_id} isn't installed on {app.repository}, or there is no such "
                f"repository; install it there with {_NEEDED}"
            )
        number = body.get("id")
        if not isinstance(number, int):
            raise Stop(Unreadable("forge", f"GET {path}: no installation id"))
        if body.get("suspended_at"):
            raise _refused(
                f"the installation of App {app.app_id} on {app.repository} is suspended; somebody "
                "who administers that account can resume it"
            )
        permissions = body.get("permissions")
        return _Installation(number, permissions if isinstance(permissions, Mapping) else {})

    async def _token(
        self,
        caller: Caller,
        app: AppGrant,
        installation: _Installation,
        rights: Mapping[str, str],
    ) -> Minted:
        """https://docs.github.com/rest/apps/apps#create-an-installation-access-token-for-an-app."""
        name = app.repository.rpartition("/")[2]
        path = f"/app/installations/{installation.number}/access_tokens"
        accepts = frozenset(
            {HTTPStatus.CREATED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}
            | {HTTPStatus.UNPROCESSABLE_ENTITY}
        )
        body = {"repositories": [name], "permissions": dict(rights)}
        reply = await self._calls.call(caller, "POST", path, body=body, accepts=accepts)
        value = reply.body if isinstance(reply.body, Mapping) else {}
        if reply.status != HTTPStatus.CREATED:
            raise _refused(
                f"the forge gives App {app.app_id} no token for {app.repository} "
                f"({reply.status}{said(value)}); look at the App's installation there"
            )
        return _read_token(value, app, rights)


class _KeyUnusable(Exception):  # noqa: N818 - names what a person has to mend; never leaves here
    """The stored text signs nothing. Carries no part of it."""


def _rights(app: AppGrant, purpose: Purpose) -> Mapping[str, str]:
    """A run that publishes nothing looks at less, too."""
    narrow = purpose is Purpose.LOOK and not app.publishes
    return RIGHTS[Purpose.CLONE if narrow else purpose]


def _refuse_poor(app: AppGrant, installation: _Installation, needed: Mapping[str, str]) -> None:
    """Say now what the installation can't give, be it for this token or for the push to come."""
    missing = [
        f"{name}: {level}"
        for name, level in needed.items()
        if not _covers(installation.permissions.get(name), level)
    ]
    if missing:
        raise _refused(
            f"App {app.app_id} lacks {', '.join(missing)} on {app.repository}; give it to the App "
            "and accept it where it is installed"
        )


def _refused(message: str) -> Stop:
    return Stop(DestinationRefused(message))


def _covers(given: object, needed: str) -> bool:
    return given in _LEVELS and _LEVELS.index(str(given)) >= _LEVELS.index(needed)


def _read_token(value: Mapping[str, Any], app: AppGrant, rights: Mapping[str, str]) -> Minted:
    token, expires = value.get("token"), _time(value.get("expires_at"))
    if not isinstance(token, str) or not 0 < len(token) <= FORGE_TOKEN_MAX or expires is None:
        raise Stop(Unreadable("forge", "the forge answered without a token or its end"))
    granted = value.get("permissions")
    repositories = value.get("repositories")
    names = [
        str(row.get("full_name", "")).lower()
        for row in (repositories if isinstance(repositories, list) else ())
        if isinstance(row, Mapping)
    ]
    is_wider = not isinstance(granted, Mapping) or any(
        not _covers(rights.get(str(name), "none"), str(level) if level in _LEVELS else "admin")
        for name, level in granted.items()
    )
    if is_wider or names != [app.repository.lower()]:
        raise _refused(
            f"the forge gave App {app.app_id} a token for more than {app.repository} with "
            f"{', '.join(rights)}; it isn't used"
        )
    return Minted(SecretText(token), expires, app.repository, app.key)


def _time(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
