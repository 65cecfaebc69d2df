"""The runner API as an aiohttp application: routes, checks, one exit for errors.

Every replica serves it; `main` puts it behind TLS. Path:
`/runner/<namespace>/<run name>/<run uid>/<endpoint>[/...]`. Answers are never compressed.
"""

import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from aiohttp import web

from upgraderun_operator.api import artifacts, journal
from upgraderun_operator.api.access import Access, Accounts
from upgraderun_operator.api.context import Call, Tools
from upgraderun_operator.api.errors import ApiError
from upgraderun_operator.api.hello import hello
from upgraderun_operator.api.ports import Tokens
from upgraderun_operator.api.result import result
from upgraderun_operator.api.run_lease import RunLeases, Sightings
from upgraderun_operator.api.tokens import push_token
from upgraderun_protocol.redact import Redactor

PREFIX: Final = "/runner/{namespace}/{name}/{uid}"
_LOG: Final = logging.getLogger(__name__)

Handler = Callable[[Call, web.Request], Awaitable[web.StreamResponse]]


class RunnerApi:
    """One replica's endpoints. `sightings` are shared with the watch of Leases."""

    def __init__(
        self,
        tools: Tools,
        tokens: Tokens,
        accounts: Accounts,
        redactor: Redactor,
        sightings: Sightings,
    ) -> None:
        self._tools = tools
        self._access = Access(tools, tokens, accounts)
        self._redactor = redactor
        self._leases = RunLeases(tools, sightings)

    def application(self) -> web.Application:
        """Make the application; bodies are bounded per endpoint, not by aiohttp."""
        app = web.Application(client_max_size=0)
        for method, path, endpoint, handler in self._routes():
            app.router.add_route(method, f"{PREFIX}/{path}", self._serve(endpoint, handler))
        app.router.add_route("*", "/{rest:.*}", _unknown)
        return app

    def _routes(self) -> tuple[tuple[str, str, str, Handler], ...]:
        tools, leases = self._tools, self._leases
        return (
            ("POST", "hello", "hello", lambda call, req: hello(tools, leases, call, req)),
            ("GET", "bundle", "bundle", lambda call, _: artifacts.bundle(tools, call)),
            ("POST", "workspace", "workspace", lambda c, req: journal.workspace(tools, c, req)),
            ("POST", "journal", "journal", lambda call, req: journal.append(tools, call, req)),
            ("GET", "journal", "journal", journal.read),
            ("PUT", "artifacts/{sha256}", "artifacts", lambda c, r: artifacts.put(tools, c, r)),
            ("GET", "artifacts/{sha256}", "artifacts", lambda c, r: artifacts.get(tools, c, r)),
            ("HEAD", "artifacts/{sha256}", "artifacts", lambda c, r: artifacts.head(tools, c, r)),
            ("POST", "push-token", "push-token", lambda c, r: push_token(tools, c, r)),
            ("PUT", "lease", "lease", lambda call, req: journal.lease(tools, leases, call, req)),
            ("POST", "result", "result", lambda c, r: result(tools, self._redactor, c, r)),
        )

    def _serve(
        self, endpoint: str, handler: Handler
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def serve(request: web.Request) -> web.StreamResponse:
            try:
                call = await self._access.check(request, endpoint)
                response = await handler(call, request)
            except ApiError as error:
                response = self._refusal(error)
                self._tools.counters.answered(endpoint, error.code.value)
            except (ConnectionError, web.HTTPException):
                raise
            except Exception:  # noqa: BLE001  the one exit of the API (style.md §3)
                # The one exit for bugs: the caller learns that nothing is known, never why.
                self._tools.counters.answered(endpoint, "internal")
                _LOG.exception("runner API: %s failed", endpoint)
                response = _json(HTTPStatus.INTERNAL_SERVER_ERROR, _INTERNAL)
            else:
                self._tools.counters.answered(endpoint, str(response.status))
            return response

        return serve

    def _refusal(self, error: ApiError) -> web.Response:
        headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
        message = self._redactor.redact(str(error))
        return _json(error.status, error.body(message), headers)


_INTERNAL: Final = b'{"error": {"code": "internal", "message": "unexpected", "details": {}}}'
_UNKNOWN: Final = (
    b'{"error": {"code": "invalid_request", "message": "no such endpoint", "details": {}}}'
)


async def _unknown(_: web.Request) -> web.Response:
    return _json(HTTPStatus.NOT_FOUND, _UNKNOWN)


def _json(status: int, body: bytes, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        status=status, body=body, content_type="application/json", headers=headers or {}
    )
