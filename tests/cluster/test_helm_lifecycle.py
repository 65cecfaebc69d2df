"""The life of an installation with a run in flight: install, upgrade, roll back, test, uninstall.

The run starts under the first release, gets its baseline, is asked about under the second (which
watches its namespace only) and is published under the first again: one pull request, no orphan.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from support.chart import crds
from support.cluster import Cluster
from support.ends import check_details, check_outcome, check_remote
from support.installation import (
    CHART,
    RELEASE,
    SYSTEM,
    Installation,
    helm,
    install,
    uninstall,
)
from support.journals import read_story
from support.kubeapi import Kube
from support.platform import has_a_baseline
from support.podplatform import PodPlatform, open_platform
from support.scenarios import cells, load_table
from support.worlds import Outside, open_scene

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
]
NAME = "lifecycle"
MARK = "tests.upgraderun.dev/release"
OURS = f"app.kubernetes.io/instance={RELEASE}"
NAMESPACED = (
    "deployments,pods,services,serviceaccounts,secrets,configmaps,persistentvolumeclaims,"
    "roles.rbac.authorization.k8s.io,rolebindings.rbac.authorization.k8s.io,"
    "networkpolicies.networking.k8s.io"
)
CLUSTERED = (
    "clusterroles.rbac.authorization.k8s.io,clusterrolebindings.rbac.authorization.k8s.io,"
    "validatingadmissionpolicies,validatingadmissionpolicybindings"
)
ROW, CELL = next(
    (row, cell)
    for row, cell in cells(load_table())
    if row.id == "patch-safe" and cell.mode == "Rules"
)


@pytest.fixture(scope="module")
def release(cluster: Cluster, images: dict[str, str], outside: Outside) -> Installation:
    """A first release of two replicas, for every namespace."""
    uninstall(cluster.client)
    installation = Installation(
        images["operator"],
        outside.bundle,
        secrets=tuple(f"{NAME}-{use}" for use in ("clone", "push")),
        config_maps=(f"{NAME}-decisions",),
        replicas=2,
    )
    install(cluster.client, installation)
    return installation


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(
    cluster: Cluster,
    release: Installation,
    outside: Outside,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[PodPlatform]:
    folder: Path = tmp_path_factory.mktemp("lifecycle")
    bundle = outside.bundle.read_text()
    async with (
        Kube(cluster.kubeconfig) as kube,
        open_platform(kube, cluster.client, outside.policy(), bundle, folder) as opened,
    ):
        yield opened


def revision(cluster: Cluster) -> int:
    """Number of the release as it is deployed."""
    found = json.loads(helm(cluster.client, "list", "--namespace", SYSTEM, "--output=json"))
    return int(next(row["revision"] for row in found if row["name"] == RELEASE))


def upgrade(cluster: Cluster, namespace: str) -> None:
    """A second release, for one namespace; every replica is replaced."""
    narrowed = [f"--set-json=watchNamespaces={json.dumps([namespace])}"]
    narrowed.append(f"--set-json=podAnnotations={json.dumps({MARK: 'second'})}")
    flags = ("--reuse-values", "--wait", "--timeout=5m")
    helm(cluster.client, "upgrade", RELEASE, str(CHART), "--namespace", SYSTEM, *flags, *narrowed)


def names(cluster: Cluster, kinds: str, *where: str) -> set[str]:
    """Kind and name of everything of the release."""
    items = cluster.get(kinds, "-l", OURS, *where)["items"]
    return {f"{item['kind']} {item['metadata']['name']}" for item in items}


def replicas_marked(cluster: Cluster) -> set[str]:
    """Marks of the replicas that stay."""
    label = ("-l", "app.kubernetes.io/name=upgraderun-operator")
    return {
        pod["metadata"].get("annotations", {}).get(MARK, "first")
        for pod in cluster.get("pods", "-n", SYSTEM, *label)["items"]
        if "deletionTimestamp" not in pod["metadata"]
    }


async def test_a_release_lives_while_a_run_is_in_flight(
    cluster: Cluster, release: Installation, world: PodPlatform, outside: Outside, tmp_path: Path
) -> None:
    """One test, since each step needs the one before it."""
    await publish_over_upgrade_and_rollback(cluster, world, outside, tmp_path)
    check_by_helm(cluster)
    await uninstall_and_come_back(cluster, release, world)


async def publish_over_upgrade_and_rollback(
    cluster: Cluster, world: PodPlatform, outside: Outside, folder: Path
) -> None:
    """The run ends as if nothing had happened: one pull request, no orphan."""
    first = revision(cluster)
    scene = await open_scene(ROW, NAME, folder / "scene", outside, world)
    await world.create_run(NAME, scene.spec("Rules"))
    await world.wait_for(NAME, has_a_baseline, "has a baseline")

    upgrade(cluster, world.namespace)
    bindings = names(cluster, "clusterrolebindings.rbac.authorization.k8s.io")
    assert f"ClusterRoleBinding {RELEASE}-runs" not in bindings
    assert {"second"} == replicas_marked(cluster)
    await world.asked(NAME)
    await world.answer(NAME)
    helm(cluster.client, "rollback", RELEASE, str(first), "--namespace", SYSTEM, "--wait")
    status = await world.finished(NAME)

    assert {"first"} == replicas_marked(cluster)
    assert first + 2 == revision(cluster)
    check_outcome(CELL, status, world)
    story = await read_story(world, NAME)
    check_details(ROW, CELL, story)
    check_remote(scene, CELL, story)
    assert [] == await world.leftovers()


def check_by_helm(cluster: Cluster) -> None:
    """`helm test` passes, through the NetworkPolicy that lets it in while it runs."""
    said = helm(cluster.client, "test", RELEASE, "--namespace", SYSTEM, "--logs")

    assert "2 replicas are ready" in said
    assert f"NetworkPolicy {RELEASE}-test" not in names(cluster, NAMESPACED, "-n", SYSTEM)


async def uninstall_and_come_back(
    cluster: Cluster, release: Installation, world: PodPlatform
) -> None:
    """What stays is what docs/install.md says, and a later release finds it."""
    uninstall(cluster.client)
    kept = {f"PersistentVolumeClaim {RELEASE}-artifacts", f"Secret {RELEASE}-tls"}
    kept |= {f"Pod {RELEASE}-test"}
    cluster.until(lambda: kept == names(cluster, NAMESPACED, "-n", SYSTEM), "only that is left")
    assert set() == names(cluster, CLUSTERED)
    for crd in crds():
        cluster.get("customresourcedefinition", crd["metadata"]["name"])
    assert (await world.status(NAME))["finished"]

    install(cluster.client, replace(release, replicas=1))
    assert (await world.status(NAME))["finished"]
    cluster.kubectl("delete", "pod", f"{RELEASE}-test", "-n", SYSTEM)
    uninstall(cluster.client)
