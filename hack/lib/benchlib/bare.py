"""The bare baselines: programs that react to a new run by creating one pod, and nothing else.

Started by `hack/bench/latency.py` and `memory.py` as processes of their own:

    python -m benchlib.bare loop|kopf KUBECONFIG NAMESPACE

`loop` is a watch over aiohttp that creates a pod for every run it has not seen; `kopf` is one
`kopf.on.event` handler that does the same, with kopf's own settings. Nothing is journaled,
checked, retried or bounded in either: this is the least that any operator does. With the namespace
`-` the kopf one watches every run, creates nothing, and says how many it has seen.
"""

import asyncio
import itertools
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import kopf

from benchlib.pods import bare_pod, every
from upgraderun_operator.adapters.clock import SystemClock
from upgraderun_operator.adapters.kubeconfig import from_kubeconfig
from upgraderun_operator.adapters.kubernetes import KubeClient, WriteLimits
from upgraderun_operator.adapters.watch_session import open_watch_session
from upgraderun_operator.resources import PODS, UPGRADE_RUNS

NOTHING = "-"
SESSION_LIFE = timedelta(hours=1)
CALL_SECONDS = 120.0


def open_client(kubeconfig: Path) -> KubeClient:
    """The product's client without limiter and deadline: the same cost per request as ours."""
    unlimited = WriteLimits(None, 1, None, 1)
    return KubeClient(from_kubeconfig(kubeconfig), SystemClock(), unlimited, CALL_SECONDS)


async def loop(kubeconfig: Path, namespace: str) -> None:
    """Watch runs, create a pod for each."""
    tasks: set[asyncio.Task[Any]] = set()
    seen: set[str] = set()
    async with open_client(kubeconfig) as client:
        async for run in every(client, UPGRADE_RUNS, namespace):
            name = str(run["metadata"]["name"])
            if name in seen:
                continue
            seen.add(name)
            task = asyncio.create_task(client.create(PODS, namespace, bare_pod(namespace, name)))
            tasks.add(task)
            task.add_done_callback(tasks.discard)


async def handler(kubeconfig: Path, namespace: str) -> None:
    """Let kopf watch runs; its handler creates a pod for each."""
    registry = kopf.OperatorRegistry()
    config = from_kubeconfig(kubeconfig)

    async def login(**_: Any) -> kopf.AiohttpSession:
        return kopf.AiohttpSession(
            server=config.server,
            aiohttp_session=open_watch_session(config),
            expiration=datetime.now(UTC) + SESSION_LIFE,
        )

    kopf.on.login(registry=registry)(login)
    async with open_client(kubeconfig) as client:
        seen = itertools.count(1)

        @kopf.on.event(UPGRADE_RUNS.group, "v1alpha1", UPGRADE_RUNS.plural, registry=registry)
        async def on_run(type: str | None, name: str | None, **_: Any) -> None:  # noqa: A002  kopf's name
            if namespace == NOTHING:
                print(f"seen {next(seen)}", flush=True)
            elif type in {"ADDED", None}:
                await client.create(PODS, namespace, bare_pod(namespace, str(name)))

        everywhere = namespace == NOTHING
        await kopf.operator(
            registry=registry,
            standalone=True,
            clusterwide=everywhere,
            namespaces=() if everywhere else (namespace,),
        )


def main() -> None:
    """Run one of them until it is ended from outside."""
    which, kubeconfig, namespace = sys.argv[1:]
    work = {"loop": loop, "kopf": handler}[which]
    asyncio.run(work(Path(kubeconfig), namespace))


if __name__ == "__main__":
    main()
