"""What the API server or the store doesn't answer is unknown: 503, nothing claimed (§2.1, H14)."""

import asyncio
import logging
from collections.abc import AsyncIterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from clusterlib.apiserver import ApiServer
from support.journal_story import FINALIZED, admit, end, outcome, pod
from support.replicas import NONCE, Replica, Scene, make_run, serve
from upgraderun_operator.adapters import runs
from upgraderun_operator.adapters.lease_watch import LeaseWatch
from upgraderun_operator.answers import (
    Absent,
    Conflict,
    Denied,
    GetAnswer,
    KubeObject,
    PutAnswer,
    StoreDown,
    TooLarge,
    Unknown,
)
from upgraderun_operator.api.context import Tools
from upgraderun_operator.api.run_lease import Sightings
from upgraderun_operator.build.leases import lease_view
from upgraderun_operator.journal.run import RunView
from upgraderun_operator.journal.writes import Unavailable
from upgraderun_operator.resources import LEASES, PODS, Resource
from upgraderun_protocol.ids import RunUid, Sha256
from upgraderun_protocol.slugs import child_name

pytestmark = pytest.mark.api


@dataclass(slots=True)
class BadCluster:
    """The real client, but for one resource."""

    real: Any
    resource: Resource
    on_get: GetAnswer | None = None
    on_put: PutAnswer | None = None

    async def get(self, resource: Resource, namespace: str | None, name: str) -> GetAnswer:
        if resource is self.resource and self.on_get is not None:
            return self.on_get
        found: GetAnswer = await self.real.get(resource, namespace, name)
        return found

    async def put(self, resource: Resource, body: KubeObject) -> PutAnswer:
        if resource is self.resource and self.on_put is not None:
            return self.on_put
        found: PutAnswer = await self.real.put(resource, body)
        return found


@dataclass(frozen=True, slots=True)
class BadStore:
    """A store that gives one answer to everything."""

    answer: Any

    async def put_if_absent(
        self, run_uid: RunUid, sha256: Sha256, chunks: AsyncIterable[bytes]
    ) -> Any:
        async for _ in chunks:
            pass
        return self.answer

    async def put_bytes(self, run_uid: RunUid, data: bytes) -> Any:
        return self.answer

    async def head(self, run_uid: RunUid, sha256: Sha256) -> Any:
        return self.answer

    async def get(self, run_uid: RunUid, sha256: Sha256) -> Any:
        return self.answer


async def started(scene: Scene) -> str:
    await scene.append(admit())
    await scene.pod("a1")
    return await scene.token("a1")


@pytest.mark.parametrize(
    ("resource", "on_get", "on_put", "code"),
    [
        (PODS, Unknown("x"), None, "store_unavailable"),
        (PODS, Denied(403, "x"), None, "store_unavailable"),
        (LEASES, Unknown("x"), None, "store_unavailable"),
        (LEASES, None, Denied(403, "x"), "store_unavailable"),
        (LEASES, None, Conflict("x"), "contended"),
        (LEASES, None, Unknown("x"), "contended"),
    ],
)
async def test_hello_claims_nothing_on_an_unknown_world(
    scene: Scene,
    cluster: ApiServer,
    tmp_path: Path,
    resource: Resource,
    on_get: GetAnswer | None,
    on_put: PutAnswer | None,
    code: str,
) -> None:
    token = await started(scene)

    def spoil(tools: Tools) -> Tools:
        return replace(tools, cluster=BadCluster(tools.cluster, resource, on_get, on_put))

    async with serve(cluster, tmp_path / "store", through=spoil) as replica:
        answer = await scene.hello(token, replica=replica)

    assert (answer.status, answer.code) == (503, code)
    assert (await scene.view()).state.epoch == 0


async def test_a_holder_that_can_t_be_looked_at_keeps_its_lease(
    scene: Scene, cluster: ApiServer, tmp_path: Path
) -> None:
    await scene.hello(await started(scene))
    await scene.delete_pod("a1")
    await scene.append(end("a1", "pod_gone"))
    await scene.pod("a2")
    token = await scene.token("a2")
    raw = scene.pods["a1"]["metadata"]["name"]

    class Blind(BadCluster):
        async def get(self, resource: Resource, namespace: str | None, name: str) -> GetAnswer:
            if name == raw:
                return Unknown("x")
            return await BadCluster.get(self, resource, namespace, name)

    def spoil(tools: Tools) -> Tools:
        return replace(tools, cluster=Blind(tools.cluster, PODS))

    async with serve(cluster, tmp_path / "store", through=spoil) as replica:
        answer = await scene.hello(token, replica=replica, nonce="e" * 32)

    assert answer.code == "run_leased"


async def test_a_pod_of_the_same_name_and_another_uid_is_gone(scene: Scene) -> None:
    """The holder's pod was replaced under its name: its UID is gone, takeover is at once."""
    await scene.hello(await started(scene))
    await scene.delete_pod("a1")
    stranger = {**scene.pods["a1"]}
    await scene.create(
        PODS,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": stranger["metadata"]["name"]},
            "spec": {
                "serviceAccountName": "upgraderun-runner",
                "automountServiceAccountToken": False,
                "containers": [{"name": "main", "image": "x"}],
            },
        },
    )
    await scene.append(end("a1", "pod_gone"))
    await scene.pod("a2")

    answer = await scene.hello(await scene.token("a2"), nonce="e" * 32)

    assert answer.json["epoch"] == 2


async def test_renewals_wait_for_the_api_server(
    scene: Scene, cluster: ApiServer, tmp_path: Path
) -> None:
    token = await started(scene)
    await scene.hello(token)

    def spoil(tools: Tools) -> Tools:
        return replace(tools, cluster=BadCluster(tools.cluster, LEASES, None, Unknown("x")))

    async with serve(cluster, tmp_path / "store", through=spoil) as replica:
        answer = await scene.send(
            "PUT", "lease", token, {"bootNonce": NONCE}, epoch=1, replica=replica
        )

    assert (answer.status, answer.code) == (503, "contended")


@pytest.mark.parametrize(
    ("store", "code"),
    [
        (StoreDown("x"), "store_unavailable"),
        (TooLarge(7), "too_large"),
        (Absent(), "artifact_unknown"),
    ],
)
async def test_a_store_s_answers_reach_the_caller(
    scene: Scene, cluster: ApiServer, tmp_path: Path, store: Any, code: str
) -> None:
    token = await started(scene)
    await scene.hello(token)
    digest = "a" * 64

    def spoil(tools: Tools) -> Tools:
        return replace(tools, store=BadStore(store))

    async with serve(cluster, tmp_path / "store", through=spoil) as replica:
        if isinstance(store, TooLarge):
            answers = [
                await scene.send(
                    "PUT", f"artifacts/{digest}", token, b"x", epoch=1, replica=replica
                )
            ]
        else:
            answers = [
                await scene.send("GET", f"artifacts/{digest}", token, epoch=1, replica=replica),
                await scene.send("GET", "bundle", token, replica=replica),
            ]
            head = await scene.send("HEAD", f"artifacts/{digest}", token, epoch=1, replica=replica)
            assert head.status == answers[0].status
        if isinstance(store, StoreDown):
            answers += [
                await scene.send(
                    "PUT", f"artifacts/{digest}", token, b"x", epoch=1, replica=replica
                ),
                await scene.hello(token, replica=replica),
                await scene.send("POST", "result", token, _verdict(scene), replica=replica),
                await scene.send(
                    "POST",
                    "journal",
                    token,
                    {"entries": [_decision(digest)]},
                    epoch=1,
                    replica=replica,
                ),
            ]

    assert {answer.code for answer in answers} == {code}


def _verdict(scene: Scene) -> dict[str, Any]:
    return {
        "version": 1,
        "verdictId": "v",
        "runUID": scene.ref.uid,
        "writer": "a1",
        "podUID": scene.pods["a1"]["metadata"]["uid"],
        "outcome": "failed",
        "message": "x",
    }


def _decision(digest: str) -> dict[str, Any]:
    return {
        "id": "s0/decision",
        "kind": "decision",
        "state": "done",
        "data": {"tool": "read_file"},
        "artifacts": {"decision": digest},
    }


async def test_a_run_that_can_t_be_read_is_unknown(
    scene: Scene, cluster: ApiServer, tmp_path: Path
) -> None:
    token = await started(scene)

    class Blind:
        async def read(self, namespace: str, name: str) -> Unavailable:
            return Unavailable("x")

    def spoil(tools: Tools) -> Tools:
        return replace(tools, runs=Blind())

    async with serve(cluster, tmp_path / "store", through=spoil) as replica:
        answer = await scene.hello(token, replica=replica)

    assert (answer.status, answer.code) == (503, "store_unavailable")


async def test_a_bug_is_answered_without_a_word_about_it(
    scene: Scene, cluster: ApiServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    token = await started(scene)

    class Buggy:
        async def read(self, namespace: str, name: str) -> Any:
            raise TypeError("inner words")

    def spoil(tools: Tools) -> Tools:
        return replace(tools, runs=Buggy())

    with caplog.at_level(logging.CRITICAL):
        async with serve(cluster, tmp_path / "store", through=spoil) as replica:
            answer = await scene.hello(token, replica=replica)

    assert answer.status == 500
    assert b"inner words" not in answer.content
    assert replica.counts.answers == [("hello", "internal")]


class TestLeaseWatch:
    """Feeds and forgets; any failure only costs time."""

    async def test_deleted_leases_are_forgotten(self, scene: Scene) -> None:
        await scene.hello(await started(scene))
        name = child_name(scene.ref.name, scene.ref.uid)
        raw = (await scene.replica.client.get(LEASES, scene.ref.namespace, name)).value  # type: ignore[union-attr]  # it is there
        seen = Forgetting()
        watch = LeaseWatch(scene.replica.client, scene.replica.clock, seen, scene.ref.namespace)
        task = asyncio.create_task(watch.run())
        async with asyncio.timeout(20):
            await seen.saw_one.wait()
            changed = {**raw, "spec": {**raw["spec"], "renewTime": "2026-11-30T08:00:00.000000Z"}}
            await scene.replica.client.put(LEASES, changed)
            await seen.saw_two.wait()
            await scene.replica.client.delete(
                LEASES, scene.ref.namespace, name, uid=raw["metadata"]["uid"]
            )
            await seen.forgot.wait()
        task.cancel()

        assert seen.saw(lease_view(changed), 10**9) == 0

    async def test_no_list_no_watch(self, cluster: ApiServer, tmp_path: Path) -> None:
        async with serve(cluster, tmp_path / "store", call_seconds=0.000001) as deaf:
            await LeaseWatch(deaf.client, deaf.clock, Sightings(), "default").once()


class Forgetting(Sightings):
    """Tells what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.saw_one, self.saw_two, self.forgot = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def saw(self, lease: Any, now: float) -> float:
        (self.saw_two if self.saw_one.is_set() else self.saw_one).set()
        return super().saw(lease, now)

    def forget(self, uid: str) -> None:
        super().forget(uid)
        self.forgot.set()


class TestReader:
    """Memory is bounded; an older view never replaces a newer one."""

    async def test_newest_means_longest(self, scene: Scene, other: Replica) -> None:
        old = await scene.append(admit())
        new = await scene.append(pod("a1"))
        other.reader.remember(new)
        other.reader.remember(old)

        assert other.reader.newest(scene.ref.uid) is new
        other.reader.forget(scene.ref.uid)
        assert other.reader.newest(scene.ref.uid) is None

    async def test_finished_runs_aren_t_kept(self, scene: Scene) -> None:
        await scene.append(admit())
        await scene.append(outcome("cancelled"), FINALIZED)

        assert scene.replica.reader.newest(scene.ref.uid) is None

    async def test_the_least_recently_seen_go_first(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(runs, "VIEWS_MAX", 1)
        monkeypatch.setattr(runs, "SEGMENT_BYTES_MAX", 10)
        reader = runs.RunReader(scene.replica.client, scene.replica.store)
        first = await reader.read_ref(scene.ref)
        second = await reader.read_ref(await make_run(scene.replica, scene.ref.namespace, "two"))
        assert isinstance(first, RunView)
        assert isinstance(second, RunView)
        for number in range(3):
            reader.remember_segment(Sha256(str(number)), b"x" * 6)
            reader.remember_segment(Sha256(str(number)), b"x" * 6)

        assert reader.newest(first.uid) is None
        assert reader.newest(second.uid) is second
        assert list(reader._segments) == ["2"]
