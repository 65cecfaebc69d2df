"""`/healthz`, `/readyz` and `/metrics`: plain HTTP on a port of its own, without secrets."""

from collections.abc import Callable
from http import HTTPStatus

from aiohttp import web


def probe_app(render: Callable[[], bytes], is_ready: Callable[[], bool]) -> web.Application:
    """Make the application. Ready: the runner API is served and the store was probed."""

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        if is_ready():
            return web.Response(text="ok\n")
        return web.Response(text="starting\n", status=HTTPStatus.SERVICE_UNAVAILABLE)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(
            body=render(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        )

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", metrics)
    return app
