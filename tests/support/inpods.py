"""Fixtures of runs in pods: images, one pair of servers, the operator by its chart, a namespace.

Callers: the conftest of each suite that runs pods; it imports the fixtures by name and defines
`scenes`, the names of its repositories: the operator may read Secrets and lists by exact names only.
Servers are shared by a session; each module installs the operator and has a namespace of its own.
"""

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from support.cluster import Cluster
from support.ends import check_details, check_hidden, check_outcome, check_remote
from support.installation import Installation, install, uninstall
from support.journals import Story, read_story
from support.kubeapi import Kube
from support.podplatform import PodPlatform, images_of_pods, open_platform
from support.podservers import close_servers, open_servers
from support.scenarios import Cell, Row
from support.toolchain import Uv
from support.worlds import Outside, open_scene, trusted_by_git


@pytest.fixture(scope="session")
def images(cluster: Cluster) -> dict[str, str]:
    """Digests of the loaded images, by name."""
    return cluster.load("fixtures", "operator", "runner")


@pytest.fixture(scope="session")
def outside(
    cluster: Cluster, images: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Outside]:
    """Git host, forge and registry in pods."""
    space = f"outside-{uuid.uuid4().hex[:6]}"
    folder = tmp_path_factory.mktemp("outside")
    opened = open_servers(cluster.client, space, images, folder)
    with trusted_by_git(opened.bundle):
        yield opened
    close_servers(cluster.client, space)


@pytest.fixture(scope="module")
def operator(
    cluster: Cluster, images: dict[str, str], outside: Outside, scenes: tuple[str, ...]
) -> Iterator[Installation]:
    """The one installation of the cluster, as these runs need it; the demo needs another one."""
    installation = Installation(
        images["operator"],
        outside.bundle,
        secrets=tuple(f"{name}-{use}" for name in scenes for use in ("clone", "push")),
        config_maps=tuple(f"{name}-decisions" for name in scenes),
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
    """A namespace with policies and people, served by the installation."""
    folder: Path = tmp_path_factory.mktemp("platform")
    bundle = outside.bundle.read_text()
    async with (
        Kube(cluster.kubeconfig) as kube,
        open_platform(kube, cluster.client, outside.policy(), bundle, folder) as opened,
    ):
        yield opened


async def check_run(
    row: Row,
    cell: Cell,
    name: str,
    platform: PodPlatform,
    outside: Outside,
    folder: Path,
    *,
    hidden: bool = True,
) -> tuple[Story, dict[str, str]]:
    """Run a cell of the table as `name`, answer what it asks, and compare its end with the table.

    The hidden check runs on this machine; without it where the tree needs another Python. Returns
    the story, and the image id that the kubelet reports of each pod, by the id of the entry that
    names the pod's UID.
    """
    scene = await open_scene(row, name, folder / "scene", outside, platform)
    async with images_of_pods(platform) as images:
        await platform.create_run(name, scene.spec(cell.mode))
        for kind in (*cell.asks, *(["Publication"] if cell.publishes else [])):
            await platform.asked(name, kind)
            await platform.answer(name)
        status = await platform.finished(name)

    story = await read_story(platform, name)
    check_outcome(cell, status, platform)
    check_details(row, cell, story)
    check_remote(scene, cell, story)
    if hidden:
        check_hidden(scene, cell, story, Uv(folder / "uv"), folder / "hidden")
    return story, {entry: images[uid] for entry, (_, uid) in story.pods.items()}
