"""Resync: list every unfinished run in chunks, queue each, forget the keys that are gone.

A watch can be silent and never reports an object that vanished while it was listing again
(DESIGN §6a), so level-triggered work can't rest on it alone.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol

from upgraderun_operator import limits
from upgraderun_operator.engine.clock import Clock
from upgraderun_operator.engine.queue import WorkQueue
from upgraderun_operator.keys import Key

log = logging.getLogger(__name__)


class RunLister(Protocol):
    """Lists runs: the unfinished ones, and those in conflict."""

    def unfinished(self) -> AsyncIterator[tuple[Key, ...]]:
        """Yield chunks of keys. Raises OSError when the API server doesn't answer."""
        ...

    async def conflicts(self) -> Mapping[Key, str]:
        """Runs in conflict with its kind, finished ones too. Raises OSError, as above."""
        ...


class Resync:
    """Walks all unfinished runs every five minutes and at each gain of leadership.

    It also finds the runs in conflict, finished ones included, so that the gauge is right again
    after any restart. Replicas that don't lead do this too: their gauge is scraped as well, and
    would else show for ever what they knew when they led (reliability.md §9).
    """

    def __init__(
        self,
        lister: RunLister,
        queue: WorkQueue[Key],
        clock: Clock,
        *,
        is_leader: Callable[[], bool],
        show_conflicts: Callable[[Mapping[Key, str]], None],
    ) -> None:
        self._lister = lister
        self._queue = queue
        self._clock = clock
        self._is_leader = is_leader
        self._show_conflicts = show_conflicts
        self._known: set[Key] = set()
        self._bell = asyncio.Event()

    async def run(self) -> None:
        """Resync for ever; an unanswered list is tried again after the first back-off."""
        while True:
            wait = limits.RESYNC_SECONDS
            try:
                if self._is_leader():
                    await self.once()
                self._show_conflicts(await self._lister.conflicts())
            except OSError as error:
                log.warning("resync failed, the next one is soon: %s", error)
                wait = limits.BACKOFF_FIRST_SECONDS
            await self._pause(wait)

    def ring(self) -> None:
        """Start the next walk now: leadership was gained, or the watcher was started again."""
        self._bell.set()

    async def _pause(self, seconds: float) -> None:
        """Wait for the time or the bell, whichever comes first."""
        waits = (
            asyncio.ensure_future(self._clock.sleep(seconds)),
            asyncio.ensure_future(self._bell.wait()),
        )
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        self._bell.clear()

    async def once(self) -> int:
        """Queue every unfinished run and drop what vanished; returns how many there are."""
        found: set[Key] = set()
        async for keys in self._lister.unfinished():
            for key in keys:
                found.add(key)
                await self._queue.add(key, urgent=False)
        for gone in self._known - found:
            await self._queue.drop(gone)
        self._known = found
        return len(found)
