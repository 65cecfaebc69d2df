"""The watcher's supervisor and the resync: DESIGN §6a."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping

import pytest

from support.virtual_time import VirtualClock, settle
from upgraderun_operator.engine.queue import WorkQueue
from upgraderun_operator.engine.resync import Resync
from upgraderun_operator.engine.supervisor import StopFlag, Supervisor
from upgraderun_operator.keys import Key


class ScaledClock:
    """Waits are noted and not waited."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)


async def test_a_watcher_that_ends_is_started_again_after_growing_waits() -> None:
    clock = ScaledClock()
    starts = 0

    def watch(flag: StopFlag) -> None:
        nonlocal starts
        starts += 1
        if starts == 8:
            flag.set()
            return
        if starts % 2:
            raise RuntimeError("410 Gone")

    restarts: list[int] = []
    supervisor = Supervisor(
        watch, clock, jitter=lambda: 1.0, on_restart=lambda: restarts.append(starts)
    )
    await supervisor.run()

    assert 8 == starts
    assert [1, 2, 4, 8, 16, 30, 30] == clock.waits
    assert 7 == len(restarts)


async def test_the_log_names_the_place_of_an_error_and_no_value(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def watch(flag: StopFlag) -> None:
        if caplog.records:
            flag.set()
            return
        raise KeyError("a-secret")

    supervisor = Supervisor(watch, ScaledClock(), jitter=lambda: 1.0, on_restart=lambda: None)
    await supervisor.run()

    assert re.search(r"raised KeyError at test_supervision.py:\d+;", caplog.text)
    assert "a-secret" not in caplog.text


async def test_stop_reaches_the_watchers_own_loop() -> None:
    entered = asyncio.Event()
    loop = asyncio.get_running_loop()

    def watch(flag: StopFlag) -> None:
        async def body() -> None:
            event = flag.event()
            loop.call_soon_threadsafe(entered.set)
            await event.wait()

        asyncio.run(body())

    supervisor = Supervisor(watch, ScaledClock(), jitter=lambda: 0.0, on_restart=lambda: None)
    task = asyncio.create_task(supervisor.run())
    await entered.wait()
    supervisor.stop()
    await task

    async def late() -> bool:
        flag = StopFlag()
        flag.set()
        return flag.event().is_set()

    assert await late()


IN_CONFLICT = Key("c", "ended")


class Lister:
    def __init__(self) -> None:
        self.chunks: list[tuple[Key, ...]] = []
        self.down = False

    async def unfinished(self) -> AsyncIterator[tuple[Key, ...]]:
        if self.down:
            raise ConnectionError
        for keys in self.chunks:
            yield keys

    async def conflicts(self) -> Mapping[Key, str]:
        if self.down:
            raise ConnectionError
        return {IN_CONFLICT: "foreign_branch"}


async def test_resync_queues_every_run_and_drops_what_vanished() -> None:
    clock = VirtualClock()
    queue: WorkQueue[Key] = WorkQueue(clock, backoff_first=5, backoff_max=300)
    lister = Lister()
    one, two = Key("a", "one"), Key("b", "two")
    lister.chunks = [(one,), (two,)]
    after: list[tuple[Mapping[Key, str], int]] = []
    resync = Resync(
        lister,
        queue,
        clock,
        is_leader=lambda: True,
        show_conflicts=lambda runs: after.append((runs, len(queue))),
    )
    task = asyncio.create_task(resync.run())
    await settle()
    assert [({IN_CONFLICT: "foreign_branch"}, 2)] == after
    for _ in range(2):
        key = await queue.get()
        assert key is not None
        await queue.add_after(key, 1000)
        await queue.done(key)

    lister.chunks = [(one,)]
    lister.down = True
    await clock.advance(300)
    lister.down = False
    await clock.advance(5)
    assert 1 == queue.waiting
    assert one == await queue.get()
    assert [2, 1] == [length for _, length in after]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_replica_that_does_not_lead_shows_conflicts_and_queues_nothing() -> None:
    clock = VirtualClock()
    queue: WorkQueue[Key] = WorkQueue(clock, backoff_first=5, backoff_max=300)
    lister = Lister()
    lister.chunks = [(Key("a", "one"),)]
    shown: list[float] = []
    resync = Resync(
        lister,
        queue,
        clock,
        is_leader=lambda: False,
        show_conflicts=lambda _: shown.append(clock.monotonic()),
    )
    task = asyncio.create_task(resync.run())
    await settle()

    await clock.advance(300)
    assert [0, 300] == shown
    assert 0 == len(queue)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_bell_starts_the_next_resync_at_once() -> None:
    clock = VirtualClock()
    queue: WorkQueue[Key] = WorkQueue(clock, backoff_first=5, backoff_max=300)
    walks: list[float] = []
    resync = Resync(
        Lister(),
        queue,
        clock,
        is_leader=lambda: True,
        show_conflicts=lambda _: walks.append(clock.monotonic()),
    )
    task = asyncio.create_task(resync.run())
    await clock.advance(100)
    resync.ring()
    await clock.advance(299)
    assert [0, 100] == walks
    await clock.advance(1)

    assert [0, 100, 400] == walks
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
