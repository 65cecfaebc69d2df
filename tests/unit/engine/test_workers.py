"""Workers: the one exit for bugs (house style §3), wake-ups, drops."""

import asyncio
from collections.abc import Awaitable, Callable

from support.virtual_time import VirtualClock, settle
from upgraderun_operator.engine.queue import WorkQueue
from upgraderun_operator.engine.workers import Workers
from upgraderun_operator.keys import Key, Wake
from upgraderun_protocol.redact import Redactor

RUN = Key("team-a", "demo")


class Counted:
    def __init__(self) -> None:
        self.results: list[str] = []

    def reconciled(self, seconds: float, result: str) -> None:
        assert seconds >= 0
        self.results.append(result)


class Bench:
    """Workers over a queue, with a reconcile function of the test."""

    def __init__(self, reconcile: Callable[[Key], Awaitable[Wake]], count: int = 2) -> None:
        self.clock = VirtualClock()
        self.queue: WorkQueue[Key] = WorkQueue(self.clock, backoff_first=5, backoff_max=300)
        self.metrics = Counted()
        self.redactor = Redactor()
        self.workers = Workers(
            self.queue,
            reconcile,
            count=count,
            monotonic=self.clock.monotonic,
            metrics=self.metrics,
            redactor=self.redactor,
        )
        self.task = asyncio.create_task(self.workers.run())

    async def close(self) -> None:
        await self.queue.close()
        await self.task


async def test_a_bug_drops_the_pass_backs_off_and_leaves_other_runs_alone(caplog: object) -> None:
    seen: list[str] = []

    async def reconcile(key: Key) -> Wake:
        seen.append(key.name)
        if key.name == "bad":
            raise TypeError("token hunter2-hunter2 leaked")
        return Wake()

    bench = Bench(reconcile)
    bench.redactor.register("hunter2-hunter2")
    await bench.queue.add(Key("team-a", "bad"))
    await bench.queue.add(RUN)
    await bench.clock.advance(4.9)
    assert ["bad", "demo"] == seen
    await bench.clock.advance(0.2)
    await bench.close()

    assert ["bad", "demo", "bad"] == seen
    assert ["bug", "bug", "ok"] == sorted(bench.metrics.results)
    text = getattr(caplog, "text", "")
    assert "hunter2" not in text
    assert "TypeError" in text


async def test_wake_says_when_the_key_comes_back() -> None:
    passes: list[float] = []

    async def reconcile(key: Key) -> Wake:
        assert RUN == key
        passes.append(bench.clock.monotonic())
        return Wake(after_seconds=90) if len(passes) < 3 else Wake(gone=True)

    bench = Bench(reconcile)
    await bench.queue.add(RUN)
    await bench.clock.advance(1000)
    await bench.close()

    assert [0, 90, 180] == passes
    assert 0 == bench.queue.waiting


async def test_an_unanswered_world_backs_off_and_a_good_pass_resets_it() -> None:
    passes: list[float] = []
    answers = [Wake(backoff=True)] * 3 + [Wake(after_seconds=0), Wake(backoff=True), Wake()]

    async def reconcile(key: Key) -> Wake:
        passes.append(bench.clock.monotonic())
        return answers[len(passes) - 1]

    bench = Bench(reconcile)
    await bench.queue.add(RUN)
    await bench.clock.advance(1000)
    await bench.close()

    assert [0, 5, 15, 35, 35, 40] == passes


async def test_one_key_is_never_on_two_workers() -> None:
    running = 0
    release = asyncio.Event()

    async def reconcile(key: Key) -> Wake:
        nonlocal running
        running += 1
        assert 1 == running
        await release.wait()
        running -= 1
        return Wake()

    bench = Bench(reconcile, count=8)
    for _ in range(5):
        await bench.queue.add(RUN)
        await settle()
    release.set()
    await bench.close()

    assert ["ok"] * len(bench.metrics.results) == bench.metrics.results
