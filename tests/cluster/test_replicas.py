"""Two replicas in pods: all work passes through the one that doesn't lead; once the leader dies."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from support.cluster import Cluster
from support.ends import check_details, check_hidden, check_outcome, check_remote
from support.installation import SYSTEM, Installation, install
from support.journals import read_story
from support.kubeapi import Json
from support.platform import has_a_baseline
from support.podplatform import PodPlatform
from support.scenarios import cells, load_table
from support.toolchain import Uv
from support.worlds import Outside, Scene, open_scene

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
]
SERVICE = "upgraderun-operator"
LEASE = ("lease", "upgraderun-operator", "-n", SYSTEM)
CHOSEN = "tests.upgraderun.dev/serves"
ROW, CELL = next(
    (row, cell)
    for row, cell in cells(load_table())
    if row.id == "patch-safe" and cell.mode == "Rules"
)


@pytest.fixture(scope="module")
def two_replicas(cluster: Cluster, operator: Installation) -> Iterator[None]:
    install(cluster.client, replace(operator, replicas=2))
    yield
    # helm keeps what it didn't write.
    choose(cluster, None)
    install(cluster.client, operator)


@dataclass(frozen=True, slots=True)
class Replicas:
    """Pods by what they do; the runner API's Service leads to `serving` alone."""

    leading: str
    serving: str


@pytest.fixture
def replicas(cluster: Cluster, two_replicas: None) -> Replicas:
    pods = {pod["metadata"]["name"] for pod in running(cluster)}
    cluster.until(lambda: leader(cluster) in pods, "one of the two leads")
    leading = leader(cluster)
    (serving,) = pods - {leading}
    serve_by(cluster, serving, uuid.uuid4().hex)
    return Replicas(leading, serving)


def choose(cluster: Cluster, value: str | None) -> None:
    """Narrow the Service of the runner API to pods that are labelled so, or widen it again."""
    patch = json.dumps({"spec": {"selector": {CHOSEN: value}}})
    cluster.kubectl("patch", "service", SERVICE, "-n", SYSTEM, "-p", patch)


def leader(cluster: Cluster) -> str:
    return str(cluster.get(*LEASE)["spec"].get("holderIdentity", ""))


def serve_by(cluster: Cluster, pod: str, label: str) -> None:
    """Let the Service of the runner API lead to one pod alone."""
    cluster.kubectl("label", "pod", pod, "-n", SYSTEM, "--overwrite", f"{CHOSEN}={label}")
    choose(cluster, label)
    address = cluster.get("pod", pod, "-n", SYSTEM)["status"]["podIP"]
    cluster.until(lambda: [address] == endpoints(cluster), f"the Service leads to {pod} alone")


def endpoints(cluster: Cluster) -> list[str]:
    slices = cluster.get(
        "endpointslices", "-n", SYSTEM, "-l", f"kubernetes.io/service-name={SERVICE}"
    )
    return [
        address
        for part in slices["items"]
        for endpoint in part["endpoints"] or []
        for address in endpoint["addresses"]
    ]


async def test_a_whole_run_passes_through_the_replica_that_does_not_lead(
    replicas: Replicas,
    cluster: Cluster,
    platform: PodPlatform,
    outside: Outside,
    tmp_path: Path,
) -> None:
    name = "other-replica"
    scene = await open_scene(ROW, name, tmp_path / "scene", outside, platform)
    await platform.create_run(name, scene.spec("Rules"))

    await platform.asked(name)
    epoch = (await platform.status(name))["leaderEpoch"]
    await platform.answer(name)
    status = await platform.finished(name)

    assert (replicas.leading, epoch) == (leader(cluster), status["leaderEpoch"])
    address = cluster.get("pod", replicas.serving, "-n", SYSTEM)["status"]["podIP"]
    assert [address] == endpoints(cluster)
    await check_end(scene, status, platform, tmp_path)


async def test_a_run_through_the_replica_that_does_not_lead_outlives_its_leader(
    replicas: Replicas,
    cluster: Cluster,
    platform: PodPlatform,
    outside: Outside,
    tmp_path: Path,
) -> None:
    name = "leader-killed"
    scene = await open_scene(ROW, name, tmp_path / "scene", outside, platform)
    await platform.create_run(name, scene.spec("Rules"))

    await platform.wait_for(name, has_a_baseline, "has a baseline")
    epoch = (await platform.status(name))["leaderEpoch"]
    leading = replicas.leading
    cluster.kubectl("delete", "pod", leading, "-n", SYSTEM, "--grace-period=0", "--force")
    await platform.asked(name)
    await platform.answer(name)
    status = await platform.finished(name)

    assert leader(cluster) != leading
    assert status["leaderEpoch"] > epoch
    await check_end(scene, status, platform, tmp_path)


async def check_end(scene: Scene, status: Json, platform: PodPlatform, folder: Path) -> None:
    """One attempt, one delivery, and the row's cell as written."""
    assert {"attempts": 1, "deliveries": 1}.items() <= status["usage"].items()
    story = await read_story(platform, scene.name)
    check_outcome(CELL, status, platform)
    check_details(ROW, CELL, story)
    check_remote(scene, CELL, story)
    check_hidden(scene, CELL, story, Uv(folder / "uv"), folder / "hidden")


def running(cluster: Cluster) -> list[Json]:
    """The two pods of this installation; a rollout's old ones are on their way out."""

    def present() -> list[Json]:
        labels = ("-l", "app.kubernetes.io/name=upgraderun-operator")
        items = cluster.get("pods", "-n", SYSTEM, *labels)["items"]
        return [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]

    cluster.until(lambda: len(present()) == 2, "two replicas run")
    return present()
