"""From the end of the leader to the first act of the other replica, with 100 active runs.

Two operator processes on an API server in API mode. At each turn the leader gets a signal, and a run
is created at once; measured is the time until a watch tells of that run's pod, which only a leader
makes. SIGKILL leaves the Lease to run out, SIGTERM gives it up. Afterwards every run must have
exactly one pod, and each journal must begin with what it held before. Exits 1 if a bound is missed.
An operator on the common Go library takes 16 to 23 s after SIGKILL with its defaults.

    .venv/bin/python hack/bench/failover.py [--turns 12]
"""

import argparse
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

from benchlib.bare import open_client
from benchlib.figures import Figures, percentile, run_within
from benchlib.pods import PodWatch, create_runs, run_of, watch_pods
from benchlib.world import bench_folder, bench_server, prepare
from support.kubeapi import Kube
from support.operators import OperatorProcess
from support.platform import install_kinds, operators_of, until
from upgraderun_operator.adapters.kubernetes import KubeClient
from upgraderun_operator.answers import Ok
from upgraderun_operator.resources import PODS, UPGRADE_RUNS

LIMIT_SECONDS: Final = 20 * 60
SPACE: Final = "team-a"
ACTIVE: Final = 100
POD_SECONDS: Final = 120
BOUNDS: Final[Mapping[signal.Signals, float]] = {signal.SIGKILL: 10.0, signal.SIGTERM: 1.0}
Journals = dict[str, list[tuple[str, str]]]


async def leader_of(operators: tuple[OperatorProcess, ...]) -> OperatorProcess:
    """Wait until exactly one replica leads, and give it."""
    leading: list[OperatorProcess] = []

    async def one_leads() -> bool:
        leading[:] = [one for one in operators if "upgraderun_leader 1.0" in await one.metrics()]
        return len(leading) == 1

    await until(one_leads, "one replica leads", POD_SECONDS)
    return leading[0]


async def turn(
    client: KubeClient,
    watch: PodWatch,
    operators: tuple[OperatorProcess, ...],
    number: signal.Signals,
    name: str,
) -> float:
    """End the leader and give the seconds until the other one has made the new run's pod."""
    leader = await leader_of(operators)
    ended = time.monotonic()
    leader.signal(number)
    await create_runs(client, SPACE, [name])
    await watch.wait_for([name], POD_SECONDS)
    seconds = watch.seen[name] - ended
    await leader.ended()
    await leader.start()
    return seconds


async def journals(client: KubeClient) -> Journals:
    """Id and state of each entry, in order, by run."""
    listed = await client.list(UPGRADE_RUNS, SPACE)
    assert isinstance(listed, Ok), listed
    return {run["metadata"]["name"]: _entries(run) for run in listed.value.items}


def _entries(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    journal = (run.get("status") or {}).get("journal") or {}
    return [(entry["id"], entry["state"]) for entry in journal.get("entries", [])]


async def measure(turns: int) -> int:
    """Measure both signals, then look at what the turns left."""
    figures = Figures(f"leader ended with {ACTIVE} active runs, API server without fsync")
    with bench_folder() as folder, bench_server(folder) as server:
        async with Kube(server.kubeconfig) as kube:
            await install_kinds(kube)
            await prepare(kube, SPACE)
        async with (
            open_client(server.kubeconfig) as client,
            watch_pods(client, SPACE) as watch,
            operators_of(server, folder / "operators", 2) as operators,
        ):
            active = [f"active-{number}" for number in range(ACTIVE)]
            await create_runs(client, SPACE, active)
            await watch.wait_for(active, POD_SECONDS)
            before = await journals(client)
            for number, bound in BOUNDS.items():
                names = [f"{number.name.lower()}-{count}" for count in range(turns)]
                taken = [await turn(client, watch, operators, number, name) for name in names]
                row = f"{number.name}, {turns} turns"
                figures.tell(f"{row}, p50", f"{percentile(taken, 0.5):.2f} s")
                figures.at_most(f"{row}, p99", percentile(taken, 0.99), bound, " s")
            await tell_leavings(figures, client, before)
    return figures.exit_code


async def tell_leavings(figures: Figures, client: KubeClient, before: Journals) -> None:
    """Print pods beyond one per run, and entries that are no longer there."""
    after = await journals(client)
    listed = await client.list(PODS, SPACE)
    assert isinstance(listed, Ok), listed
    pods = Counter(run_of(pod) for pod in listed.value.items)
    figures.at_most("runs with another number of pods", sum(pods[n] != 1 for n in after), 0)
    lost = sum(after[name][: len(entries)] != entries for name, entries in before.items())
    figures.at_most("journals that lost an entry", lost, 0)


def main() -> int:
    """Measure on an API server of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=12)
    return run_within(LIMIT_SECONDS, measure(parser.parse_args().turns))


if __name__ == "__main__":
    sys.exit(main())
