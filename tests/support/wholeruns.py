"""Fixtures of whole runs: API server, operator, pods as processes, git host, one namespace.

Callers: the conftest of each suite that runs the product in processes; it imports the fixtures by
name. One world per session. Every run has a repository of its own, since a published one counts as
proposed for the next (upgrade-run.md §5.1).
"""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from clusterlib.apiserver import ApiServer
from support.kubeapi import Kube
from support.ordinary_user import RunnerEnvironment, runner_environment
from support.platform import (
    Platform,
    install_kinds,
    open_namespace,
    operators_of,
    remove,
    world_folder,
)
from support.worlds import Outside, open_outside


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """Everything that the session writes; kept if UPGRADERUN_KEEP is set."""
    made = world_folder()
    yield made
    if "UPGRADERUN_KEEP" not in os.environ:
        remove(made)


@pytest.fixture(scope="session")
def runner(folder: Path) -> RunnerEnvironment:
    """The runner as installed in its image, with the fault hook."""
    return runner_environment(folder / "runner", faults=True)


@pytest.fixture(scope="session")
def outside(folder: Path) -> Iterator[Outside]:
    """Git host, forge and registry."""
    with open_outside(folder / "outside") as opened:
        yield opened


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def kube(api_server: ApiServer) -> AsyncIterator[Kube]:
    """A client of the API server, which serves our kinds."""
    async with Kube(api_server.kubeconfig) as client:
        await install_kinds(client)
        yield client


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def platform(
    api_server: ApiServer, kube: Kube, runner: RunnerEnvironment, outside: Outside, folder: Path
) -> AsyncIterator[Platform]:
    """One operator and the namespace `team-a`, which trusts the git host."""
    ca = {"UPGRADERUN_FORGE_CA": str(outside.bundle)}
    async with (
        operators_of(api_server, folder / "operators", 1, **ca) as operators,
        open_namespace(
            kube, "team-a", runner, outside.policy(), folder / "team-a", operators
        ) as opened,
    ):
        await opened.apply_config("trust", {"ca.crt": outside.bundle.read_text()})
        yield opened
