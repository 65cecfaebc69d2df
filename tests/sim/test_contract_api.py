"""The double of the API server against the real one: the same assertions on both (reliability.md Q9)."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator

import pytest

from clusterlib.apiserver import ApiServer as RealServer
from support.plays import cluster as cluster  # noqa: PLC0414  a fixture, made visible
from support.replicas import UNLIMITED
from support.sim.apiserver import ApiServer, SimClient
from support.sim.place import Json, Place, body_of, journal_with
from upgraderun_operator.adapters.clock import SystemClock
from upgraderun_operator.adapters.kubeconfig import from_kubeconfig
from upgraderun_operator.adapters.kubernetes import KubeClient, WatchEvent
from upgraderun_operator.answers import AlreadyExists, Conflict, Denied, NotFound, Ok
from upgraderun_operator.resources import (
    CLAIMS,
    EVENTS,
    LEASES,
    NAMESPACES,
    PODS,
    SERVICE_ACCOUNTS,
    UPGRADE_APPROVALS,
    UPGRADE_RUNS,
    Resource,
)

_NUMBERS = itertools.count(1)
LABEL = "upgraderun.dev/run-uid"


@pytest.fixture(params=["double", pytest.param("original", marks=pytest.mark.api)])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    """A fresh namespace on each of the two."""
    namespace = f"contract-{next(_NUMBERS)}"
    numbers = itertools.count(1)
    clock = SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        client: KubeClient = SimClient(ApiServer(clock.now, lambda: f"uid-{next(numbers)}"))
        if request.param == "original":
            server: RealServer = request.getfixturevalue("cluster")
            real = KubeClient(from_kubeconfig(server.kubeconfig), clock, UNLIMITED)
            client = await stack.enter_async_context(real)
        made = await client.create(NAMESPACES, None, body_of(NAMESPACES, namespace, {}))
        assert isinstance(made, Ok)
        account = body_of(SERVICE_ACCOUNTS, "ours", {})
        assert isinstance(await client.create(SERVICE_ACCOUNTS, namespace, account), Ok)
        yield Place(client, namespace)


async def test_a_created_object_has_identity_and_version(place: Place) -> None:
    made = await place.run()

    metadata = made["metadata"]
    assert metadata["uid"]
    assert metadata["resourceVersion"]
    assert metadata["creationTimestamp"]
    assert 1 == metadata["generation"]
    assert place.namespace == metadata["namespace"]
    assert made == await place.get(UPGRADE_RUNS)


async def test_a_name_is_taken_once(place: Place) -> None:
    await place.make(LEASES, spec={})

    again = await place.client.create(LEASES, place.namespace, body_of(LEASES, "one", {"spec": {}}))

    assert isinstance(again, AlreadyExists)


async def test_nothing_is_made_in_a_namespace_that_isnt_there(place: Place) -> None:
    answer = await place.client.create(LEASES, "nowhere", body_of(LEASES, "one", {"spec": {}}))

    assert isinstance(answer, NotFound)


async def test_what_isnt_there_is_not_found(place: Place) -> None:
    made = await place.make(LEASES, spec={})
    assert isinstance(await place.delete(LEASES, made), Ok)

    assert await place.get(LEASES) is None
    assert isinstance(await place.delete(LEASES, made), NotFound)


async def test_a_put_of_what_is_gone_makes_nothing(place: Place) -> None:
    """Leases may be made by a PUT, so the server compares the UID first; runs may not."""
    lease, run = await place.make(LEASES, spec={}), await place.run()
    for resource, raw in ((LEASES, lease), (UPGRADE_RUNS, run)):
        assert isinstance(await place.delete(resource, raw), Ok)

    assert isinstance(await place.client.put(LEASES, lease), Conflict)
    assert isinstance(await place.client.put(UPGRADE_RUNS, run), NotFound)
    assert isinstance(await place.client.put_status(UPGRADE_RUNS, run), NotFound)
    assert await place.get(LEASES) is None


async def test_a_put_needs_the_version_that_stands(place: Place) -> None:
    made = await place.make(LEASES, spec={"holderIdentity": "a", "leaseTransitions": 1})
    second = {**made, "spec": {**made["spec"], "leaseTransitions": 2}}

    first = await place.client.put(LEASES, second)
    late = await place.client.put(LEASES, {**made, "spec": {"holderIdentity": "b"}})

    assert isinstance(first, Ok)
    assert made["metadata"]["resourceVersion"] != first.value["metadata"]["resourceVersion"]
    assert made["metadata"]["uid"] == first.value["metadata"]["uid"]
    assert isinstance(late, Conflict)
    found = await place.get(LEASES)
    assert found is not None
    assert 2 == found["spec"]["leaseTransitions"]


async def test_a_put_needs_the_uid_that_stands(place: Place) -> None:
    made = await place.make(LEASES, spec={})
    other = {**made, "metadata": {**made["metadata"], "uid": "another"}}

    assert isinstance(await place.client.put(LEASES, other), Conflict)


async def test_a_put_that_changes_nothing_is_no_new_version(place: Place) -> None:
    made = await place.make(LEASES, spec={"holderIdentity": "a"})

    same = await place.client.put(LEASES, made)

    assert isinstance(same, Ok)
    assert made["metadata"]["resourceVersion"] == same.value["metadata"]["resourceVersion"]


async def test_status_and_the_rest_are_written_apart(place: Place) -> None:
    made = await place.run()
    status = {"journal": journal_with({"seq": 1, "digest": "0" * 64, "epoch": 1})}

    first = await place.client.put_status(
        UPGRADE_RUNS, {**made, "spec": {**made["spec"], "suspend": True}, "status": status}
    )
    assert isinstance(first, Ok)
    assert not first.value["spec"].get("suspend")
    assert 1 == first.value["metadata"]["generation"]
    assert 1 == first.value["status"]["journal"]["head"]["seq"]

    wished = {**first.value, "spec": {**first.value["spec"], "suspend": True}, "status": {}}
    second = await place.client.put(UPGRADE_RUNS, wished)
    assert isinstance(second, Ok)
    assert 2 == second.value["metadata"]["generation"]
    assert 1 == second.value["status"]["journal"]["head"]["seq"]


async def test_status_isnt_created(place: Place) -> None:
    made = await place.make(
        UPGRADE_RUNS,
        spec={"repository": {"url": "https://git.example/team/app.git"}, "mode": "Rules"},
        status={"leaderEpoch": 7},
    )

    assert {"observedGeneration": 0} == made["status"]


@pytest.mark.parametrize("number", ["seq", "epoch"])
async def test_the_head_of_a_journal_never_falls(place: Place, number: str) -> None:
    made = await place.run()
    head = {"seq": 5, "digest": "0" * 64, "epoch": 5}
    written = await place.client.put_status(
        UPGRADE_RUNS, {**made, "status": {"journal": journal_with(head)}}
    )
    assert isinstance(written, Ok)
    fallen = {**head, number: 4}

    answer = await place.client.put_status(
        UPGRADE_RUNS, {**written.value, "status": {"journal": journal_with(fallen)}}
    )

    assert isinstance(answer, Denied)
    assert 422 == answer.status


async def test_a_leaders_epoch_never_falls_or_vanishes(place: Place) -> None:
    made = await place.run()
    written = await place.client.put_status(UPGRADE_RUNS, {**made, "status": {"leaderEpoch": 3}})
    assert isinstance(written, Ok)

    for status in ({"leaderEpoch": 2}, {"finished": False}):
        answer = await place.client.put_status(UPGRADE_RUNS, {**written.value, "status": status})
        assert isinstance(answer, Denied)


async def test_a_spec_stands_but_for_wishes(place: Place) -> None:
    made = await place.run()

    other = await place.client.put(
        UPGRADE_RUNS, {**made, "spec": {**made["spec"], "mode": "Baseline"}}
    )
    wish = await place.client.put(UPGRADE_RUNS, {**made, "spec": {**made["spec"], "cancel": True}})

    assert isinstance(other, Denied)
    assert isinstance(wish, Ok)


async def test_a_delete_needs_the_uid(place: Place) -> None:
    made = await place.make(LEASES, spec={})

    assert isinstance(await place.delete(LEASES, made, uid="another"), Conflict)
    assert await place.get(LEASES) is not None


async def test_a_finalizer_holds_a_deleted_object(place: Place) -> None:
    made = await place.run()
    held = await place.client.put(
        UPGRADE_RUNS,
        {**made, "metadata": {**made["metadata"], "finalizers": ["upgraderun.dev/world"]}},
    )
    assert isinstance(held, Ok)
    assert isinstance(await place.delete(UPGRADE_RUNS, made), Ok)

    marked = await place.get(UPGRADE_RUNS)
    assert marked is not None
    assert marked["metadata"]["deletionTimestamp"]
    assert isinstance(await place.delete(UPGRADE_RUNS, made), Ok)
    free = {**marked, "metadata": {**marked["metadata"], "finalizers": []}}
    assert isinstance(await place.client.put(UPGRADE_RUNS, free), Ok)
    assert await place.get(UPGRADE_RUNS) is None


POD = {"serviceAccountName": "ours", "containers": [{"name": "main", "image": "x"}]}


async def test_a_pod_without_a_node_goes_at_once(place: Place) -> None:
    made = await place.make(PODS, spec=POD)
    assert "Pending" == made["status"]["phase"]

    assert isinstance(await place.delete(PODS, made), Ok)

    assert await place.get(PODS) is None


async def test_a_pod_on_a_node_goes_once_its_kubelet_says_so(place: Place) -> None:
    made = await place.make(
        PODS, spec={**POD, "nodeName": "n", "terminationGracePeriodSeconds": 60}
    )

    assert isinstance(await place.delete(PODS, made), Ok)
    marked = await place.get(PODS)
    assert marked is not None
    assert marked["metadata"]["deletionTimestamp"]
    assert 60 == marked["metadata"]["deletionGracePeriodSeconds"]
    assert isinstance(await place.delete(PODS, made, grace_seconds=0), Ok)
    assert await place.get(PODS) is None


async def test_a_pods_status_is_its_kubelets(place: Place) -> None:
    made = await place.make(PODS, spec=POD)

    running = await place.client.put(
        PODS, {**made, "status": {"phase": "Running"}}, subresource="status"
    )

    assert isinstance(running, Ok)
    assert "Running" == running.value["status"]["phase"]


async def test_a_claim_is_protected(place: Place) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made = await place.make(CLAIMS, spec=spec)

    assert isinstance(await place.delete(CLAIMS, made), Ok)
    marked = await place.get(CLAIMS)
    assert marked is not None
    assert marked["metadata"]["deletionTimestamp"]
    free = {**marked, "metadata": {**marked["metadata"], "finalizers": []}}
    assert isinstance(await place.client.put(CLAIMS, free), Ok)
    assert await place.get(CLAIMS) is None


async def test_an_event_is_told_once(place: Place) -> None:
    body: Json = {
        "metadata": {"namespace": place.namespace},
        "eventTime": "2026-11-30T12:00:00.000000Z",
        "reportingController": "upgraderun",
        "reportingInstance": "one",
        "action": "Told",
        "reason": "Told",
        "type": "Normal",
        "regarding": {"kind": "UpgradeRun", "namespace": place.namespace, "name": "one"},
    }
    await place.make(EVENTS, "one", **body)

    again = await place.client.create(EVENTS, place.namespace, body_of(EVENTS, "one", dict(body)))

    assert isinstance(again, AlreadyExists)


async def _names(
    place: Place, resource: Resource, *, labels: str = "", fields: str = ""
) -> list[str]:
    answer = await place.client.list(resource, place.namespace, labels=labels, fields=fields)
    assert isinstance(answer, Ok), answer
    return [one["metadata"]["name"] for one in answer.value.items]


async def test_lists_select_by_label(place: Place) -> None:
    await place.make(LEASES, "mine", metadata={"labels": {LABEL: "u"}}, spec={})
    await place.make(LEASES, "other", spec={})

    assert ["mine", "other"] == await _names(place, LEASES)
    assert ["mine"] == await _names(place, LEASES, labels=LABEL)
    assert ["mine"] == await _names(place, LEASES, labels=f"{LABEL}=u")
    assert [] == await _names(place, LEASES, labels=f"{LABEL}=v")


async def test_lists_select_by_field(place: Place) -> None:
    await place.run("active")
    done = await place.run("done")
    status = {"finished": True}
    assert isinstance(await place.client.put_status(UPGRADE_RUNS, {**done, "status": status}), Ok)

    assert ["active"] == await _names(place, UPGRADE_RUNS, fields="status.finished!=true")
    assert [] == await _names(place, UPGRADE_RUNS, fields="status.conflict.kind!=")


async def test_approvals_are_found_by_their_run(place: Place) -> None:
    for name, uid in (("a", "u1"), ("b", "u2")):
        await place.make(
            UPGRADE_APPROVALS,
            name,
            metadata={"annotations": {"upgraderun.dev/requester": "rita"}},
            spec={
                "runRef": {"name": "one", "uid": uid},
                "kind": "Publication",
                "digest": "0" * 64,
                "decision": "Approve",
                "approver": "anna",
            },
        )

    assert ["a"] == await _names(place, UPGRADE_APPROVALS, fields="spec.runRef.uid=u1")


async def test_a_watch_tells_what_comes_after_a_version(place: Place) -> None:
    await place.make(LEASES, "before", spec={})
    listed = await place.client.list(LEASES, place.namespace)
    assert isinstance(listed, Ok)
    made = await place.make(LEASES, "after", spec={})
    changed = await place.client.put(LEASES, {**made, "spec": {"holderIdentity": "a"}})
    assert isinstance(changed, Ok)
    assert isinstance(await place.delete(LEASES, made), Ok)

    told = await _told(place, listed.value.resource_version, 3)

    assert ["ADDED", "MODIFIED", "DELETED"] == [event.type for event in told]
    assert {"after"} == {event.object["metadata"]["name"] for event in told}


async def test_a_watch_waits_for_what_comes(place: Place) -> None:
    listed = await place.client.list(LEASES, place.namespace)
    assert isinstance(listed, Ok)
    telling = asyncio.ensure_future(_told(place, listed.value.resource_version, 1))
    await asyncio.sleep(0)

    await place.make(LEASES, spec={})

    assert ["ADDED"] == [event.type for event in await telling]


async def _told(place: Place, version: str, count: int) -> list[WatchEvent]:
    """So many changes, the server's own bookmarks left out."""
    found: list[WatchEvent] = []
    events = place.client.watch(LEASES, place.namespace, resource_version=version)
    async for event in events:
        if event.type != "BOOKMARK":
            found.append(event)
        if len(found) == count:
            break
    return found
