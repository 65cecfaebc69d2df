"""The work queue: DESIGN §6a (one key never on two workers, back-off, deadlines)."""

import asyncio

from support.virtual_time import VirtualClock, settle
from upgraderun_operator.engine.queue import WorkQueue


def make_queue(clock: VirtualClock) -> WorkQueue[str]:
    return WorkQueue(clock, backoff_first=5.0, backoff_max=300.0)


async def test_a_key_added_twice_is_handed_out_once() -> None:
    queue = make_queue(VirtualClock())
    await queue.add("a")
    await queue.add("a")
    await queue.add("b")

    assert ["a", "b"] == [await queue.get(), await queue.get()]
    assert 2 == len(queue)


async def test_a_key_that_is_worked_on_waits_for_done() -> None:
    queue = make_queue(VirtualClock())
    await queue.add("a")
    assert "a" == await queue.get()
    await queue.add("a")
    second = asyncio.create_task(queue.get())

    await settle()
    assert not second.done()
    await queue.done("a")

    assert "a" == await second


async def test_a_deadline_hands_the_key_out_at_its_instant_and_not_before() -> None:
    clock = VirtualClock()
    queue = make_queue(clock)
    await queue.add_after("a", 90)
    got = asyncio.create_task(queue.get())

    await clock.advance(89.9)
    assert not got.done()
    assert 1 == queue.waiting
    await clock.advance(0.1)

    assert "a" == await got
    assert 0 == queue.waiting


async def test_an_earlier_deadline_replaces_a_later_one_and_not_the_reverse() -> None:
    clock = VirtualClock()
    queue = make_queue(clock)
    await queue.add_after("a", 90)
    await queue.add_after("a", 10)
    await queue.add_after("a", 50)
    got = asyncio.create_task(queue.get())

    await clock.advance(10)
    assert "a" == await got
    await queue.done("a")
    again = asyncio.create_task(queue.get())
    await clock.advance(200)

    assert not again.done()
    await queue.close()
    assert await again is None


async def test_backoff_doubles_to_its_bound_and_starts_again_after_success() -> None:
    queue = make_queue(VirtualClock())

    waits = [await queue.retry("a") for _ in range(8)]
    queue.forget_failures("a")

    assert [5, 10, 20, 40, 80, 160, 300, 300] == waits
    assert 5 == await queue.retry("a")


async def test_a_dropped_key_has_no_deadline() -> None:
    clock = VirtualClock()
    queue = make_queue(clock)
    await queue.add_after("a", 5)
    await queue.drop("a")
    got = asyncio.create_task(queue.get())

    await clock.advance(60)

    assert not got.done()
    await queue.close()
    assert await got is None


async def test_age_counts_from_the_first_add() -> None:
    clock = VirtualClock()
    queue = make_queue(clock)
    assert 0 == queue.oldest_age()
    await queue.add("a")
    await clock.advance(3)
    await queue.add("a")

    assert 3 == queue.oldest_age()
    await queue.get()
    await queue.add("a")
    await clock.advance(2)
    assert 2 == queue.oldest_age()


async def test_a_new_deadline_wakes_a_worker_that_waits_for_a_later_one() -> None:
    clock = VirtualClock()
    queue = make_queue(clock)
    await queue.add_after("late", 100)
    got = asyncio.create_task(queue.get())
    await clock.advance(1)
    await queue.add_after("soon", 1)

    await clock.advance(1)

    assert "soon" == await got
