"""What runs that only stand there cost: 10, 100, 1,000 and 10,000 finished, 10 to 1,000 suspended.

For each number: `kubectl get runs` beside `kubectl get configmaps` of as many; from the start of
the operator to its first answer to a run that waited for it, beside a bare kopf operator until its
one handler has seen them all; processor time of half a minute with nothing to do, and memory, beside the
same kopf. A suspended run has said so once and waits. Exits 1 if `kubectl get runs` takes longer
than its bound with the most runs.

    .venv/bin/python hack/bench/scale.py
"""

import argparse
import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

from benchlib.bare import NOTHING
from benchlib.figures import Figures, percentile, run_within
from benchlib.finished import NAMESPACE, Etcd, make_first
from benchlib.processes import bare_log, bare_process, cpu_seconds, memory_mib
from benchlib.world import bench_folder, bench_server
from clusterlib.apiserver import ApiServer
from support.kubeapi import CORE, OURS, Json, Kube, path_of
from support.platform import ensure_namespace, install_kinds, operators_of, until

LIMIT_SECONDS: Final = 40 * 60
FINISHED: Final = (10, 100, 1000, 10_000)
SUSPENDED: Final = (10, 100, 1000)
GET_SECONDS: Final = 2.0
GETS: Final = 5
READ_SECONDS: Final = 300.0
SETTLE_SECONDS: Final = 10.0
IDLE_SECONDS: Final = 30.0
CREATORS: Final = 8


@dataclass(frozen=True, slots=True)
class Idle:
    """Half a minute of a program that has nothing to do."""

    cpu_seconds: float
    memory_mib: float

    @property
    def words(self) -> str:
        """The row's figures."""
        return f"{self.cpu_seconds / IDLE_SECONDS:.1%} of a core, {self.memory_mib:.0f} MiB"


@dataclass(frozen=True, slots=True)
class Started:
    """A program that has started, and the seconds until it had."""

    pid: int
    seconds: float

    @property
    def words(self) -> str:
        """The row's figure."""
        return f"ready after {self.seconds:.1f} s"


def seconds_of_get(server: ApiServer, plural: str) -> float:
    """Median of a few `kubectl get`, after one that fills its discovery cache."""
    argv = ("get", plural, "-n", NAMESPACE)
    server.kubectl(*argv)
    taken = []
    for _ in range(GETS):
        started = time.monotonic()
        server.kubectl(*argv)
        taken.append(time.monotonic() - started)
    return percentile(taken, 0.5)


async def idle(pid: int) -> Idle:
    """Let a program settle, then watch it for a while."""
    await asyncio.sleep(SETTLE_SECONDS)
    before = cpu_seconds(pid)
    await asyncio.sleep(IDLE_SECONDS)
    return Idle(cpu_seconds(pid) - before, memory_mib(pid)[0])


def suspended(name: str) -> Json:
    """A run that nobody will start: the operator says so in its status, once."""
    return {
        "apiVersion": "upgraderun.dev/v1alpha1",
        "kind": "UpgradeRun",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "repository": {"url": "https://git.example/fixtures/library.git"},
            "policyRef": {"name": "library"},
            "suspend": True,
        },
    }


async def _answered(kube: Kube, name: str) -> bool:
    """Whether the operator has said something about a run."""
    return bool((await kube.get(path_of(OURS, NAMESPACE, "upgraderuns", name))).get("status"))


async def answer_to(kube: Kube, name: str) -> None:
    """Create a suspended run, if it isn't there, and wait for its status."""
    path = path_of(OURS, NAMESPACE, "upgraderuns")
    if await kube.find(f"{path}/{name}") is None:
        await kube.create(path, suspended(name))
    await until(partial(_answered, kube, name), f"{name} is answered", READ_SECONDS, every=0.02)


@contextlib.asynccontextmanager
async def ours(server: ApiServer, kube: Kube, folder: Path, fresh: str) -> AsyncIterator[Started]:
    """Start the operator while a run waits for it."""
    await kube.create(path_of(OURS, NAMESPACE, "upgraderuns"), suspended(fresh))
    started = time.monotonic()
    async with operators_of(server, folder / "operator") as operators:
        await answer_to(kube, fresh)
        process = operators[0].process
        assert process is not None
        yield Started(process.pid, time.monotonic() - started)
    await kube.delete(path_of(OURS, NAMESPACE, "upgraderuns", fresh))


@contextlib.asynccontextmanager
async def bare(server: ApiServer, folder: Path, count: int) -> AsyncIterator[Started]:
    """Start a kopf operator with one handler that does nothing."""
    started = time.monotonic()
    async with bare_process("kopf", server.kubeconfig, NOTHING, folder) as process:
        log = bare_log(folder, "kopf")
        await until(partial(_seen, log, count), f"kopf has seen {count}", READ_SECONDS)
        yield Started(process.pid, time.monotonic() - started)


async def _seen(log: Path, count: int) -> bool:
    """Whether the bare operator has handled as many runs."""
    return f"seen {count}\n" in await asyncio.to_thread(log.read_text)


async def tell(
    figures: Figures, server: ApiServer, kube: Kube, folder: Path, what: str, count: int
) -> None:
    """Print start and idleness of both with so many runs."""
    async with bare(server, folder, count) as started:
        figures.tell(f"{what}, bare kopf", f"{started.words}; {(await idle(started.pid)).words}")
    async with ours(server, kube, folder, f"fresh-{what.replace(' ', '-')}") as started:
        figures.tell(f"{what}, ours", f"{started.words}; {(await idle(started.pid)).words}")


async def measure_finished(figures: Figures, server: ApiServer, kube: Kube, folder: Path) -> None:
    """Finished runs: what people's list costs, and the operator."""
    await make_first(kube)
    etcd, there = Etcd(server), 0
    try:
        for count in FINISHED:
            await etcd.clone(range(max(there, 1), count))
            await fill_config_maps(kube, there, count)
            there = count
            runs = await asyncio.to_thread(seconds_of_get, server, "upgraderuns")
            bare = await asyncio.to_thread(seconds_of_get, server, "configmaps")
            row = f"kubectl get runs, {count}"
            figures.tell(f"{row} beside configmaps", f"{bare:.2f} s, ratio {runs / bare:.1f}x")
            if count == FINISHED[-1]:
                figures.at_most(row, runs, GET_SECONDS, " s")
            else:
                figures.tell(row, f"{runs:.2f} s")
            await tell(figures, server, kube, folder, f"{count} finished", count)
    finally:
        await etcd.close()


async def fill_config_maps(kube: Kube, there: int, count: int) -> None:
    """As many ConfigMaps, a few requests at once."""
    path = path_of(CORE, NAMESPACE, "configmaps")
    numbers = iter(range(there, count))

    async def make() -> None:
        for number in numbers:
            metadata = {"name": f"bare-{number}", "namespace": NAMESPACE}
            await kube.create(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

    await asyncio.gather(*(make() for _ in range(CREATORS)))


async def measure_suspended(figures: Figures, server: ApiServer, kube: Kube, folder: Path) -> None:
    """Unfinished runs: the operator made one's status, the others have the same."""
    first = "suspended-0"
    async with operators_of(server, folder / "operator"):
        await answer_to(kube, first)
    etcd, there = Etcd(server), 1
    try:
        for count in SUSPENDED:
            await etcd.clone(range(there, count), first)
            there = count
            await tell(figures, server, kube, folder, f"{count} suspended", count)
    finally:
        await etcd.close()


async def measure() -> int:
    """Measure on an API server for each kind of run."""
    figures = Figures("runs that only stand there")
    for part in (measure_finished, measure_suspended):
        with bench_folder() as folder, bench_server(folder) as server:
            async with Kube(server.kubeconfig) as kube:
                await install_kinds(kube)
                await ensure_namespace(kube, NAMESPACE)
                await part(figures, server, kube, folder)
    return figures.exit_code


def main() -> int:
    """Measure on API servers of its own."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    return run_within(LIMIT_SECONDS, measure())


if __name__ == "__main__":
    sys.exit(main())
