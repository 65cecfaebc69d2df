"""Thirty SIGKILLs at random instants over ten runs at once (reliability.md Q14).

The seed of the instants and victims is printed; the world's own timing can't be repeated.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import pytest

from support.cluster import Cluster
from support.ends import check_delivered, check_outcome
from support.installation import SYSTEM, Installation, install
from support.journals import read_story
from support.kubeapi import Json
from support.platform import watching_pods
from support.podplatform import PodPlatform
from support.podscenes import STORM
from support.scenarios import load_table
from support.storm import strike
from support.worlds import Outside, Scene, open_scene
from upgraderun_protocol.records import from_json
from upgraderun_runner.workspace.recipe import Recipe, commit_id

LOG = logging.getLogger(__name__)
KILLS = 30
END_SECONDS = 1200.0
ROW = next(row for row in load_table() if row.id == "patch-safe")
CELL = ROW.cell("Rules")
MANY = {"lostAttempts": 50, "consecutiveLostAttempts": 10}
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.timeout(2400),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest.fixture(scope="module")
def replicas(cluster: Cluster, operator: Installation) -> None:
    """Two, so that one may die while the other works."""
    install(cluster.client, replace(operator, replicas=2))


@asynccontextmanager
async def uids_of_pods(platform: PodPlatform) -> AsyncIterator[dict[str, set[str]]]:
    """Note the UIDs of every pod that there ever was, by the pod's name."""
    seen: dict[str, set[str]] = {}

    async def note(pod: Json) -> None:
        seen.setdefault(pod["metadata"]["name"], set()).add(pod["metadata"]["uid"])

    async with watching_pods(platform, note):
        yield seen


async def follow(platform: PodPlatform, scene: Scene) -> None:
    await platform.create_run(scene.name, scene.spec(CELL.mode))
    await platform.asked(scene.name, seconds=END_SECONDS)
    await platform.answer(scene.name)
    await platform.finished(scene.name, seconds=END_SECONDS)


async def check_end(
    scene: Scene, platform: PodPlatform, pods: dict[str, set[str]], cluster: Cluster
) -> None:
    """One branch at the recipe's commit, one pull request, only the pods that the journal names."""
    story = await read_story(platform, scene.name)
    check_outcome(CELL, story.status, platform)
    host = scene.outside.servers.host
    check_delivered(host, scene.repository, scene.built.base_commit, story.commit)
    intent = story.fold.intent(story.proposal.id)
    assert commit_id(from_json(Recipe, story.of(intent, "recipe"))) == story.commit
    ours = {name: uids for name, uids in pods.items() if scene.name in name}
    assert {name: {uid} for name, uid in story.pods.values()} == ours
    space = urlsplit(scene.outside.seen.host_url).netloc.split(".")[1]
    folder = f"/data/{scene.repository}.git"
    assert "" == cluster.kubectl("exec", "-n", space, "forge", "--", *fsck(folder))


def fsck(folder: str) -> list[str]:
    """Print problems only."""
    return [
        "git",
        "-c",
        f"safe.directory={folder}",
        "-C",
        folder,
        "fsck",
        "--strict",
        "--no-dangling",
    ]


async def test_ten_runs_survive_thirty_kills(
    cluster: Cluster,
    platform: PodPlatform,
    outside: Outside,
    replicas: None,
    tmp_path: Path,
) -> None:
    seed = int(os.environ.get("UPGRADERUN_STORM_SEED", Random().randrange(2**32)))  # noqa: S311 - not a secret
    LOG.warning("UPGRADERUN_STORM_SEED=%d", seed)
    scenes = []
    for name in STORM:
        scene = await open_scene(ROW, name, tmp_path, outside, platform)
        await scene.apply(limits=MANY)
        scenes.append(scene)

    async with uids_of_pods(platform) as pods, asyncio.TaskGroup() as group:
        killing = group.create_task(strike(cluster, platform.namespace, KILLS, Random(seed)))  # noqa: S311 - the same
        for scene in scenes:
            group.create_task(follow(platform, scene))
    LOG.warning("killed %s", dict(killing.result()))

    for scene in scenes:
        await check_end(scene, platform, pods, cluster)
    assert [] == await platform.leftovers()
    leases = cluster.get("leases", "-n", SYSTEM)["items"]
    held = [
        lease["metadata"]["name"]
        for lease in leases
        if lease["metadata"]["name"].startswith("repo-") and lease["spec"].get("holderIdentity")
    ]
    assert [] == held
