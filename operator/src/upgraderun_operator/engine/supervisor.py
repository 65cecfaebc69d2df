"""Supervisor of the watching thread.

kopf ends its process on errors that outlast its back-offs (DESIGN §6a). So it runs in a thread
with an event loop of its own, and this module starts it again, after 1 s doubling to 30 s with
jitter. It knows nothing of kopf: it runs a callable that returns or raises.
"""

import asyncio
import logging
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

from upgraderun_operator import limits
from upgraderun_operator.engine.clock import Clock

log = logging.getLogger(__name__)


class StopFlag:
    """Set once, from any thread; waited for in the watching thread's own loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._set = False
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def set(self) -> None:
        """Stop the watcher of now and of later. May be repeated."""
        with self._lock:
            self._set = True
            waiters, self._waiters = self._waiters, []
        for loop, event in waiters:
            # A loop that has ended needs no call.
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    @property
    def is_set(self) -> bool:
        """Whether the watcher shall end."""
        return self._set

    def event(self) -> asyncio.Event:
        """Make an event of the running loop that is set when the flag is."""
        event = asyncio.Event()
        with self._lock:
            if self._set:
                event.set()
            else:
                self._waiters.append((asyncio.get_running_loop(), event))
        return event


class Supervisor:
    """Keeps `watch(flag)` running in a thread until `stop`."""

    def __init__(
        self,
        watch: Callable[[StopFlag], None],
        clock: Clock,
        *,
        jitter: Callable[[], float],
        on_restart: Callable[[], None],
    ) -> None:
        self._watch = watch
        self._clock = clock
        self._jitter = jitter
        self._on_restart = on_restart
        self._flag = StopFlag()

    async def run(self) -> None:
        """Run until `stop`. Every end of the watcher that nobody asked for is a restart."""
        failures = 0
        while not self._flag.is_set:
            started = self._clock.monotonic()
            await self._once()
            if self._flag.is_set:
                return
            if self._clock.monotonic() - started > limits.WATCH_STEADY_SECONDS:
                failures = 0
            wait = min(
                limits.WATCH_RESTART_MAX_SECONDS, limits.WATCH_RESTART_FIRST_SECONDS * 2.0**failures
            )
            failures = min(failures + 1, 16)
            self._on_restart()
            await self._clock.sleep(wait * (0.5 + self._jitter() / 2))

    def stop(self) -> None:
        """Ask the watcher to end; `run` returns once it has."""
        self._flag.set()

    async def _once(self) -> None:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[str] = loop.create_future()

        def settle(text: str) -> None:
            if not ended.done():
                ended.set_result(text)

        def body() -> None:
            try:
                self._watch(self._flag)
                text = "returned"
            except BaseException as error:  # noqa: BLE001 - whatever ends the thread is a restart
                text = f"raised {_described(error)}"
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, text)

        threading.Thread(target=body, name="watch", daemon=True).start()
        why = await ended
        if not self._flag.is_set:
            log.warning("the watcher %s; it is started again", why)


def _described(error: BaseException) -> str:
    """Type and innermost place: what helps to look, without values that may be secret."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
