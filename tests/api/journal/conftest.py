"""The session's API server with our CRDs, and a run per test."""

import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clusterlib.apiserver import ApiServer
from support.replicas import Replica, Scene, install_crds, make_scene, serve

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def cluster(api_server: ApiServer) -> ApiServer:
    """The session's server with the CRDs."""
    install_crds(api_server)
    return api_server


@pytest.fixture
async def replica(cluster: ApiServer, tmp_path: Path) -> AsyncIterator[Replica]:
    """One process's client, reader, writer and store."""
    async with serve(cluster, tmp_path / "store") as served:
        yield served


@pytest.fixture
async def scene(replica: Replica) -> Scene:
    """A run that nobody has admitted yet."""
    return await make_scene(replica, f"journal-{next(_NUMBERS)}")
