"""Virtual time and fixed chance for code that takes its clock through its constructor."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count

from upgraderun_runner.client.transport import Seams

EPOCH = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


class VirtualTime:
    """A clock that only sleeping moves; `slept` lists every wait in seconds."""

    def __init__(self) -> None:
        self.elapsed = 0.0
        self.slept: list[float] = []
        self.on_sleep: Callable[[], None] | None = None

    def monotonic(self) -> float:
        return self.elapsed

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.elapsed)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.elapsed += seconds
        if self.on_sleep is not None:
            self.on_sleep()
        await asyncio.sleep(0)


def seams(time: VirtualTime, jitter: float = 0.0) -> Seams:
    """Seams on virtual time; ids count upwards."""
    numbers = count(1)
    return Seams(
        monotonic=time.monotonic,
        now=time.now,
        sleep=time.sleep,
        jitter=lambda: jitter,
        new_id=lambda: f"{next(numbers):032x}",
    )
