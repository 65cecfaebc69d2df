"""API writes, journal entries, size of status and API-server time of a whole `patch-safe` run.

The run goes through operator, runner and publisher processes with real git and uv, from its
creation over one approval to the pull request. Writes are the product's own, from the audit log;
renewals of Leases, TokenReviews (never stored) and the writes of people and kubelet stand apart.
Then the pass with nothing to do: a run that waits for its approval is woken and nothing may be
written. Prints the median run and exits 1 if a bound is missed.

    .venv/bin/python hack/bench/writes.py [--runs 3]
"""

import argparse
import asyncio
import re
import statistics
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

from benchlib.audit import AuditLog, Write, by_kind
from benchlib.diary import LeaseDiary, RunDiary, lease_diary, run_diary
from benchlib.figures import Figures, run_within
from benchlib.processes import server_cpu
from benchlib.world import World, open_world, row_of
from support.platform import until
from support.worlds import Scene, open_scene

LIMIT_SECONDS: Final = 20 * 60
WRITES_MAX: Final = 40
ENTRIES_MAX: Final = 50
STATUS_KIB_MAX: Final = 10
WAKES: Final = 20
IDLE_SECONDS: Final = 5.0
QUIET_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: its writes by kind, what the status writes added, sizes, processor seconds."""

    kinds: Counter[str]
    renewals: int
    reviews: int
    diary: RunDiary
    server_seconds: dict[str, float]
    seconds: float

    @property
    def writes(self) -> int:
        """Writes without renewals and reviews."""
        return sum(self.kinds.values())

    @property
    def entries(self) -> int:
        """Entries of the journal."""
        return int(self.diary.status["journal"]["head"]["seq"])

    @property
    def median_kib(self) -> float:
        """Median size of the status over its versions."""
        return statistics.median(version.size for version in self.diary.versions) / 1024


class Bench:
    """Runs on one world, counted one after the other."""

    def __init__(self, world: World, leases: LeaseDiary) -> None:
        self._world = world
        self._leases = leases
        self._audit = AuditLog(world.server.audit_log)

    async def run(self, name: str) -> Measured:
        """Let one run go from creation to its end, approval included, and count."""
        platform, server = self._world.platform, self._world.server
        scene = await self._scene(name)
        await self._quiet()
        cpu, leases = server_cpu(server), self._leases
        renewals, changes = leases.renewals, leases.changes
        started = asyncio.get_running_loop().time()
        async with run_diary(platform.kube, platform.path("upgraderuns"), name) as diary:
            await platform.create_run(name, scene.spec("Rules"))
            await platform.asked(name)
            await platform.answer(name)
            status = await platform.finished(name)
            assert status["outcome"] == "Published", platform.story(status)
            seconds = asyncio.get_running_loop().time() - started
            writes = await self._quiet()
            assert diary.status == status, "the watch missed a version"
        used = {key: value - cpu[key] for key, value in server_cpu(server).items()}
        kinds, reviews = _stored(writes)
        kinds["take or release leases"] = leases.changes - changes
        return Measured(kinds, leases.renewals - renewals, reviews, diary, used, seconds)

    async def idle_passes(self, name: str) -> tuple[int, list[Write]]:
        """Wake a run that waits for people; give back how many passes it took and the writes."""
        platform = self._world.platform
        scene = await self._scene(name)
        await platform.create_run(name, scene.spec("Rules"))
        await platform.asked(name)
        await self._quiet()
        before = await self._passes()
        for number in range(WAKES):
            note = {"metadata": {"annotations": {"bench.example/wake": str(number)}}}
            await platform.kube.patch(platform.path("upgraderuns", name), note)
            wanted = before + number

            async def passed(wanted: int = wanted) -> bool:
                return await self._passes() > wanted

            await until(passed, "a pass over the woken run")
        writes = await self._quiet()
        return await self._passes() - before, [w for w in writes if not w.is_lease_update]

    async def idle_cpu(self) -> dict[str, float]:
        """CPU seconds per second while nothing happens."""
        before = server_cpu(self._world.server)
        await asyncio.sleep(IDLE_SECONDS)
        after = server_cpu(self._world.server)
        return {name: (after[name] - before[name]) / IDLE_SECONDS for name in before}

    async def _scene(self, name: str) -> Scene:
        world = self._world
        row = row_of("patch-safe")
        return await open_scene(row, name, world.folder / "scenes", world.outside, world.platform)

    async def _quiet(self) -> list[Write]:
        """Read the log until nothing but Leases is written for a while; give back what came."""
        writes: list[Write] = []
        while True:
            await asyncio.sleep(QUIET_SECONDS)
            new = self._audit.writes()
            writes += new
            if all(write.is_lease_update for write in new):
                return writes

    async def _passes(self) -> int:
        text = await self._world.platform.operators[0].metrics()
        found = re.findall(
            r'^upgraderun_reconcile_total\{result="\w+"\} ([0-9.]+)', text, re.MULTILINE
        )
        return round(sum(map(float, found)))


def _stored(writes: list[Write]) -> tuple[Counter[str], int]:
    """Count what is stored, updates of Leases apart, and reviews."""
    kept = [write for write in writes if not (write.is_review or write.is_lease_update)]
    return by_kind(kept), sum(write.is_review for write in writes)


async def measure(runs: int) -> int:
    """Measure, print."""
    figures = Figures("writes of one patch-safe run")
    async with open_world() as world, lease_diary(world.platform.kube) as leases:
        bench = Bench(world, leases)
        await bench.run("warm-up")
        measured = [await bench.run(f"run-{number}") for number in range(runs)]
        passes, idle = await bench.idle_passes("waiting")
        idle_cpu = await bench.idle_cpu()
    ordered = sorted(measured, key=lambda one: one.writes)
    show(figures, ordered[len(ordered) // 2], [one.writes for one in measured], idle_cpu)
    figures.at_most(f"writes in {passes} passes with nothing to do", len(idle), 0)
    return figures.exit_code


def show(
    figures: Figures, one: Measured, all_writes: list[int], idle_cpu: dict[str, float]
) -> None:
    """Print a run: its bounds, then its writes in full."""
    figures.tell("writes of each run", ", ".join(map(str, all_writes)))
    figures.at_most("API writes, renewals apart", one.writes, WRITES_MAX)
    figures.at_most("journal entries", one.entries, ENTRIES_MAX)
    figures.at_most("median size of status", one.median_kib, STATUS_KIB_MAX, " KiB")
    figures.tell("Lease renewals, TokenReviews", f"{one.renewals}, {one.reviews}")
    for name, used in one.server_seconds.items():
        idle = idle_cpu[name] * 100
        figures.tell(f"CPU of {name} in a run", f"{used:.2f} s (idle: {idle:.1f} % of a core)")
    figures.tell("the run took", f"{one.seconds:.1f} s")
    print("writes by kind:")
    for kind, count in one.kinds.most_common():
        print(f"  {count:3d} {kind}")
    print("writes of the run's status, in order:")
    for version in one.diary.versions:
        print(f"  {version.size:6d} bytes  {version.words}")


def main() -> int:
    """Measure some runs on a world of their own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    return run_within(LIMIT_SECONDS, measure(parser.parse_args().runs))


if __name__ == "__main__":
    sys.exit(main())
