"""Memory of the operator with 0, 1,000 and 10,000 finished runs, beside a bare kopf operator.

Each is started anew on the same API server for each count; the status of every run is that of a
whole `patch-safe` run. Read are the resident memory once it has not grown for a while, and the
highest since the start, both from the kernel. Bare kopf has one `on.event` handler for runs that
does nothing. Exits 1 if ours is above its bound with 10,000 runs.

    .venv/bin/python hack/bench/memory.py
"""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

from benchlib.bare import NOTHING
from benchlib.figures import Figures, run_within
from benchlib.finished import Etcd, make_first
from benchlib.processes import bare_log, bare_process, cpu_seconds, memory_mib
from benchlib.world import bench_folder, bench_server
from clusterlib.apiserver import ApiServer
from support.kubeapi import OURS as KINDS
from support.kubeapi import Kube
from support.platform import ensure_namespace, install_kinds, operators_of, until

LIMIT_SECONDS: Final = 30 * 60
COUNTS: Final = (0, 1000, 10_000)
BOUND_MB: Final = 150
FEWEST_SECONDS: Final = 15.0
SETTLED_SECONDS: Final = 5.0
MOST_SECONDS: Final = 90.0
READ_SECONDS: Final = 180.0
IDLE_SHARE: Final = 0.05
OURS: Final = "ours"
BARE: Final = "bare kopf"


@contextlib.asynccontextmanager
async def program(which: str, server: ApiServer, folder: Path) -> AsyncIterator[int]:
    """Start one of the two; gives its process id."""
    if which == OURS:
        async with operators_of(server, folder / "operator") as operators:
            process = operators[0].process
            assert process is not None
            yield process.pid
    else:
        async with bare_process("kopf", server.kubeconfig, NOTHING, folder) as bare:
            yield bare.pid


async def settled(pid: int) -> tuple[float, float]:
    """Memory now and at its peak, once the process has nearly stopped working."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    await asyncio.sleep(FEWEST_SECONDS)
    while loop.time() - started < MOST_SECONDS:
        before = cpu_seconds(pid)
        await asyncio.sleep(SETTLED_SECONDS)
        if cpu_seconds(pid) - before < SETTLED_SECONDS * IDLE_SHARE:
            break
    return memory_mib(pid)


async def measure() -> int:
    """Measure both with growing numbers of runs."""
    figures = Figures("memory with finished runs")
    with bench_folder() as folder, bench_server(folder) as server:
        async with Kube(server.kubeconfig) as kube:
            await install_kinds(kube)
            await ensure_namespace(kube, "team-a")
            etcd, there = Etcd(server), 0
            try:
                for count in COUNTS:
                    if count:
                        if not there:
                            await make_first(kube)
                        await etcd.clone(range(max(there, 1), count))
                        there = count
                    served = await _served(kube)
                    assert served == count, f"the API server has {served} runs, not {count}"
                    await tell(figures, server, folder, count)
            finally:
                await etcd.close()
    return figures.exit_code


async def _served(kube: Kube) -> int:
    """How many runs the API server knows."""
    listed = await kube.call("GET", f"{KINDS}/upgraderuns", params={"limit": "1"})
    return len(listed["items"]) + int(listed["metadata"].get("remainingItemCount", 0))


async def _seen(log: Path, count: int) -> bool:
    """Whether the bare operator has handled as many runs."""
    return f"seen {count}\n" in await asyncio.to_thread(log.read_text)


async def tell(figures: Figures, server: ApiServer, folder: Path, count: int) -> None:
    """Start both, one after the other, and print what they take."""
    for which in (BARE, OURS):
        async with program(which, server, folder) as pid:
            if which == BARE and count:
                told = bare_log(folder, "kopf")
                await until(partial(_seen, told, count), f"kopf has seen {count}", READ_SECONDS)
            now, peak = await settled(pid)
        figures.tell(f"{count} finished runs, {which}", f"{now:.0f} MiB, peak {peak:.0f} MiB")
        if which == OURS and count == COUNTS[-1]:
            megabytes = peak * 1.048576
            figures.at_most("ours, peak with the most runs", megabytes, BOUND_MB, " MB")


def main() -> int:
    """Measure on an API server of its own."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    return run_within(LIMIT_SECONDS, measure())


if __name__ == "__main__":
    sys.exit(main())
