"""SIGKILL for programs in pods, from outside their containers: whoever runs the tests is root here.

Callers: tests that kill at random instants. A container's own processes can't kill their first one
with SIGKILL; its node can, and a node's processes are this machine's. Only processes in cgroups of
the given pods are touched.
"""

import asyncio
import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from support.cluster import Cluster
from support.installation import SYSTEM

LOG: Final = logging.getLogger(__name__)
PAUSE_SECONDS: Final = (2.0, 8.0)
PROGRAMS: Final = {
    "operator": b"upgraderun_operator",
    "runner": b"upgraderun_runner\0run",
    "publisher": b"upgraderun_runner\0publish",
}
WEIGHTS: Final = {"operator": 1, "runner": 3, "publisher": 3}
"""Chances of the roles that run. The kubelet starts a killed operator again ever more slowly."""


@dataclass(frozen=True, slots=True)
class Program:
    """The first process of a program in a pod."""

    role: str
    pod: str
    pid: int


def programs(cluster: Cluster, space: str) -> list[Program]:
    """Find operators, runners and publishers that run now; one per pod."""
    pods = [
        pod
        for namespace in (space, SYSTEM)
        for pod in cluster.get("pods", "-n", namespace)["items"]
    ]
    return list(_running(pods))


async def strike(cluster: Cluster, space: str, count: int, random: Random) -> Counter[str]:
    """Kill at random instants until it was enough; how many of which program."""
    killed: Counter[str] = Counter()
    begun = time.monotonic()
    while killed.total() < count:
        await asyncio.sleep(random.uniform(*PAUSE_SECONDS))
        victim = await asyncio.to_thread(kill_one, cluster, space, random)
        if victim is not None:
            killed[victim.role] += 1
            seconds = time.monotonic() - begun
            LOG.warning("%6.1f s: SIGKILL for the %s in %s", seconds, victim.role, victim.pod)
    return killed


def kill_one(cluster: Cluster, space: str, random: Random) -> Program | None:
    """SIGKILL one of them by chance; None if nothing runs, or it ended by itself meanwhile."""
    found = programs(cluster, space)
    if not found:
        return None
    roles = sorted({program.role for program in found})
    role = random.choices(roles, [WEIGHTS[role] for role in roles])[0]
    chosen = random.choice([program for program in found if program.role == role])
    try:
        os.kill(chosen.pid, signal.SIGKILL)
    except ProcessLookupError:
        return None
    return chosen


def _running(pods: Iterable[Any]) -> Iterable[Program]:
    names = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in pods}
    seen = set()
    for pid in sorted(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        try:
            group = Path(f"/proc/{pid}/cgroup").read_text().replace("_", "-")
            argv = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        uid = next((uid for uid in names if uid in group), "")
        role = next((role for role, mark in PROGRAMS.items() if mark in argv), "")
        if uid and role and uid not in seen:
            seen.add(uid)
            yield Program(role, names[uid], pid)
