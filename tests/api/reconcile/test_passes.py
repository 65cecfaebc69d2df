"""What one pass asks of the API server, and that nothing it decides on is older than the pass."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clusterlib.apiserver import ApiServer
from clusterlib.errors import ClusterError
from support.desk import Desk, Make, open_desk
from support.kube import eventually
from upgraderun_operator import limits
from upgraderun_operator.answers import Ok
from upgraderun_operator.keys import of_pod
from upgraderun_operator.resources import CLAIMS, LEASES, PODS, Resource
from upgraderun_protocol.effects import Position
from upgraderun_protocol.ids import RunUid
from upgraderun_protocol.slugs import child_name

pytestmark = pytest.mark.api

BASELINE: dict[str, Any] = {"mode": "Baseline", "publication": {"enabled": False}}
NO_FORGE: dict[str, Any] = {"credentials": {}}


async def test_a_start_reads_each_thing_once(make: Make) -> None:
    """Volume and run Lease are made without a look; what a creation answers isn't read again."""
    play = await make(policy=NO_FORGE, **BASELINE)
    await play.go()
    once = ("upgraderuns", "upgradepolicies", "leases", "pods", "serviceaccounts")
    assert dict.fromkeys(once, 1) == dict(play.desk.reads)
    assert "a1 done" in await play.entries()


async def test_its_own_writes_are_no_news_and_those_of_others_are(make: Make) -> None:
    """A watch tells of both; only the second need another pass."""
    play = await make(policy=NO_FORGE, **BASELINE)
    await play.go()
    knows = functools.partial(play.desk.seen_versions.has, play.key)
    pod = await play.pod_of("a1")
    assert knows((await play.view()).resource_version)
    assert knows(of_pod(pod["metadata"]["resourceVersion"]))
    await play.runs("a1")
    await play.hello("a1")
    pod = await play.pod_of("a1")
    assert not knows((await play.view()).resource_version)
    assert not knows(of_pod(pod["metadata"]["resourceVersion"]))
    await play.go()
    assert knows((await play.view()).resource_version)
    assert knows(of_pod(pod["metadata"]["resourceVersion"]))


async def test_a_run_that_is_over_is_forgotten(make: Make) -> None:
    play = await make(policy=NO_FORGE, cancel=True, **BASELINE)
    assert (await play.go()).gone
    assert not play.desk.seen_versions.has(play.key, (await play.view()).resource_version)


class Killed(BaseException):
    """What SIGKILL is to a process: nothing handles it."""


@pytest.mark.parametrize("point", ["pvc.applied", "runner_pod.applied"])
async def test_what_a_killed_start_made_is_adopted(
    make: Make, desk: Desk, cluster: ApiServer, tmp_path: Path, point: str
) -> None:
    play = await make(policy=NO_FORGE, **BASELINE)

    def kill(effect: str, position: Position) -> None:
        if f"{effect}.{position}" == point:
            raise Killed

    async with open_desk(cluster, tmp_path / "store", fault=kill) as killed:
        with pytest.raises(Killed):
            await killed.reconcile(play.key)
    await play.go()
    assert "a1 done" in await play.entries()
    assert len(await play.listed(CLAIMS)) == 1
    assert len(await play.listed(PODS)) == 1


async def test_a_killed_start_is_taken_up_where_its_own_volume_fills_the_quota(
    make: Make, desk: Desk, cluster: ApiServer, tmp_path: Path
) -> None:
    """The API server refuses the volume for its quota before it compares the name."""
    play = await make(policy=NO_FORGE, **BASELINE)

    def kill(effect: str, position: Position) -> None:
        if (effect, position) == ("pvc", Position.APPLIED):
            raise Killed

    async with open_desk(cluster, tmp_path / "store", fault=kill) as killed:
        with pytest.raises(Killed):
            await killed.reconcile(play.key)
    kubectl = functools.partial(cluster.kubectl, "-n", play.namespace)
    kubectl("create", "quota", "full", "--hard=persistentvolumeclaims=1")
    full = {"hard": {"persistentvolumeclaims": "1"}, "used": {"persistentvolumeclaims": "1"}}
    patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": full}))
    kubectl("patch", "resourcequota", "full", *patch)
    eventually(functools.partial(_is_refused, kubectl), "another volume is refused")

    await play.go()
    assert "a1 done" in await play.entries()
    assert "StorageUnavailable" not in await play.reasons()


def _is_refused(kubectl: Callable[..., str]) -> bool:
    body = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "another"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    try:
        kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(body))
    except ClusterError as error:
        return "exceeded quota" in str(error)
    return False


@pytest.mark.parametrize(
    ("resource", "spec", "kind"),
    [
        (
            CLAIMS,
            {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            "ForeignClaim",
        ),
        (LEASES, {"leaseDurationSeconds": 30}, "ForeignLease"),
    ],
)
async def test_a_strangers_child_is_found_by_its_creation_and_stays(
    make: Make, resource: Resource, spec: dict[str, Any], kind: str
) -> None:
    play = await make(policy=NO_FORGE, **BASELINE)
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": child_name(play.name, RunUid(play.uid))},
        "spec": spec,
    }
    made = await play.desk.client.create(resource, play.namespace, body)
    assert isinstance(made, Ok), made
    await play.go()
    assert (await play.status())["conflict"]["kind"] == kind
    assert [] == await play.listed(PODS)
    assert [made.value["metadata"]["uid"]] == [
        one["metadata"]["uid"] for one in await play.listed(resource)
    ]


async def test_what_is_kept_grows_old(make: Make, cluster: ApiServer, tmp_path: Path) -> None:
    """A pass that took longer than a leader may believe in itself reads the run again."""
    play = await make(policy=NO_FORGE, **BASELINE)

    def dawdle(effect: str, position: Position) -> None:
        if (effect, position) == ("pvc", Position.APPLIED):
            slow.clock.passed += limits.KEPT_SECONDS_MAX + 1

    async with open_desk(cluster, tmp_path / "store", fault=dawdle) as slow:
        play.desk = slow
        await play.go()
        assert slow.reads["upgraderuns"] == 2
        assert "a1 done" in await play.entries()


async def test_a_wish_that_comes_inside_a_pass_is_seen_by_its_next_write(
    make: Make, cluster: ApiServer, tmp_path: Path
) -> None:
    play = await make(policy=NO_FORGE, **BASELINE)

    def cancel(effect: str, position: Position) -> None:
        if (effect, position) == ("pvc", Position.APPLIED):
            patch = '{"spec":{"cancel":true}}'
            where = ("-n", play.namespace, "patch", "upgraderuns", play.name, "--type=merge")
            cluster.kubectl(*where, "-p", patch)

    async with open_desk(cluster, tmp_path / "store", fault=cancel) as hurried:
        play.desk = hurried
        await play.go()
        assert (await play.status())["outcome"] == "Cancelled"
