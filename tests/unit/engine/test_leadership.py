"""Leadership: DESIGN §7 (8 s / 2 s, deadline 5 s, released on SIGTERM, epoch never falls)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from support.virtual_time import VirtualClock, settle
from upgraderun_operator.engine.leadership import LeaderLease, Leadership
from upgraderun_protocol.ids import Epoch


class LeaseObject:
    """One Lease with the API server's semantics: compare-and-set on its version."""

    def __init__(self) -> None:
        self.lease: LeaderLease | None = None
        self.down_for: set[str] = set()
        self.lose_answers_for: set[str] = set()
        self._version = 0

    def client(self, name: str) -> "LeaseClient":
        return LeaseClient(self, name)

    def write(self, holder: str, transitions: int) -> LeaderLease:
        self._version += 1
        self.lease = LeaderLease(holder, transitions, str(self._version))
        return self.lease


class LeaseClient:
    def __init__(self, shared: LeaseObject, name: str) -> None:
        self._shared = shared
        self._name = name

    def _answer(self) -> None:
        if self._name in self._shared.down_for:
            raise ConnectionError

    async def read(self) -> LeaderLease | None:
        self._answer()
        return self._shared.lease

    async def create(self, holder: str) -> LeaderLease | None:
        self._answer()
        return None if self._shared.lease else self._shared.write(holder, 1)

    async def replace(self, old: LeaderLease, holder: str, transitions: int) -> LeaderLease | None:
        self._answer()
        current = self._shared.lease
        if current is None or current.version != old.version:
            return None
        written = self._shared.write(holder, transitions)
        if self._name in self._shared.lose_answers_for:
            raise ConnectionError
        return written


class Replica:
    def __init__(self, shared: LeaseObject, name: str, clock: VirtualClock) -> None:
        self.changes: list[Epoch | None] = []
        self.leadership = Leadership(shared.client(name), name, clock, self._changed)

    async def _changed(self, epoch: Epoch | None) -> None:
        self.changes.append(epoch)


@asynccontextmanager
async def running(*replicas: Replica) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(replica.leadership.run()) for replica in replicas]
    await settle()
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_one_replica_leads_and_keeps_leading() -> None:
    clock, shared = VirtualClock(), LeaseObject()
    one, two = Replica(shared, "one", clock), Replica(shared, "two", clock)

    async with running(one, two):
        await clock.advance(120)

        assert Epoch(1) == one.leadership.epoch
        assert two.leadership.epoch is None
        assert [[1], []] == [one.changes, two.changes]


async def test_a_silent_leader_is_followed_after_the_lease_and_stopped_before_that() -> None:
    """The old leader stops acting (5 s) before the new one can start (8 s)."""
    clock, shared = VirtualClock(), LeaseObject()
    one, two = Replica(shared, "one", clock), Replica(shared, "two", clock)

    async with running(one, two):
        await clock.advance(10)
        shared.down_for.add("one")
        await clock.advance(5.1)
        assert one.leadership.epoch is None
        assert two.leadership.epoch is None

        # The last renewal was at 10 s at the latest: 8 s of the Lease, and one look of 0.5 s.
        await clock.advance(3.5)
        assert Epoch(2) == two.leadership.epoch
        shared.down_for.clear()
        await clock.advance(30)

        assert one.leadership.epoch is None
        assert [1, None] == one.changes


async def test_a_released_lease_is_taken_at_once() -> None:
    clock, shared = VirtualClock(), LeaseObject()
    one, two = Replica(shared, "one", clock), Replica(shared, "two", clock)

    async with running(two):
        async with running(one):
            await clock.advance(10)
        leader, follower = (one, two) if one.leadership.epoch else (two, one)
        assert two is leader
        assert follower.leadership.epoch is None

    async with running(one):
        await leader.leadership.release()
        assert shared.lease is not None
        assert "" == shared.lease.holder
        await clock.advance(0.6)

        assert [Epoch(2)] == one.changes
        assert [Epoch(1), None] == two.changes


async def test_a_renewal_whose_answer_was_lost_is_recognised_as_our_own() -> None:
    clock, shared = VirtualClock(), LeaseObject()
    one = Replica(shared, "one", clock)

    async with running(one):
        shared.lose_answers_for.add("one")
        await clock.advance(2)
        shared.lose_answers_for.clear()
        await clock.advance(4)

        assert Epoch(1) == one.leadership.epoch
        assert [1] == one.changes


async def test_a_recreated_lease_is_raised_above_what_runs_remember() -> None:
    clock, shared = VirtualClock(), LeaseObject()
    one = Replica(shared, "one", clock)

    async with running(one):
        one.leadership.raise_above(Epoch(41))
        await clock.advance(2)

        assert Epoch(42) == one.leadership.epoch
        assert [1, 42] == one.changes


async def test_a_stolen_lease_ends_leadership_at_the_next_renewal() -> None:
    clock, shared = VirtualClock(), LeaseObject()
    one = Replica(shared, "one", clock)

    async with running(one):
        shared.write("somebody", 7)
        await clock.advance(2)

        assert one.leadership.epoch is None
        assert [1, None] == one.changes


async def test_a_leader_that_nobody_replaced_leads_again_after_an_outage() -> None:
    clock, shared = VirtualClock(), LeaseObject()
    one = Replica(shared, "one", clock)

    async with running(one):
        shared.down_for.add("one")
        await clock.advance(20)
        assert one.leadership.epoch is None
        shared.down_for.clear()
        await clock.advance(20)

        assert one.leadership.epoch is not None
        assert [1, None] == one.changes[:2]


async def test_a_renewal_that_came_too_late_is_told_like_a_gain() -> None:
    """Passes that found no epoch meanwhile were dropped: every run must be looked at again."""
    clock, shared = VirtualClock(), LeaseObject()
    one = Replica(shared, "one", clock)

    async with running(one):
        shared.down_for.add("one")
        for seconds in (2, 2, 1.5):
            await clock.advance(seconds)
        assert one.leadership.epoch is None
        shared.down_for.clear()
        await clock.advance(0.5)

        assert Epoch(1) == one.leadership.epoch
        assert [1, 1] == one.changes
