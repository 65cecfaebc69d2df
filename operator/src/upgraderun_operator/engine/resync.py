"""Resync: list every unfinished run in chunks, queue each, forget the keys that are gone.

A watch can be silent and never reports an object that vanished while it was listing again
(DESIGN §6a), so level-triggered work can't rest on it alone.
"""

import logging
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from upgraderun_operator import limits
from upgraderun_operator.engine.clock import Clock
from upgraderun_operator.engine.queue import WorkQueue
from upgraderun_operator.keys import Key

log = logging.getLogger(__name__)


class RunLister(Protocol):
    """Lists unfinished runs, a chunk at a time."""

    def unfinished(self, chunk: int) -> AsyncIterator[tuple[Key, ...]]:
        """Yield chunks of keys. Raises OSError when the API server doesn't answer."""
        ...


class Resync:
    """Walks all unfinished runs every five minutes and whenever somebody asks."""

    def __init__(
        self,
        lister: RunLister,
        queue: WorkQueue[Key],
        clock: Clock,
        *,
        is_leader: Callable[[], bool],
        after: Callable[[], None],
    ) -> None:
        self._lister = lister
        self._queue = queue
        self._clock = clock
        self._is_leader = is_leader
        self._after = after
        self._known: set[Key] = set()

    async def run(self) -> None:
        """Resync for ever; an unanswered list is tried again after the first back-off."""
        while True:
            wait = limits.RESYNC_SECONDS
            if self._is_leader():
                try:
                    await self.once()
                except OSError as error:
                    log.warning("resync failed, the next one is soon: %s", type(error).__name__)
                    wait = limits.BACKOFF_FIRST_SECONDS
            await self._clock.sleep(wait)

    async def once(self) -> int:
        """Queue every unfinished run and drop what vanished; returns how many there are."""
        found: set[Key] = set()
        async for keys in self._lister.unfinished(limits.LIST_CHUNK):
            for key in keys:
                found.add(key)
                await self._queue.add(key)
        for gone in self._known - found:
            await self._queue.drop(gone)
        self._known = found
        self._after()
        return len(found)
