"""Runner, operator and publisher killed at a fault point, in pods: each run ends as if undisturbed.

Each test proves by the hook's own line that its point was hit (reliability.md §5).
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import pytest_asyncio

from support.cluster import Cluster
from support.gitclient import authenticated, git
from support.installation import SYSTEM, Installation, install
from support.journals import Story, read_story
from support.podfaults import fault_in_first_pod
from support.podplatform import PodPlatform, last_words
from support.scenarios import load_table
from support.worlds import Outside, Scene, open_scene
from upgraderun_protocol.records import from_json
from upgraderun_runner.workspace.recipe import Recipe, commit_id

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
]
ROW = next(row for row in load_table() if row.id == "patch-safe")
RESTART_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class World:
    """Where runs of one row happen, each with a repository of its own, on the test image."""

    platform: PodPlatform
    outside: Outside
    folder: Path

    async def scene(self, name: str) -> Scene:
        return await open_scene(ROW, name, self.folder, self.outside, self.platform)

    async def start(self, name: str) -> Scene:
        scene = await self.scene(name)
        await self.platform.create_run(name, scene.spec("Rules"))
        return scene

    async def finish(self, name: str) -> Story:
        await self.platform.asked(name)
        await self.platform.answer(name)
        await self.platform.finished(name)
        return await read_story(self.platform, name)


@pytest.fixture(scope="module")
def test_images(cluster: Cluster) -> dict[str, str]:
    return cluster.load("operator-test", "runner-test")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(
    platform: PodPlatform,
    outside: Outside,
    test_images: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> World:
    tested = replace(outside, image=test_images["runner-test"])
    platform.policy = tested.policy()
    return World(platform, tested, tmp_path_factory.mktemp("scenes"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def undisturbed(world: World) -> AsyncIterator[dict[str, bytes]]:
    scene = await world.start("undisturbed")
    yield published(scene, await world.finish("undisturbed"))


def published(scene: Scene, story: Story) -> dict[str, bytes]:
    """Files of the published commit, with the scene's own name taken out."""
    host = scene.outside.servers.host
    url = authenticated(host.repository_url(scene.repository), scene.built.clone_token)
    git(scene.built.local, "fetch", "-q", url, story.commit)
    paths = git(scene.built.local, "ls-tree", "-r", "--name-only", story.commit).splitlines()
    name = scene.name.encode()
    return {
        path: git(scene.built.local, "show", f"{story.commit}:{path}").encode().replace(name, b"*")
        for path in paths
    }


def check_end(scene: Scene, story: Story, undisturbed: dict[str, bytes]) -> None:
    """One branch, one create-push, one pull request; the undisturbed tree; the recipe's commit."""
    control = scene.outside.servers.host.control
    assert "Published" == story.status["outcome"]
    assert undisturbed == published(scene, story)
    intent = story.fold.intent(story.proposal.id)
    assert intent is not None
    recipe = from_json(Recipe, story.of(intent, "recipe"))
    assert commit_id(recipe) == story.commit
    updates = [
        update
        for update in control.ref_updates(scene.repository)
        if update["ref"].startswith("refs/heads/upgraderun/")
    ]
    assert [("create", story.commit)] == [(u["kind"], u["new"]) for u in updates]
    created = [
        request
        for request in control.requests()
        if request["method"] == "POST" and request["path"].endswith(f"/{scene.repository}/pulls")
    ]
    assert 1 == len(created), created
    assert ["open"] == [pull["state"] for pull in control.pulls(scene.repository)]


@dataclass(frozen=True, slots=True)
class Kill:
    """A point at which the first pod of a role kills itself, and what counts its pods."""

    role: str
    point: str
    entry: str
    usage: str

    @property
    def name(self) -> str:
        """The run's name."""
        return f"{self.role}-killed"


KILLS = (
    Kill("runner", "validation.applied@1", "a1", "attempts"),
    Kill("publisher", "push.recorded", "d1", "deliveries"),
)


@pytest.mark.parametrize("kill", KILLS, ids=[kill.name for kill in KILLS])
async def test_a_pod_killed_at_a_point(
    kill: Kill, world: World, undisturbed: dict[str, bytes]
) -> None:
    """The runner in the baseline, the publisher between push and pull request."""
    scene = await world.scene(kill.name)
    async with (
        last_words(world.platform) as logs,
        fault_in_first_pod(world.platform, kill.name, kill.role, kill.point),
    ):
        await world.platform.create_run(kill.name, scene.spec("Rules"))
        story = await world.finish(kill.name)

    assert f"upgraderun_fault: SIGKILL at {kill.point}" in logs[pod_of(story, kill.entry)]
    assert 2 == story.status["usage"][kill.usage]
    check_end(scene, story, undisturbed)


@pytest.fixture
def killed_operator(
    cluster: Cluster, operator: Installation, test_images: dict[str, str]
) -> Iterator[str]:
    """An operator that dies between the journal's intent and the pod; afterwards the old one."""
    fault = "runner_pod.before"
    variables = {"UPGRADERUN_FAULT": fault}
    install(
        cluster.client,
        replace(operator, image=test_images["operator-test"], variables=variables),
    )
    yield fault
    install(cluster.client, operator)


async def test_an_operator_killed_between_its_journal_and_the_pod(
    world: World,
    undisturbed: dict[str, bytes],
    cluster: Cluster,
    operator: Installation,
    killed_operator: str,
) -> None:
    name = "operator-killed"
    scene = await world.start(name)
    cluster.until(lambda: restarted(cluster) != [], "the operator was killed", RESTART_SECONDS)

    log = cluster.kubectl("logs", "-n", SYSTEM, restarted(cluster)[0], "--previous")
    status = await world.platform.status(name)
    pods = cluster.get("pods", "-n", world.platform.namespace)["items"]
    assert f"upgraderun_fault: SIGKILL at {killed_operator}" in log
    assert ("a1", "intent") == tuple(status["journal"]["entries"][-1][k] for k in ("id", "state"))
    assert [] == [pod for pod in pods if name in pod["metadata"]["name"]]

    install(cluster.client, operator)
    story = await world.finish(name)
    assert 1 == story.status["usage"]["attempts"]
    check_end(scene, story, undisturbed)


def restarted(cluster: Cluster) -> list[str]:
    """Names of operator pods that were killed: one that a rollout replaces may still stand beside."""
    return [
        pod["metadata"]["name"]
        for pod in cluster.get("pods", "-n", SYSTEM)["items"]
        for status in pod["status"].get("containerStatuses", [])
        if status["restartCount"] > 0
    ]


def pod_of(story: Story, entry: str) -> str:
    found = story.fold.intent(entry)
    assert found is not None
    return str(found.data["pod"])
