"""A clock that tests move by hand. No test waits on the wall clock."""

import asyncio
import heapq
import itertools


class VirtualClock:
    """Monotonic seconds from 0; `advance` wakes every sleeper whose time has come, in order."""

    def __init__(self) -> None:
        self._now = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Sleep until `advance` reaches that instant."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), waiter))
        await waiter

    async def advance(self, seconds: float) -> None:
        """Move on, stopping at each sleeper on the way so that it acts at its own instant."""
        end = self._now + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            due, _, waiter = heapq.heappop(self._sleepers)
            if waiter.done():
                continue
            self._now = max(self._now, due)
            waiter.set_result(None)
            await settle()
        self._now = end
        await settle()


async def settle(rounds: int = 50) -> None:
    """Let every task run that can run without time passing."""
    for _ in range(rounds):
        await asyncio.sleep(0)
