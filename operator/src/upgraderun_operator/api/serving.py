"""What a replica serves: the runner API behind TLS, and the probes. Callers: `main` only.

The certificate is renewed in the running server: connections that are open keep theirs.
"""

import asyncio
import logging
import ssl
import tempfile
from collections.abc import Callable
from typing import Final, Protocol

from aiohttp import web

from upgraderun_operator.api.ports import SleepingClock

log = logging.getLogger(__name__)

FIRST_SECONDS: Final = 1.0
RENEW_SECONDS: Final = 3600.0


class Pair(Protocol):
    """Leaf, key and authority in PEM form."""

    @property
    def certificate(self) -> bytes:
        """Leaf."""
        ...

    @property
    def key(self) -> bytes:
        """Private key of the leaf."""
        ...

    @property
    def authority(self) -> bytes:
        """What pods trust."""
        ...


class Pairs(Protocol):
    """The Secret that holds the pair. Both raise an error that names what is missing."""

    async def load(self) -> Pair:
        """Read it."""
        ...

    async def ensure(self) -> Pair:
        """Fill or renew it; the leader only, and only where nobody else does."""
        ...


class Tls:
    """A server context whose certificate follows the Secret. `renews`: whether we fill it now."""

    def __init__(self, pairs: Pairs, clock: SleepingClock, renews: Callable[[], bool]) -> None:
        self._pairs = pairs
        self._clock = clock
        self._renews = renews
        self._loaded = asyncio.Event()
        self._authority = b""
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2

    @property
    def authority(self) -> str:
        """The CA that pods trust; empty before the first pair."""
        return self._authority.decode("ascii")

    @property
    def is_loaded(self) -> bool:
        """Whether there is something to serve with."""
        return self._loaded.is_set()

    async def loaded(self) -> None:
        """Wait for the first pair."""
        await self._loaded.wait()

    async def run(self, errors: type[Exception]) -> None:
        """Follow the Secret for ever; `errors` are those of the pairs, which mean: try again."""
        while True:
            try:
                pair = await (self._pairs.ensure() if self._renews() else self._pairs.load())
            except errors as error:
                log.info("no certificate yet: %s", error)
                await self._clock.sleep(FIRST_SECONDS)
                continue
            self._use(pair)
            await self._clock.sleep(RENEW_SECONDS)

    def _use(self, pair: Pair) -> None:
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            file.write(pair.certificate + pair.key)
            file.flush()
            self.context.load_cert_chain(file.name)
        self._authority = pair.authority
        self._loaded.set()


class Site:
    """One listening port. `close` lets calls in hand end, within seconds."""

    def __init__(self, app: web.Application, host: str, port: int) -> None:
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=5.0)
        self._host = host
        self._port = port

    async def open(self, tls: ssl.SSLContext | None = None) -> None:
        """Listen."""
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port, ssl_context=tls).start()

    async def close(self) -> None:
        """Stop listening and end what is in hand."""
        await self._runner.cleanup()
