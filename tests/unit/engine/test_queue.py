"""The work queue: DESIGN §6a (one key never on two workers, back-off, deadlines)."""

import asyncio
import functools

import pytest

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


async def test_what_is_urgent_goes_first_but_not_for_ever() -> None:
    queue = make_queue(VirtualClock())
    for key in ("late-1", "late-2"):
        await queue.add(key, urgent=False)
    for number in range(5):
        await queue.add(f"new-{number}")

    taken = [await queue.get() for _ in range(7)]

    assert taken == ["new-0", "new-1", "new-2", "late-1", "new-3", "new-4", "late-2"]


async def test_a_key_that_becomes_urgent_moves_up_and_keeps_its_age() -> None:
    clock = VirtualClock()
    queue = make_queue(clock)
    await queue.add("waits", urgent=False)
    await queue.add("other", urgent=False)
    await clock.advance(3)
    await queue.add("other")
    await queue.add("other", urgent=False)

    assert 2 == len(queue)
    assert 3.0 == queue.oldest_age()
    assert ["other", "waits"] == [await queue.get(), await queue.get()]


async def test_a_deadline_waits_behind_what_is_urgent() -> None:
    clock = VirtualClock()
    queue = make_queue(clock)
    await queue.add_after("waits", 1)
    await clock.advance(2)
    await queue.add("new")

    assert ["new", "waits"] == [await queue.get(), await queue.get()]


class TestMoot:
    """An addition that turns out to be no news is dropped; one that is news is kept beside it."""

    async def test_is_asked_at_once_for_a_free_key(self) -> None:
        queue = make_queue(VirtualClock())
        await queue.add("a", moot=lambda: True)
        assert 0 == len(queue)
        await queue.add("a", moot=lambda: False)
        assert "a" == await queue.get()

    async def test_is_asked_after_the_pass_for_a_key_that_is_worked_on(self) -> None:
        queue = make_queue(VirtualClock())
        known: list[str] = []
        await queue.add("a")
        await queue.get()
        await queue.add("a", moot=lambda: "1" in known)
        known.append("1")
        await queue.done("a")
        assert 0 == len(queue)

    @pytest.mark.parametrize("moots", [[True, False], [True, None], [None, True]])
    async def test_one_that_counts_is_enough(self, moots: list[bool | None]) -> None:
        queue = make_queue(VirtualClock())
        await queue.add("a")
        await queue.get()
        for moot in moots:
            await queue.add("a", moot=None if moot is None else functools.partial(bool, moot))
        await queue.done("a")
        assert 1 == len(queue)

    async def test_a_deadline_that_comes_inside_a_pass_counts(self) -> None:
        clock = VirtualClock()
        queue = make_queue(clock)
        await queue.add("a")
        await queue.add("b")
        assert "a" == await queue.get()
        await queue.add("a", moot=lambda: True)
        await queue.add_after("a", 1)
        await clock.advance(1)
        assert "b" == await queue.get()
        await queue.done("a")
        assert "a" == await queue.get()


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
