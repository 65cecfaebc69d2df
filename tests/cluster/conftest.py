"""Tests here run pods on a real cluster.

Runs in pods share one pair of servers; each module installs the operator and has a namespace of its
own.
"""

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from support.cluster import Cluster
from support.cluster import cluster as cluster  # noqa: PLC0414  a fixture, made visible
from support.installation import Installation, install, uninstall
from support.kubeapi import Kube
from support.podplatform import PodPlatform, open_platform
from support.podservers import close_servers, open_servers
from support.worlds import Outside, trusted_by_git

SCENES = (
    *("patch-safe", "breaking-minor", "baseline-failing"),
    *("undisturbed", "runner-killed", "operator-killed", "publisher-killed"),
    *("other-replica", "leader-killed"),
)
"""Repositories of these tests: the operator may read Secrets and lists by exact names only."""


@pytest.fixture(scope="session")
def images(cluster: Cluster) -> dict[str, str]:
    return cluster.load("fixtures", "operator", "runner")


@pytest.fixture(scope="session")
def outside(
    cluster: Cluster, images: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Outside]:
    space = f"outside-{uuid.uuid4().hex[:6]}"
    folder = tmp_path_factory.mktemp("outside")
    opened = open_servers(cluster.client, space, images, folder)
    with trusted_by_git(opened.bundle):
        yield opened
    close_servers(cluster.client, space)


@pytest.fixture(scope="module")
def operator(cluster: Cluster, images: dict[str, str], outside: Outside) -> Iterator[Installation]:
    """The one installation of the cluster, as these runs need it; the demo needs another one."""
    installation = Installation(
        images["operator"],
        outside.bundle,
        secrets=tuple(f"{name}-{use}" for name in SCENES for use in ("clone", "push")),
        config_maps=tuple(f"{name}-decisions" for name in SCENES),
    )
    install(cluster.client, installation)
    yield installation
    uninstall(cluster.client)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(
    cluster: Cluster,
    operator: Installation,
    outside: Outside,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[PodPlatform]:
    folder: Path = tmp_path_factory.mktemp("platform")
    bundle = outside.bundle.read_text()
    async with (
        Kube(cluster.kubeconfig) as kube,
        open_platform(kube, cluster.client, outside.policy(), bundle, folder) as opened,
    ):
        yield opened
