"""A whole platform in processes for benchmarks: API server, operator, runners as processes.

Callers: the programs in `hack/bench` that need runs. It is what `tests/runs` runs in, made from the
same pieces. Everything ends with the context, also after an error.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchlib.pods import ACCOUNT, policy_spec
from clusterlib.apiserver import ApiServer, Options, start_api_server
from support.kubeapi import Kube
from support.ordinary_user import RunnerEnvironment, runner_environment
from support.platform import (
    Platform,
    ensure_namespace,
    install_kinds,
    open_namespace,
    operators_of,
    remove,
    world_folder,
)
from support.scenarios import Row, load_table
from support.worlds import Outside, open_outside


@dataclass(frozen=True, slots=True)
class World:
    """One platform with one operator and the outside of its runs."""

    server: ApiServer
    platform: Platform
    outside: Outside
    runner: RunnerEnvironment
    folder: Path


@contextlib.contextmanager
def bench_folder() -> Iterator[Path]:
    """Make a folder that the ordinary user may pass through, and remove it afterwards."""
    folder = world_folder()
    try:
        yield folder
    finally:
        remove(folder)


@contextlib.contextmanager
def bench_server(folder: Path, *, controllers: bool = False) -> Iterator[ApiServer]:
    """Start an API server without fsync, as the tests have it."""
    server = start_api_server(folder / "api", Options(fsync=False, controllers=controllers))
    try:
        yield server
    finally:
        server.stop()


@contextlib.asynccontextmanager
async def open_world() -> AsyncIterator[World]:
    """Start everything; takes half a minute."""
    with (
        bench_folder() as folder,
        bench_server(folder) as server,
        open_outside(folder / "outside") as outside,
    ):
        runner = runner_environment(folder / "runner")
        async with Kube(server.kubeconfig) as kube:
            await install_kinds(kube)
            ca = {"UPGRADERUN_FORGE_CA": str(outside.bundle)}
            place = folder / "team-a"
            async with (
                operators_of(server, folder / "operators", 1, **ca) as operators,
                open_namespace(
                    kube, "team-a", runner, outside.policy(), place, operators
                ) as platform,
            ):
                await platform.apply_config("trust", {"ca.crt": outside.bundle.read_text()})
                yield World(server, platform, outside, runner, folder)


async def prepare(kube: Kube, namespace: str) -> None:
    """Make a namespace with the account that pods run under, and a policy."""
    await ensure_namespace(kube, namespace)
    metadata = {"name": ACCOUNT, "namespace": namespace}
    await kube.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    await kube.apply(
        {
            "apiVersion": "upgraderun.dev/v1alpha1",
            "kind": "UpgradePolicy",
            "metadata": {"name": "default", "namespace": namespace},
            "spec": policy_spec(),
        }
    )


def row_of(name: str) -> Row:
    """Find a row of the scenario table."""
    return next(row for row in load_table() if row.id == name)
