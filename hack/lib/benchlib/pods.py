"""Pods and runs of benchmarks without a kubelet: what is created, and when a watch tells of it.

Callers: `hack/bench/latency.py` and `failover.py`, `benchlib.bare`.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final

from upgraderun_operator.adapters.kubernetes import KubeClient
from upgraderun_operator.answers import KubeObject, Ok
from upgraderun_operator.resources import PODS, UPGRADE_RUNS, Resource

ACCOUNT: Final = "upgraderun-runner"
RUN_LABEL: Final = "bench.example/run"
HOST: Final = "https://git.example"
IMAGE: Final = "registry.example/runner@sha256:" + "1" * 64
AT_ONCE: Final = 32


def bare_pod(namespace: str, run: str) -> dict[str, Any]:
    """Make a pod as small as the API server takes it, under the run's name."""
    container = {"name": "runner", "image": IMAGE, "args": ["run"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": run, "namespace": namespace, "labels": {RUN_LABEL: run}},
        "spec": {"serviceAccountName": ACCOUNT, "containers": [container]},
    }


def policy_spec() -> dict[str, Any]:
    """Allow every repository of these benchmarks."""
    return {
        "repositories": [f"{HOST}/bench/*"],
        "images": {"runner": IMAGE, "python": [{"version": "3.11", "image": IMAGE}]},
        "sandbox": {"type": "Inline"},
    }


def run_object(namespace: str, name: str) -> dict[str, Any]:
    """Make a run of a repository of its own, so that none waits for another."""
    return {
        "apiVersion": UPGRADE_RUNS.api_version,
        "kind": UPGRADE_RUNS.kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {"upgraderun.dev/requested-by": "bench"},
        },
        "spec": {"repository": {"url": f"{HOST}/bench/{name}.git"}, "mode": "Baseline"},
    }


def run_of(pod: KubeObject) -> str:
    """Name the run that a pod was created for."""
    metadata = pod["metadata"]
    owners = metadata.get("ownerReferences") or ()
    named = [owner["name"] for owner in owners if owner["kind"] == UPGRADE_RUNS.kind]
    return str(named[0] if named else metadata["labels"][RUN_LABEL])


@dataclass(slots=True)
class PodWatch:
    """When the pod of each run was seen first, on this process's clock."""

    seen: dict[str, float] = field(default_factory=dict)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def wait_for(self, names: list[str], seconds: float) -> None:
        """Wait until every run of these has its pod. Raises TimeoutError."""
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(lambda: all(name in self.seen for name in names))


async def every(
    client: KubeClient, resource: Resource, namespace: str
) -> AsyncIterator[KubeObject]:
    """Give what there is and what is added, for ever.

    The API server ends a watch whose reader is too slow for a moment; then the list tells the rest.
    """
    while True:
        listed = await client.list(resource, namespace)
        assert isinstance(listed, Ok), listed
        for item in listed.value.items:
            yield item
        version = listed.value.resource_version
        async for event in client.watch(resource, namespace, resource_version=version):
            if event.type == "ADDED":
                yield event.object


@contextlib.asynccontextmanager
async def watch_pods(client: KubeClient, namespace: str) -> AsyncIterator[PodWatch]:
    """Follow the pods of a namespace."""
    watch = PodWatch()

    async def follow() -> None:
        async for pod in every(client, PODS, namespace):
            async with watch.changed:
                watch.seen.setdefault(run_of(pod), time.monotonic())
                watch.changed.notify_all()

    task = asyncio.create_task(follow())
    try:
        yield watch
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def create_runs(client: KubeClient, namespace: str, names: list[str]) -> dict[str, float]:
    """Create runs, at most 32 requests in flight; give back when each request was sent."""
    sent: dict[str, float] = {}
    gate = asyncio.Semaphore(AT_ONCE)

    async def create(name: str) -> None:
        async with gate:
            sent[name] = time.monotonic()
            answer = await client.create(UPGRADE_RUNS, namespace, run_object(namespace, name))
            assert isinstance(answer, Ok), answer

    await asyncio.gather(*map(create, names))
    return sent
