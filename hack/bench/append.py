"""Journal append against a raw compare-and-set of the same size on the same API server.

Raw: GET once, then PUT `/status` with resourceVersion in a loop over one growing list of equal
bytes, nothing checked. Ours: the guarded write, with guards, chain, projections and compaction. Both
use the same client without limiter, one run per lane, at concurrency 1 and 8, in alternating
rounds, so that a slow minute of the machine hits both. Prints rates and ratios; exits 1 below 0.8.

    .venv/bin/python hack/bench/append.py [--seconds 5] [--rounds 3]
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

from benchlib.figures import run_within
from clusterlib.apiserver import ApiServer, Options, start_api_server
from upgraderun_operator.adapters.clock import SystemClock
from upgraderun_operator.adapters.kubeconfig import from_kubeconfig
from upgraderun_operator.adapters.kubernetes import KubeClient, WriteLimits
from upgraderun_operator.adapters.runs import RunReader
from upgraderun_operator.adapters.store import VolumeStore
from upgraderun_operator.adapters.writer import StatusWriter
from upgraderun_operator.answers import Ok
from upgraderun_operator.journal.guards import EpochIs, LeaderEpochAtMost, NoVerdict
from upgraderun_operator.journal.run import ref_of
from upgraderun_operator.journal.writes import Change, Done
from upgraderun_operator.resources import UPGRADE_RUNS
from upgraderun_protocol.entries import Draft, EntryState
from upgraderun_protocol.ids import EntryId, Epoch

HERE: Final = Path(__file__).resolve().parents[2]
UNLIMITED: Final = WriteLimits(None, 1, None, 1)
LANES: Final = (1, 8)
FLOOR: Final = 0.8
LIMIT_SECONDS: Final = 10 * 60
Step = Callable[[], Awaitable[None]]


def draft(number: int) -> Draft:
    """An entry of usual size: an intent and its outcome take turns."""
    name, is_done = divmod(number, 2)
    if is_done:
        data = {"reason": "killed", "message": "m" * 80}
        return Draft(EntryId(f"acquire/{name + 1}"), "acquire", EntryState.INTERRUPTED, data)
    return Draft(EntryId(f"acquire/{name + 1}"), "acquire", EntryState.INTENT)


async def new_run(client: KubeClient, name: str) -> Any:
    """Create a run in `default`."""
    body = {
        "apiVersion": UPGRADE_RUNS.api_version,
        "kind": UPGRADE_RUNS.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"repository": {"url": "https://git.example/team/app.git"}, "mode": "Rules"},
    }
    answer = await client.create(UPGRADE_RUNS, "default", body)
    assert isinstance(answer, Ok), answer
    return answer.value


async def journal_step(client: KubeClient, root: Path, name: str, sizes: list[int]) -> Step:
    """One lane of ours: each step appends one entry under guards."""
    run = await new_run(client, name)
    clock = SystemClock()
    store = VolumeStore(root, clock)
    writer = StatusWriter(client, RunReader(client, store), store, clock, "bench")
    guards = (NoVerdict(), LeaderEpochAtMost(Epoch(1)), EpochIs(Epoch(0)))
    number = 0

    async def step() -> None:
        nonlocal number
        done = await writer.guarded_write(ref_of(run), guards, Change((draft(number),)))
        assert isinstance(done, Done), done
        number += 1
        sizes.append(len(json.dumps(done.view.raw["status"], separators=(",", ":"))))

    return step


async def raw_step(client: KubeClient, name: str, status: Any) -> Step:
    """One lane of raw compare-and-set: the same status again and again, but for its mark."""
    run = await new_run(client, name)
    number = 0

    async def step() -> None:
        nonlocal run, number
        number += 1
        mark = {"id": f"{number:032x}", "by": "bench"}
        body = {**run, "status": {**status, "write": mark}}
        answer = await client.put_status(UPGRADE_RUNS, body)
        assert isinstance(answer, Ok), answer
        run = answer.value

    return step


async def rate(steps: list[Step], seconds: float) -> float:
    """Steps per second with all lanes at work."""
    count = 0
    start = time.monotonic()
    end = start + seconds

    async def lane(step: Step) -> None:
        nonlocal count
        while time.monotonic() < end:
            await step()
            count += 1

    await asyncio.gather(*map(lane, steps))
    return count / (time.monotonic() - start)


async def sample_status(client: KubeClient, root: Path) -> Any:
    """The status that an append loop has on average: what raw writes are made of."""
    sizes: list[int] = []
    step = await journal_step(client, root, "sample", sizes)
    for _ in range(200):
        await step()
    wanted = statistics.mean(sizes[100:])
    while abs(sizes[-1] - wanted) > wanted / 20:
        await step()
    answer = await client.get(UPGRADE_RUNS, "default", "sample")
    assert isinstance(answer, Ok), answer
    return answer.value["status"]


async def measure(server: ApiServer, root: Path, seconds: float, rounds: int) -> dict[int, float]:
    """Ratios by concurrency; prints a row each."""
    ratios: dict[int, float] = {}
    clock = SystemClock()
    async with KubeClient(from_kubeconfig(server.kubeconfig), clock, UNLIMITED) as client:
        status = await sample_status(client, root)
        for lanes in LANES:
            sizes: list[int] = []
            ours = [
                await journal_step(client, root, f"ours-{lanes}-{lane}", sizes)
                for lane in range(lanes)
            ]
            raw = [await raw_step(client, f"raw-{lanes}-{lane}", status) for lane in range(lanes)]
            await rate(ours, 1)
            await rate(raw, 1)
            pairs = [(await rate(raw, seconds), await rate(ours, seconds)) for _ in range(rounds)]
            raw_rate = statistics.median(pair[0] for pair in pairs)
            our_rate = statistics.median(pair[1] for pair in pairs)
            ratios[lanes] = our_rate / raw_rate
            print(
                f"concurrency {lanes}: raw {raw_rate:7.1f}/s of "
                f"{len(json.dumps(status, separators=(',', ':')))} bytes, "
                f"journal {our_rate:7.1f}/s of {statistics.mean(sizes):.0f} bytes on average, "
                f"ratio {ratios[lanes]:.2f}"
            )
    return ratios


async def compare(seconds: float, rounds: int) -> int:
    """Start an API server of its own, measure, stop it; 1 if a ratio is too low."""
    with tempfile.TemporaryDirectory() as folder:
        server = start_api_server(Path(folder) / "api", Options(fsync=False))
        try:
            server.kubectl("apply", "--server-side", "-f", str(HERE / "crds"))
            server.kubectl("wait", "--for=condition=Established", "crd", "--all")
            ratios = await measure(server, Path(folder) / "store", seconds, rounds)
        finally:
            server.stop()
    below = [lanes for lanes, ratio in ratios.items() if ratio < FLOOR]
    for lanes in below:
        print(f"concurrency {lanes} misses {FLOOR}x")
    return 1 if below else 0


def main() -> int:
    """Measure with the given rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    return run_within(LIMIT_SECONDS, compare(arguments.seconds, arguments.rounds))


if __name__ == "__main__":
    sys.exit(main())
