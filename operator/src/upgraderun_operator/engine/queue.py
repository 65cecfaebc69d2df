"""The work queue: each key once, never on two workers, with back-off and deadlines.

Callers: handlers and resync add keys, workers take them. It knows nothing of runs: a key is any
hashable value. Semantics follow the well-known controller work queue: a key that is added while
it is worked on is handed out again after `done`.
"""

import asyncio
import heapq
import itertools
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from upgraderun_operator.engine.clock import Clock

K = TypeVar("K", bound=Hashable)

LATE_TURN: Final = 4
"""Each fourth key comes from those that may wait, however many others there are."""


@dataclass(slots=True)
class _Again:
    """A key that was added while it was worked on. `moots` None: it is handed out whatever they say."""

    since: float
    urgent: bool
    moots: list[Callable[[], bool]] | None = field(default_factory=list)


class WorkQueue(Generic[K]):
    """A deduplicating queue with a heap of deadlines; single event loop, not thread-safe.

    Order: first added, first handed out; what is urgent goes before what may wait (`urgent=False`,
    and every deadline), but not for ever. A deadline is replaced by an earlier one only, so that a
    wake-up which somebody counted on is never moved away. `close` ends every waiting `get`.
    """

    def __init__(self, clock: Clock, *, backoff_first: float, backoff_max: float) -> None:
        self._clock = clock
        self._backoff_first = backoff_first
        self._backoff_max = backoff_max
        self._urgent: OrderedDict[K, float] = OrderedDict()
        self._late: OrderedDict[K, float] = OrderedDict()
        self._turn = 0
        self._active: set[K] = set()
        self._dirty: dict[K, _Again] = {}
        self._failures: dict[K, int] = {}
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._order = itertools.count()
        self._changed = asyncio.Condition()
        self._closed = False

    def __len__(self) -> int:
        return len(self._urgent) + len(self._late) + len(self._active)

    @property
    def waiting(self) -> int:
        """Keys that have a deadline and nothing to do before it."""
        return len(self._due)

    def oldest_age(self) -> float:
        """Seconds since the longest waiting key was added; 0 if none waits."""
        again = (one.since for one in self._dirty.values())
        oldest = min((*self._urgent.values(), *self._late.values(), *again), default=None)
        return 0.0 if oldest is None else max(0.0, self._clock.monotonic() - oldest)

    async def add(
        self, key: K, *, urgent: bool = True, moot: Callable[[], bool] | None = None
    ) -> None:
        """Hand the key out as soon as a worker is free; again after `done` if it is worked on.

        `moot`: asked when the key is free; True takes this addition back.
        """
        async with self._changed:
            if key in self._active:
                self._put_again(key, urgent, moot)
            elif (moot is None or not moot()) and self._put(key, urgent):
                self._changed.notify()

    async def add_after(self, key: K, seconds: float) -> None:
        """Hand the key out in that many seconds, unless an earlier deadline stands already."""
        async with self._changed:
            due = self._clock.monotonic() + max(0.0, seconds)
            if key in self._due and self._due[key] <= due:
                return
            self._due[key] = due
            heapq.heappush(self._heap, (due, next(self._order), key))
            self._changed.notify_all()

    async def get(self) -> K | None:
        """Take the next key; None once the queue is closed. Every key taken needs `done`."""
        async with self._changed:
            while not self._closed:
                self._release_due()
                if self._urgent or self._late:
                    return self._take()
                await self._wait()
            return None

    async def done(self, key: K) -> None:
        """Give a key back; if it was added meanwhile, it is handed out again."""
        async with self._changed:
            self._active.discard(key)
            again = self._dirty.pop(key, None)
            if again is None:
                return
            if again.moots is None or not all(moot() for moot in again.moots):
                (self._urgent if again.urgent else self._late)[key] = again.since
                self._changed.notify()

    async def retry(self, key: K) -> float:
        """Wake the key after its back-off, 5 s doubling to 300 s by default; returns the wait."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        wait = min(self._backoff_max, self._backoff_first * 2.0 ** min(failures, 16))
        await self.add_after(key, wait)
        return wait

    def forget_failures(self, key: K) -> None:
        """Start the key's back-off from the beginning again."""
        self._failures.pop(key, None)

    async def drop(self, key: K) -> None:
        """Forget deadline and back-off of a key that is gone."""
        async with self._changed:
            self._due.pop(key, None)
            self._failures.pop(key, None)

    async def close(self) -> None:
        """End every `get` with None. May be repeated."""
        async with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _put(self, key: K, urgent: bool) -> bool:
        """Queue a free key; one that may wait moves up if it is urgent now."""
        if key in self._urgent or (key in self._late and not urgent):
            return False
        since = self._late.pop(key, None)
        now = self._clock.monotonic() if since is None else since
        (self._urgent if urgent else self._late)[key] = now
        return since is None

    def _put_again(self, key: K, urgent: bool, moot: Callable[[], bool] | None) -> None:
        again = self._dirty.setdefault(key, _Again(self._clock.monotonic(), urgent))
        again.urgent |= urgent
        if moot is None:
            again.moots = None
        elif again.moots is not None:
            again.moots.append(moot)

    def _take(self) -> K:
        self._turn += 1
        late = self._late and (not self._urgent or self._turn % LATE_TURN == 0)
        key, _ = (self._late if late else self._urgent).popitem(last=False)
        self._active.add(key)
        return key

    def _release_due(self) -> None:
        now = self._clock.monotonic()
        while self._heap and self._heap[0][0] <= now:
            due, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                if key in self._active:
                    self._put_again(key, urgent=False, moot=None)
                else:
                    self._put(key, urgent=False)

    async def _wait(self) -> None:
        """Wait for a change or the next deadline, whichever comes first."""
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        if not self._heap:
            await self._changed.wait()
            return
        timer = asyncio.create_task(self._ring_after(self._heap[0][0] - self._clock.monotonic()))
        try:
            await self._changed.wait()
        finally:
            timer.cancel()
            await asyncio.gather(timer, return_exceptions=True)

    async def _ring_after(self, seconds: float) -> None:
        await self._clock.sleep(max(0.0, seconds))
        async with self._changed:
            self._changed.notify()
