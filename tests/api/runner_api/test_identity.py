"""Identity and order of checks, for every endpoint (runner-protocol.md §1.4, H12, RP6)."""

from pathlib import Path
from typing import Any

import pytest

from clusterlib.apiserver import ApiServer
from support.journal_story import FINALIZED, admit, answer, ask, end, outcome, push
from support.replicas import BUNDLE, PUBLISHER, JumpingClock, Replica, Scene, make_run, serve
from upgraderun_operator.adapters.kubernetes import KubeClient
from upgraderun_operator.adapters.tokens import TokenReviews
from upgraderun_operator.answers import CreateAnswer, KubeObject, Ok
from upgraderun_operator.api.ports import Identity
from upgraderun_operator.resources import UPGRADE_RUNS, Resource
from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.endpoints import ENDPOINTS

pytestmark = pytest.mark.api

DIGEST = "a" * 64
CALLS = [
    (method, f"artifacts/{DIGEST}" if endpoint == "artifacts" else endpoint)
    for method, endpoint in ENDPOINTS
]
EPOCHLESS = {"hello", "bundle", "result"}
PUBLISHERS_OWN = {"push-token"}
every_endpoint = pytest.mark.parametrize(("method", "endpoint"), CALLS)


class Counting:
    """The real client, counting reviews."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self.count = 0

    async def create(
        self, resource: Resource, namespace: str | None, body: KubeObject
    ) -> CreateAnswer:
        self.count += 1
        return await self._client.create(resource, namespace, body)


async def running(scene: Scene) -> str:
    await scene.append(admit())
    await scene.pod("a1")
    token = await scene.token("a1")
    assert (await scene.hello(token)).status == 200
    return token


async def refused(
    scene: Scene, method: str, endpoint: str, token: str | None, epoch: int | None = 1
) -> tuple[int, str]:
    before = (await scene.view()).resource_version
    reply = await scene.send(method, endpoint, token, {}, epoch=epoch)
    assert (await scene.view()).resource_version == before, "a refused call changes nothing"
    # HEAD has no body: its status tells.
    return reply.status, reply.code if reply.content else ""


def coded(method: str, status: int, code: str) -> tuple[int, str]:
    return status, "" if method == "HEAD" else code


class TestToken:
    """Check 1: our audience, expected account, namespace, exactly one pod."""

    @every_endpoint
    async def test_no_token_no_entry(self, scene: Scene, method: str, endpoint: str) -> None:
        found = await refused(scene, method, endpoint, None)

        assert found == coded(method, 401, "unauthenticated")

    async def test_kinds_of_bad_tokens(self, scene: Scene) -> None:
        await running(scene)
        client, namespace = scene.replica.client, scene.ref.namespace
        unbound = await client.create_token(
            namespace, "upgraderun-runner", {"audiences": ["upgraderun-operator"]}
        )
        assert isinstance(unbound, Ok)
        bad = {
            "nonsense": "nonsense",
            "other audience": await scene.token("a1", audiences=["somebody"]),
            "no pod": unbound.value["status"]["token"],
        }

        codes = {name: await refused(scene, "GET", "journal", token) for name, token in bad.items()}

        assert set(codes.values()) == {(401, "unauthenticated")}

    async def test_a_token_of_a_deleted_pod_is_none(self, scene: Scene) -> None:
        await running(scene)
        # One that nobody has reviewed yet: the API server itself keeps a review for ten seconds.
        token = await scene.token("a1")
        await scene.delete_pod("a1")

        assert await refused(scene, "GET", "journal", token) == (401, "unauthenticated")

    async def test_a_positive_review_is_kept_for_thirty_seconds_only(self, scene: Scene) -> None:
        await running(scene)
        token = await scene.token("a1")
        clock, creator = JumpingClock(frozen=True), Counting(scene.replica.client)
        reviews = TokenReviews(creator, clock)

        first = await reviews.review(token)
        clock.jumped += 29.9
        kept = await reviews.review(token)
        clock.jumped += 0.1
        again = await reviews.review(token)

        assert first == kept == again
        assert first == Identity(
            scene.ref.namespace, "upgraderun-runner", scene.pods["a1"]["metadata"]["uid"]
        )
        assert creator.count == 2

    async def test_a_negative_review_isn_t_kept(self, scene: Scene) -> None:
        creator = Counting(scene.replica.client)
        reviews = TokenReviews(creator, JumpingClock(frozen=True))

        assert [await reviews.review("nonsense"), await reviews.review("nonsense")] == [None, None]
        assert creator.count == 2

    async def test_what_can_be_no_token_isn_t_sent(self, scene: Scene) -> None:
        creator = Counting(scene.replica.client)
        reviews = TokenReviews(creator, JumpingClock())

        assert await reviews.review("x" * 20_000) is None
        assert await reviews.review("\u00fc") is None
        assert creator.count == 0

    async def test_another_namespace_is_another_world(self, scene: Scene, replica: Replica) -> None:
        token = await running(scene)
        elsewhere = await make_run(replica, "default", f"app-{scene.ref.namespace}")

        reply = await replica.call(
            "GET", f"/runner/default/{elsewhere.name}/{elsewhere.uid}/journal", token, epoch=1
        )

        assert reply.code == "unauthenticated"

    async def test_an_unreachable_review_is_no_verdict(
        self, scene: Scene, cluster: ApiServer, tmp_path: Path
    ) -> None:
        token = await running(scene)
        async with serve(cluster, tmp_path / "store", call_seconds=0.000001) as deaf:
            reply = await scene.send("GET", "journal", token, epoch=1, replica=deaf)

        assert (reply.status, reply.code) == (503, "auth_unavailable")
        assert reply.headers["Retry-After"] == "2"


class TestRun:
    """Checks 2 to 5: the run, its version, its end, its writer."""

    async def test_a_re_created_name_is_another_run(self, scene: Scene) -> None:
        token = await running(scene)
        old = scene.path
        await scene.replica.client.delete(
            UPGRADE_RUNS, scene.ref.namespace, scene.ref.name, uid=scene.ref.uid
        )
        gone = await scene.replica.call("GET", f"{old}/journal", token, epoch=1)
        await make_run(scene.replica, scene.ref.namespace)
        again = await scene.replica.call("GET", f"{old}/journal", token, epoch=1)

        assert [gone.code, again.code] == ["run_unknown", "run_unknown"]

    async def test_one_protocol_version_is_served(self, scene: Scene) -> None:
        token = await running(scene)

        reply = await scene.replica.call(
            "GET", f"{scene.path}/journal", token, epoch=1, protocol="2"
        )

        assert (reply.status, reply.code) == (426, "protocol_unsupported")

    @every_endpoint
    async def test_an_ended_run_answers_nothing_but_result(
        self, scene: Scene, method: str, endpoint: str
    ) -> None:
        token = await running(scene)
        await scene.append(outcome("cancelled"))

        found = await refused(scene, method, endpoint, token)

        if endpoint == "result":
            assert found == (400, "invalid_request")
        else:
            assert found == coded(method, 409, "run_terminal")

    async def test_a_finished_run_answers_nothing(self, scene: Scene) -> None:
        token = await running(scene)
        await scene.append(outcome("cancelled"), FINALIZED)

        assert await refused(scene, "POST", "result", token) == (409, "run_terminal")

    @every_endpoint
    async def test_a_pod_that_is_no_writer_is_fenced(
        self, scene: Scene, method: str, endpoint: str
    ) -> None:
        token = await running(scene)
        await scene.append(end("a1", "crashed"))
        await scene.pod("a2")

        found = await refused(scene, method, endpoint, token)

        assert found == coded(method, 403, "not_current_writer")
        assert scene.replica.counts.fences == ["writer"]

    async def test_nobody_speaks_between_two_pods(self, scene: Scene) -> None:
        token = await running(scene)
        await scene.append(end("a1", "crashed"))

        assert await refused(scene, "GET", "bundle", token) == (403, "not_current_writer")

    async def test_a_publisher_has_its_own_account(self, scene: Scene) -> None:
        await running(scene)
        await scene.append(end("a1", "verdict"), ask())
        await scene.append(answer("approved"), push())
        await scene.pod("d1")
        token = await scene.token("d1")

        assert await refused(scene, "GET", "bundle", token) == (401, "unauthenticated")


class TestRoleEpochRate:
    """Checks 6 to 8."""

    async def test_a_publisher_fixes_no_base(self, scene: Scene) -> None:
        await running(scene)
        await scene.append(end("a1", "verdict"), ask())
        await scene.append(answer("approved"), push())
        await scene.pod("d1", PUBLISHER)
        token = await scene.token("d1")
        assert (await scene.hello(token, nonce="d" * 32)).status in {200, 503}

        assert await refused(scene, "POST", "workspace", token) == (403, "role_forbidden")

    @pytest.mark.parametrize(
        ("method", "endpoint"),
        [call for call in CALLS if call[1] not in {*EPOCHLESS, *PUBLISHERS_OWN}],
    )
    async def test_an_older_epoch_is_stale(self, scene: Scene, method: str, endpoint: str) -> None:
        token = await running(scene)

        found = await refused(scene, method, endpoint, token, epoch=0)

        assert found == coded(method, 409, "epoch_stale")
        assert scene.replica.counts.fences == ["epoch"]

    async def test_three_endpoints_name_no_epoch(self, scene: Scene) -> None:
        token = await running(scene)

        bundle = await scene.send("GET", "bundle", token)
        result = await scene.send("POST", "result", token, {})

        assert bundle.content == BUNDLE
        assert bundle.headers["UpgradeRun-SHA256"] == sha256_of(BUNDLE)
        assert result.code == "invalid_request"

    @pytest.mark.parametrize("epoch", ["x", "", "9999999999", "²"])
    async def test_an_epoch_is_a_number(self, scene: Scene, epoch: str) -> None:
        token = await running(scene)
        headers = {"UpgradeRun-Protocol": "1", "Authorization": f"Bearer {token}"}
        if epoch:
            headers["UpgradeRun-Epoch"] = epoch
        async with scene.replica.session.get(
            f"{scene.replica.url}{scene.path}/journal", headers=headers
        ) as reply:
            body: dict[str, Any] = await reply.json()

        assert (reply.status, body["error"]["code"]) == (400, "invalid_request")

    async def test_a_flood_of_one_pod_is_limited(
        self, scene: Scene, cluster: ApiServer, tmp_path: Path
    ) -> None:
        token = await running(scene)
        clock = JumpingClock(frozen=True)
        async with serve(cluster, tmp_path / "store", clock=clock) as replica:
            codes = [
                (await scene.send("GET", "journal", token, epoch=1, replica=replica)).status
                for _ in range(41)
            ]
            limited = await scene.send("GET", "journal", token, epoch=1, replica=replica)
            clock.jumped += 1
            later = await scene.send("GET", "journal", token, epoch=1, replica=replica)

        assert codes == [200] * 40 + [429]
        assert limited.headers["Retry-After"] == "1"
        assert later.status == 200


async def test_unknown_endpoints_are_unknown(scene: Scene) -> None:
    token = await running(scene)

    for method, endpoint in (("GET", "push-token"), ("DELETE", "journal"), ("GET", "artifacts")):
        reply = await scene.send(method, endpoint, token, epoch=1)
        assert reply.status in {404, 405}


async def test_a_broken_journal_is_told_and_nothing_follows(scene: Scene) -> None:
    token = await running(scene)
    raw = (await scene.view()).raw
    journal = raw["status"]["journal"]
    entries = [{**journal["entries"][0], "at": "2020-01-01T00:00:00Z"}, *journal["entries"][1:]]
    status = {**raw["status"], "journal": {**journal, "entries": entries}}
    written = await scene.replica.client.put_status(UPGRADE_RUNS, {**raw, "status": status})
    assert isinstance(written, Ok), written

    reply = await scene.send("POST", "journal", token, {"entries": []}, epoch=1)

    assert reply.code == "journal_conflict"
