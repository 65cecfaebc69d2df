"""From the creation of a run to its runner pod: 1, 100 and 1,000 runs at once.

Ours beside a bare asyncio watch loop and a bare `kopf.on.event` handler, which only create a pod:
ours takes the repository, freezes the policy, journals the pod's intent, makes volume and Lease
first. One API server in API mode, so pods are created and never run; one operator with its default
limits, runs of mode Baseline (no forge is asked), a repository each. A time is from the request that
creates the run to the moment this process's watch tells of its pod; at most 32 creations are in
flight. "1 at once" is 30 runs one after the other. Exits 1 if a bound is missed.

    .venv/bin/python hack/bench/latency.py [--many 1000]
"""

import argparse
import contextlib
import math
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

from benchlib.bare import open_client
from benchlib.figures import Figures, percentile, run_within
from benchlib.pods import (
    PodWatch,
    create_runs,
    watch_pods,
)
from benchlib.processes import bare_process
from benchlib.world import bench_folder, bench_server, prepare
from clusterlib.apiserver import ApiServer
from support.kubeapi import Kube
from support.platform import install_kinds, operators_of
from upgraderun_operator.adapters.kubernetes import KubeClient

LIMIT_SECONDS: Final = 30 * 60
SINGLES: Final = 30
HUNDRED: Final = 100
P50_ONE_MS: Final = 100
RATE_MIN: Final = 20
POD_SECONDS: Final = 120
OURS: Final = "ours"


@dataclass(frozen=True, slots=True)
class Batch:
    """Latencies in seconds of runs that were created at once, and pods per second over all.

    `missing`: runs that had no pod when the time was over; they count as never.
    """

    latencies: tuple[float, ...]
    rate: float
    missing: int = 0

    def percentile(self, share: float) -> float:
        """Milliseconds; infinite if that run had no pod in time."""
        return percentile([*self.latencies, *[math.inf] * self.missing], share) * 1000

    @property
    def words(self) -> str:
        """The row's figures."""
        row = f"p50 {self.percentile(0.5):7.0f} ms   p99 {self.percentile(0.99):7.0f} ms   "
        row += f"{self.rate:6.1f} runs/s"
        return f"{row}   ({self.missing} not in {POD_SECONDS} s)" if self.missing else row


async def batch(client: KubeClient, namespace: str, watch: PodWatch, names: list[str]) -> Batch:
    """Create runs at once and wait for their pods, but not for ever."""
    sent = await create_runs(client, namespace, names)
    with contextlib.suppress(TimeoutError):
        await watch.wait_for(names, POD_SECONDS)
    seen = {name: watch.seen[name] for name in names if name in watch.seen}
    latencies = tuple(at - sent[name] for name, at in seen.items())
    span = max([*seen.values(), *sent.values()]) - min(sent.values())
    return Batch(latencies, len(seen) / span, len(names) - len(seen))


async def one_by_one(client: KubeClient, namespace: str, watch: PodWatch, count: int) -> Batch:
    """Create runs, each after the pod of the one before."""
    found = [await batch(client, namespace, watch, [f"single-{n}"]) for n in range(count)]
    latencies = tuple(latency for one in found for latency in one.latencies)
    return Batch(latencies, count / sum(latencies))


@contextlib.asynccontextmanager
async def program(which: str, server: ApiServer, folder: Path) -> AsyncIterator[None]:
    """Run the operator or one of the bare programs over the namespace of its name."""
    if which == OURS:
        variables = {"UPGRADERUN_WATCH_NAMESPACES": OURS}
        async with operators_of(server, folder / "operator", 1, **variables):
            yield
    else:
        async with bare_process(which, server.kubeconfig, which, folder):
            yield


async def measure_one(
    figures: Figures, which: str, server: ApiServer, folder: Path, many: int
) -> dict[int, Batch]:
    """Measure a program with 1, 100 and many runs at once."""
    async with (
        open_client(server.kubeconfig) as client,
        watch_pods(client, which) as watch,
        program(which, server, folder),
    ):
        # The watch of a program has no sign of readiness but its first pod.
        await batch(client, which, watch, ["warm-up"])
        found = {1: await one_by_one(client, which, watch, SINGLES)}
        for count in (HUNDRED, many):
            names = [f"of-{count}-{n}" for n in range(count)]
            found[count] = await batch(client, which, watch, names)
    for count, one in found.items():
        figures.tell(f"{count} at once, {which}", one.words)
    return found


async def measure(many: int) -> int:
    """Measure all on one API server, the bare ones first."""
    figures = Figures("from creation to runner pod, API server without fsync")
    with bench_folder() as folder, bench_server(folder) as server:
        async with Kube(server.kubeconfig) as kube:
            await install_kinds(kube)
            for namespace in ("loop", "kopf", OURS):
                await prepare(kube, namespace)
        found = {
            which: await measure_one(figures, which, server, folder, many)
            for which in ("loop", "kopf", OURS)
        }
    for count in (1, HUNDRED, many):
        ours, bare = (found[which][count].percentile(0.5) for which in (OURS, "kopf"))
        figures.tell(f"{count} at once, ours against bare kopf", f"p50 {ours / bare:.1f}x")
    figures.at_most("ours, one run, p50", found[OURS][1].percentile(0.5), P50_ONE_MS, " ms")
    figures.at_least(f"ours, {many} drained", found[OURS][many].rate, RATE_MIN, " runs/s")
    figures.tell("load at the end", f"{os.getloadavg()[0]:.1f}")
    return figures.exit_code


def main() -> int:
    """Measure on an API server of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--many", type=int, default=1000, help="more than 100")
    return run_within(LIMIT_SECONDS, measure(parser.parse_args().many))


if __name__ == "__main__":
    sys.exit(main())
