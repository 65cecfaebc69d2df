"""hello: the claim, its replay, takeover and refusal (runner-protocol.md §1.6, RP7)."""

import pytest

from support.journal_story import admit, draft, end
from support.replicas import NONCE, Replica, Scene
from upgraderun_operator.build.leases import lease_view
from upgraderun_operator.journal.writes import Change, Done
from upgraderun_operator.resources import LEASES
from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.slugs import child_name

pytestmark = pytest.mark.api


async def started(scene: Scene, tag: str = "a1") -> str:
    await scene.append(admit())
    await scene.pod(tag)
    return await scene.token(tag)


async def epoch_of_lease(scene: Scene) -> tuple[str, int]:
    name = child_name(scene.ref.name, scene.ref.uid)
    answer = await scene.replica.client.get(LEASES, scene.ref.namespace, name)
    lease = lease_view(answer.value)  # type: ignore[union-attr]  # it is there
    return lease.holder, lease.epoch


async def test_hello_claims_the_run(scene: Scene) -> None:
    token = await started(scene)

    answer = await scene.hello(token)

    assert answer.status == 200
    assert answer.json["writer"] == "a1"
    assert answer.json["epoch"] == 1
    assert answer.json["cloneCredential"] == "mounted"
    assert answer.json["bundle"]["size"] == 13
    view = await scene.view()
    assert view.state.writer is not None
    assert view.state.writer.epoch == 1
    assert view.state.attempts[0].nonce_hash == sha256_of(NONCE.encode())
    assert await epoch_of_lease(scene) == (f"{view.state.writer.pod_uid}/{NONCE}", 1)


async def test_the_same_nonce_gets_the_same_claim_from_any_replica(
    scene: Scene, other: Replica
) -> None:
    token = await started(scene)
    first = await scene.hello(token)
    seq = (await scene.view()).state.seq

    again = await scene.hello(token, replica=other)

    assert again.json["epoch"] == first.json["epoch"]
    assert (await scene.view()).state.seq == seq


async def test_a_claim_that_was_cut_after_the_lease_is_finished_by_its_replay(
    scene: Scene, other: Replica
) -> None:
    token = await started(scene)
    uid = scene.pods["a1"]["metadata"]["uid"]
    name = child_name(scene.ref.name, scene.ref.uid)
    raw = (await scene.replica.client.get(LEASES, scene.ref.namespace, name)).value  # type: ignore[union-attr]  # it is there
    spec = {**raw["spec"], "holderIdentity": f"{uid}/{NONCE}", "leaseTransitions": 1}
    await scene.replica.client.put(LEASES, {**raw, "spec": spec})

    answer = await scene.hello(token, replica=other)

    assert answer.json["epoch"] == 1
    assert (await scene.view()).state.epoch == 1


async def test_another_process_is_refused_with_owner_and_expiry(scene: Scene) -> None:
    token = await started(scene)
    await scene.hello(token)

    answer = await scene.hello(token, nonce="f" * 32)

    assert answer.status == 503
    assert answer.code == "run_leased"
    assert scene.pods["a1"]["metadata"]["uid"] in answer.json["error"]["message"]
    assert 1 <= int(answer.headers["Retry-After"]) <= 10
    assert (await epoch_of_lease(scene))[1] == 1


async def test_a_claim_closes_with_the_first_entry_of_its_epoch(scene: Scene) -> None:
    token = await started(scene)
    await scene.hello(token)
    await scene.append(draft("workspace/1", "workspace", "intent", generation="1", nonce="n"))

    answer = await scene.hello(token)

    assert (answer.status, answer.code) == (409, "already_claimed")


class TestTakeover:
    """At once where the old end is journaled and the pod is gone; else after the duration."""

    async def test_a_successor_takes_over_at_once_from_a_pod_that_is_gone(
        self, scene: Scene
    ) -> None:
        await scene.hello(await started(scene))
        await scene.delete_pod("a1")
        await scene.append(end("a1", "pod_gone"))
        await scene.pod("a2")

        answer = await scene.hello(await scene.token("a2"), nonce="e" * 32)

        assert answer.status == 200
        assert answer.json["epoch"] == 2
        assert (await scene.view()).state.epoch == 2

    async def test_a_pod_that_is_still_there_keeps_its_lease(self, scene: Scene) -> None:
        await scene.hello(await started(scene))
        await scene.append(end("a1", "crashed"))
        await scene.pod("a2")

        answer = await scene.hello(await scene.token("a2"), nonce="e" * 32)

        assert answer.code == "run_leased"

    async def test_the_epoch_stays_above_the_journal_when_the_lease_was_re_created(
        self, scene: Scene
    ) -> None:
        token = await started(scene)
        await scene.append(draft("base", "base", commit="a" * 40, tree="b" * 40), epoch=7)

        answer = await scene.hello(token)

        assert answer.json["epoch"] == 8


async def test_a_pod_that_isn_t_recorded_waits(scene: Scene) -> None:
    await started(scene)
    token = await scene.token("a1")
    await scene.append(end("a1", "crashed"))
    await scene.append(draft("a2", "attempt", "intent", {"bundle": sha256_of(b"x")}, pod="app-a2"))

    answer = await scene.hello(token)

    assert (answer.status, answer.code) == (503, "not_ready")


async def test_hello_waits_inside_the_loss_window_and_wakes_the_leader(scene: Scene) -> None:
    token = await started(scene)
    done = await scene.replica.writer.guarded_write(
        scene.ref, (), Change(attempt_lost_at="2026-11-30T08:00:00Z")
    )
    assert isinstance(done, Done)

    answer = await scene.hello(token)

    assert (answer.status, answer.code) == (503, "loss_pending")
    assert scene.replica.counts.rung
    assert (await epoch_of_lease(scene))[0] == ""


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"protocol": {"min": 2, "max": 3}}, "protocol_unsupported"),
        ({"bootNonce": "short"}, "invalid_request"),
        ({"bootNonce": "G" * 32}, "invalid_request"),
        ({"extra": 1}, "invalid_request"),
        ({"version": "v" * 65}, "invalid_request"),
        ({"version": "v" * 5000}, "too_large"),
    ],
)
async def test_odd_messages_are_refused_and_change_nothing(
    scene: Scene, change: dict[str, object], code: str
) -> None:
    token = await started(scene)
    seq = (await scene.view()).state.seq
    message = {"protocol": {"min": 1, "max": 1}, "bootNonce": NONCE, "version": "0.1.0", **change}

    answer = await scene.send("POST", "hello", token, message)

    assert answer.code == code
    assert (await scene.view()).state.seq == seq
    assert (await epoch_of_lease(scene))[0] == ""


async def test_hello_without_bundle_or_lease_claims_nothing(scene: Scene) -> None:
    token = await started(scene)
    await scene.replica.store.delete(scene.ref.uid)
    no_bundle = await scene.hello(token)
    await scene.replica.store.put_bytes(scene.ref.uid, b'{"version":1}')
    name = child_name(scene.ref.name, scene.ref.uid)
    raw = (await scene.replica.client.get(LEASES, scene.ref.namespace, name)).value  # type: ignore[union-attr]  # it is there
    await scene.replica.client.delete(LEASES, scene.ref.namespace, name, uid=raw["metadata"]["uid"])
    no_lease = await scene.hello(token)

    assert no_bundle.code == "store_unavailable"
    assert no_lease.code == "not_ready"
    assert (await scene.view()).state.epoch == 0
