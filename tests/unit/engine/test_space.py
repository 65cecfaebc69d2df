"""Room of the artifact store: shown each minute, and what isn't known isn't shown."""

import contextlib

from upgraderun_operator.answers import StoreDown
from upgraderun_operator.engine.space import SPACE_SECONDS, watch_space


class Ending(Exception):  # noqa: N818  an end, not an error
    """The test has seen enough."""


class CountedClock:
    """Ends the watch at the second pause."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return float(len(self.pauses))

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if len(self.pauses) == 2:
            raise Ending


class Shaky:
    """A store that answers the second time only."""

    def __init__(self) -> None:
        self._answers: list[tuple[int, int] | StoreDown] = [StoreDown("stale handle"), (3, 9)]

    async def space(self) -> tuple[int, int] | StoreDown:
        return self._answers.pop(0)


async def test_it_is_looked_up_again_after_a_failure() -> None:
    shown: list[tuple[int, int]] = []
    clock = CountedClock()

    with contextlib.suppress(Ending):
        await watch_space(Shaky(), clock, lambda free, size: shown.append((free, size)))

    assert [(3, 9)] == shown
    assert [SPACE_SECONDS, SPACE_SECONDS] == clock.pauses
