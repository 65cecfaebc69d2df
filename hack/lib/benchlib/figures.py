"""Printing of figures: one row each, with its bound and whether it holds.

Callers: the programs in `hack/bench`. A bound that is missed is printed and told by the exit code,
never raised: the other rows are wanted all the same.
"""

import asyncio
import math
import os
import platform
import signal
import subprocess
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

WIDTH: Final = 44
SPIN: Final = 2_000_000


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that is not below `share` of all."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def run_within(seconds: float, measuring: Coroutine[Any, Any, int]) -> int:
    """Run a benchmark to its exit code; one that hangs is ended, its servers too, and says so.

    SIGTERM ends it in the same way: what it started would outlive it.
    """

    async def limited() -> int:
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await measuring
        except TimeoutError:
            if not limit.expired():
                raise
        print(f"no end within {seconds / 60:.0f} minutes", flush=True)
        return 1

    try:
        return asyncio.run(limited())
    except asyncio.CancelledError:
        return 128 + signal.SIGTERM


def machine() -> str:
    """What it was measured on, with its load before the benchmark began."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}, "
        f"load {load:.1f}, commit {_commit()}"
    )


def business() -> str:
    """How much of a core this process gets when it asks for one, and how fast that is.

    A machine that runs other things answers less than 100 %, and then every time below is too long.
    """
    wall, cpu = time.monotonic(), time.process_time()
    total = 0
    for number in range(SPIN):
        total += number
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    return f"{SPIN / 1e6:.0f} million additions: {wall:.2f} s, {cpu / wall:.0%} of a core"


def _commit() -> str:
    argv = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "none"


@dataclass(slots=True)
class Figures:
    """Rows of one benchmark, printed as they come."""

    title: str
    missed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        print(f"# {self.title} ({machine()}; {business()})", flush=True)

    def tell(self, what: str, value: str) -> None:
        """Print a figure without a bound."""
        print(f"{what:<{WIDTH}} {value}", flush=True)

    def at_most(self, what: str, value: float, bound: float, unit: str = "") -> None:
        """Print a figure that shall not be above its bound."""
        self._judge(what, value, f"≤ {bound:g}", value <= bound, unit)

    def at_least(self, what: str, value: float, bound: float, unit: str = "") -> None:
        """Print a figure that shall not be below its bound."""
        self._judge(what, value, f"≥ {bound:g}", value >= bound, unit)

    def _judge(self, what: str, value: float, bound: str, holds: bool, unit: str) -> None:
        if not holds:
            self.missed.append(what)
        self.tell(what, f"{value:.4g}{unit} (bound {bound}{unit}{'' if holds else ', MISSED'})")

    @property
    def exit_code(self) -> int:
        """1 if a bound was missed."""
        return 1 if self.missed else 0
