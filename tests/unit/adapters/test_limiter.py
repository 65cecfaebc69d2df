"""Token bucket in virtual time."""

import asyncio
from datetime import UTC, datetime

from upgraderun_operator.adapters.limiter import RateLimiter


class Virtual:
    """A clock that only sleep moves."""

    def __init__(self) -> None:
        self.at = 0.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        return datetime(2026, 11, 30, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))

    def new_id(self) -> str:
        return "0" * 32


async def test_a_burst_passes_and_the_rest_waits_its_turn() -> None:
    clock = Virtual()
    limiter = RateLimiter(clock, 10, 2)

    await asyncio.gather(*(limiter.acquire() for _ in range(4)))

    assert clock.slept == [0.1, 0.2]


async def test_tokens_come_back_up_to_the_burst() -> None:
    clock = Virtual()
    limiter = RateLimiter(clock, 10, 2)
    for _ in range(2):
        await limiter.acquire()
    clock.at = 100

    for _ in range(3):
        await limiter.acquire()

    assert clock.slept == [0.1]


async def test_no_rate_no_limit() -> None:
    clock = Virtual()
    limiter = RateLimiter(clock, None, 1)

    for _ in range(100):
        await limiter.acquire()

    assert clock.slept == []
