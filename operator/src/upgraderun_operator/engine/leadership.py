"""Leadership: which replica reconciles and finalizes (DESIGN §7, lease `leader`).

A hint, not a lock: every write of a leader is fenced by its epoch in the run. The holder renews
every 2 s and stops acting 5 s after its last successful renewal, on its own monotonic clock; a
candidate looks every 0.5 s, and takes a Lease that stayed unchanged for its 8 s on the candidate's
clock, or is released.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from upgraderun_operator import limits
from upgraderun_operator.engine.clock import Clock
from upgraderun_protocol.ids import Epoch

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeaderLease:
    """The Lease as read: `holder` is empty when released; `version` its resourceVersion."""

    holder: str
    transitions: int
    version: str


class LeaderLeases(Protocol):
    """Compare-and-set on the one Lease object. Each call is bounded by a time-out of its own."""

    async def read(self) -> LeaderLease | None:
        """Live read; None if the Lease doesn't exist. Raises OSError when unreadable."""
        ...

    async def create(self, holder: str) -> LeaderLease | None:
        """Create it held by us; None if somebody was first. Raises OSError when unanswered."""
        ...

    async def replace(self, old: LeaderLease, holder: str, transitions: int) -> LeaderLease | None:
        """Write against `old.version`; None if it changed. Raises OSError when unanswered."""
        ...


class Leadership:
    """Keeps trying to lead. `on_change(epoch | None)` is awaited at each gain and loss.

    A renewal that comes after the deadline is a gain, too.
    """

    def __init__(
        self,
        leases: LeaderLeases,
        identity: str,
        clock: Clock,
        on_change: Callable[[Epoch | None], Awaitable[None]],
    ) -> None:
        self._leases = leases
        self._identity = identity
        self._clock = clock
        self._on_change = on_change
        self._epoch: Epoch | None = None
        self._renewed_at = 0.0
        self._seen: tuple[str, float] | None = None
        self._mine: LeaderLease | None = None
        self._floor = 0

    @property
    def epoch(self) -> Epoch | None:
        """Our epoch while we may act as leader; None from 5 s after the last renewal on."""
        if self._epoch is None:
            return None
        fresh = self._clock.monotonic() - self._renewed_at < limits.LEADER_DEADLINE_SECONDS
        return self._epoch if fresh else None

    async def run(self) -> None:
        """Acquire, renew, lose, and so on, until cancelled."""
        while True:
            before = self._clock.monotonic()
            try:
                await self._step(before)
            except OSError as error:
                log.warning("the leader Lease can't be read or written: %s", type(error).__name__)
            if self._epoch is not None and self.epoch is None:
                await self._lose("no renewal got through for 5 s")
            spent = self._clock.monotonic() - before
            held = self._mine is not None
            every = limits.LEADER_RENEW_SECONDS if held else limits.LEADER_LOOK_SECONDS
            await self._clock.sleep(max(0.1, every - spent))

    def raise_above(self, seen: Epoch) -> None:
        """Renew with an epoch above one that a run carries already.

        A Lease that was deleted and made anew counts from 1 again, while runs remember more.
        """
        self._floor = max(self._floor, seen + 1)

    async def release(self) -> None:
        """Give the Lease back so that the next replica needn't wait. Best effort."""
        mine, self._mine = self._mine, None
        if self._epoch is not None:
            await self._lose("released at shutdown")
        if mine is not None:
            try:
                await self._leases.replace(mine, "", mine.transitions)
            except OSError as error:
                log.warning("the leader Lease could not be released: %s", type(error).__name__)

    async def _step(self, now: float) -> None:
        if self._mine is not None:
            await self._renew(now, self._mine)
        else:
            await self._try_acquire(now)

    async def _renew(self, now: float, mine: LeaderLease) -> None:
        wanted = max(mine.transitions, self._floor)
        renewed = await self._leases.replace(mine, self._identity, wanted)
        if renewed is None:
            renewed = await self._leases.read()
            wanted = mine.transitions
            if renewed is None or (renewed.holder, renewed.transitions) != (self._identity, wanted):
                self._mine = None
                await self._lose("another replica holds the Lease")
                return
            # Our own write arrived although its answer was lost: go on from what stands there.
        lapsed = self.epoch is None
        self._hold(renewed, now)
        if lapsed or wanted != mine.transitions:
            # After a lapse the epoch stands, since nobody led; but passes that found none were dropped.
            await self._lead(wanted)

    async def _try_acquire(self, now: float) -> None:
        current = await self._leases.read()
        if current is None:
            await self._gain(await self._leases.create(self._identity), now)
            return
        if self._seen is None or self._seen[0] != current.version:
            self._seen = (current.version, now)
        unchanged = now - self._seen[1]
        if current.holder and unchanged < limits.LEADER_LEASE_SECONDS:
            return
        wanted = max(current.transitions + 1, self._floor)
        taken = await self._leases.replace(current, self._identity, wanted)
        await self._gain(taken, now)

    async def _gain(self, lease: LeaderLease | None, now: float) -> None:
        if lease is None:
            return
        self._hold(lease, now)
        await self._lead(lease.transitions)

    async def _lead(self, transitions: int) -> None:
        self._epoch = Epoch(transitions)
        log.info("leading with epoch %d", transitions)
        await self._on_change(self._epoch)

    def _hold(self, lease: LeaderLease, now: float) -> None:
        self._mine = lease
        self._renewed_at = now
        self._seen = None

    async def _lose(self, why: str) -> None:
        if self._epoch is None:
            return
        self._epoch = None
        log.warning("no longer leading: %s", why)
        await self._on_change(None)
