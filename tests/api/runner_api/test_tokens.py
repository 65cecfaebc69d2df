"""Minted tokens: counted before each mint, given to whom they are for, while they are for it (RP10)."""

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clusterlib.apiserver import ApiServer
from support.apps import APP_ID, SECRET, Installed, install_app, pem
from support.crash import Struck, note
from support.fixtures.faults import Fault, secondary_rate_limit
from support.fixtures.launch import Host, host_in_process
from support.journal_story import TO_FROZEN, answer, ask, draft, end, pull_request, push, sha
from support.replicas import PUBLISHER, Answer, Replica, Scene, make_scene, serve
from upgraderun_operator.answers import Ok, Stored
from upgraderun_operator.api.context import Tools
from upgraderun_operator.build.frozen import FrozenAdmission, frozen_bytes
from upgraderun_operator.model.objects import parse_policy, parse_run
from upgraderun_operator.model.policy import ResolvedPolicy, resolve
from upgraderun_operator.resources import SECRETS, UPGRADE_RUNS
from upgraderun_protocol.bundle import EarlierProposals
from upgraderun_protocol.effects import EFFECTS, Position
from upgraderun_protocol.entries import Draft
from upgraderun_protocol.ids import Sha256

pytestmark = pytest.mark.api

IMAGE = "registry.example/runner@sha256:" + "1" * 64
NAME = "team/app"
_NUMBERS = itertools.count(1)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with host_in_process(tmp_path / "host") as running:
        running.control.put_repository(NAME)
        install_app(running, Installed("team"))
        yield running


@pytest.fixture
async def scene(replica: Replica, host: Host) -> Scene:
    """A run that was admitted under a policy with an App."""
    url = host.url.replace("127.0.0.1", "localhost")
    made = await make_scene(
        replica, f"tokens-{next(_NUMBERS)}", {"repository": {"url": f"{url}/{NAME}.git"}}
    )
    await made.create(
        SECRETS,
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": SECRET},
            "stringData": {"private-key.pem": pem()},
        },
    )
    spec = {
        "repositories": [f"{url}/team/*"],
        "forge": {"apiURL": f"{url}/api/v3"},
        "credentials": {
            "app": {"id": APP_ID, "privateKeyRef": {"name": SECRET, "key": "private-key.pem"}}
        },
        "images": {"runner": IMAGE, "python": [{"version": "3.11", "image": IMAGE}]},
        "sandbox": {"type": "Inline"},
    }
    policy = parse_policy({"metadata": {"name": "default", "generation": 1}, "spec": spec})
    run = parse_run((await made.view()).raw)
    resolved = resolve(run.spec, policy, allow_inline=True)
    assert isinstance(resolved, ResolvedPolicy), resolved
    frozen = frozen_bytes(FrozenAdmission(resolved, "main", EarlierProposals((), ())))
    stored = await replica.store.put_bytes(made.ref.uid, frozen)
    assert isinstance(stored, Stored)
    await made.append(
        draft(
            "admit",
            "admit",
            "done",
            {"policy": Sha256(stored.sha256)},
            policy="default",
            configHash="c" * 64,
        )
    )
    return made


async def started(scene: Scene) -> str:
    await scene.pod("a1", mounted=False)
    return await scene.token("a1")


async def delivering(scene: Scene) -> str:
    """A publisher that speaks for a granted proposal, its push intent open."""
    assert (await scene.hello(await started(scene))).status == 200
    await scene.append(*TO_FROZEN, end("a1", "verdict"))
    await scene.append(ask(), answer("approved"), push())
    await scene.delete_pod("a1")
    await scene.pod("d1", PUBLISHER, mounted=False)
    token = await scene.token("d1")
    assert (await scene.hello(token, nonce="d" * 32)).json["cloneCredential"] == "minted"
    return token


async def ask_token(scene: Scene, token: str, **changes: Any) -> Answer:
    message = {"deliveryAttempt": 1, "proposalDigest": sha("9"), **changes}
    epoch = (await scene.view()).state.epoch
    return await scene.send("POST", "push-token", token, message, epoch=epoch)


async def wish_for(scene: Scene, wish: str) -> None:
    """Let somebody set `spec.suspend` or `spec.cancel`."""
    raw = (await scene.view()).raw
    body = {**raw, "spec": {**raw["spec"], wish: True}}
    assert isinstance(await scene.replica.client.put(UPGRADE_RUNS, body), Ok)


async def append_as_publisher(scene: Scene, token: str, *drafts: Draft) -> Answer:
    """Append as the publisher does."""
    entries = [
        {"id": one.id, "kind": one.kind, "state": one.state.value, "data": dict(one.data)}
        for one in drafts
    ]
    epoch = (await scene.view()).state.epoch
    return await scene.send("POST", "journal", token, {"entries": entries}, epoch=epoch)


async def intend(scene: Scene, token: str, **data: Any) -> Answer:
    """Ask for the pull request, as a publisher does that has pushed."""
    return await append_as_publisher(scene, token, push("done"), pull_request(**data))


async def mints(scene: Scene) -> list[tuple[str, str]]:
    fold = (await scene.view()).state.fold
    return [(entry.id, entry.data["purpose"]) for entry in fold if entry.kind == "mint"]


def minted_at(host: Host) -> list[str]:
    rows = host.control.requests()
    return [e for row in rows for e in row["effects"] if e.startswith("token for")]


class TestHello:
    """A runner gets its clone token with the claim; fallible work comes before it (§1.6)."""

    async def test_it_carries_a_token_that_reads_this_repository(
        self, scene: Scene, host: Host
    ) -> None:
        claimed = (await scene.hello(await started(scene))).json

        assert "minted" == claimed["cloneCredential"]
        assert NAME == claimed["cloneToken"]["repository"]
        assert claimed["cloneToken"]["apiURL"].endswith("/api/v3")
        assert [f"token for {NAME} contents:read,metadata:read"] == minted_at(host)
        assert [("a1/mint/1", "clone")] == await mints(scene)
        assert ["clone"] == scene.replica.counts.tokens

    async def test_its_replay_keeps_the_claim_and_counts_another_mint(
        self, scene: Scene, other: Replica
    ) -> None:
        token = await started(scene)
        first = (await scene.hello(token)).json
        again = (await scene.hello(token, replica=other)).json

        assert first["epoch"] == again["epoch"]
        assert first["cloneToken"]["token"] != again["cloneToken"]["token"]
        assert [("a1/mint/1", "clone"), ("a1/mint/2", "clone")] == await mints(scene)

    async def test_a_pod_gets_five_at_most(self, scene: Scene, host: Host) -> None:
        token = await started(scene)

        answers = [await scene.hello(token) for _ in range(6)]

        assert [200] * 5 + [409] == [answer.status for answer in answers]
        assert "tokens_spent" == answers[-1].code
        assert 5 == len(minted_at(host)) == len(await mints(scene))

    @pytest.mark.parametrize(
        ("fault", "after"), [(Fault("status", status=502), "5"), (secondary_rate_limit(42), "42")]
    )
    async def test_a_forge_that_doesn_t_answer_is_waited_for_without_a_claim(
        self, scene: Scene, host: Host, fault: Fault, after: str
    ) -> None:
        token = await started(scene)
        host.control.add_fault(fault)

        answer = await scene.hello(token)

        assert (503, "forge_unavailable") == (answer.status, answer.code)
        assert after == answer.headers["Retry-After"]
        assert [] == await mints(scene)
        assert 0 == (await scene.view()).state.epoch

    async def test_a_forge_that_says_no_is_told(self, scene: Scene, host: Host) -> None:
        token = await started(scene)
        install_app(host, Installed("somebody-else"))

        answer = await scene.hello(token)

        assert (409, "forge_denied") == (answer.status, answer.code)
        assert "isn't installed on team/app" in answer.json["error"]["message"]
        assert [] == await mints(scene)

    async def test_a_missing_key_is_told(self, scene: Scene) -> None:
        token = await started(scene)
        secret = await scene.replica.client.get(SECRETS, scene.ref.namespace, SECRET)
        assert isinstance(secret, Ok)
        gone = await scene.replica.client.delete(
            SECRETS, scene.ref.namespace, SECRET, uid=secret.value["metadata"]["uid"]
        )
        assert isinstance(gone, Ok), gone

        answer = await scene.hello(token)

        assert "forge_denied" == answer.code
        assert "of the App's private key isn't there" in answer.json["error"]["message"]


class TestPushToken:
    """H19: after the approval, for this delivery, while its intent is open."""

    async def test_a_publisher_gets_one_that_pushes_this_repository(
        self, scene: Scene, host: Host
    ) -> None:
        token = await delivering(scene)

        answer = await ask_token(scene, token)

        assert (200, NAME) == (answer.status, answer.json["repository"])
        wanted = f"token for {NAME} contents:write,metadata:read,pull_requests:write"
        assert wanted == minted_at(host)[-1]
        assert ("d1/mint/1", "push") == (await mints(scene))[-1]

    async def test_two_calls_at_once_never_share_a_count(self, scene: Scene, host: Host) -> None:
        token = await delivering(scene)

        answers = await asyncio.gather(*(ask_token(scene, token) for _ in range(3)))

        given = [answer for answer in answers if answer.status == 200]
        assert {200, 503} >= {answer.status for answer in answers}
        assert len(given) == len([one for one in await mints(scene) if one[1] == "push"])
        assert len(given) == len([one for one in minted_at(host) if "contents:write" in one])

    async def test_a_runner_never_gets_one(self, scene: Scene) -> None:
        token = await started(scene)
        await scene.hello(token)

        answer = await ask_token(scene, token)

        assert (403, "role_forbidden") == (answer.status, answer.code)

    async def test_nor_does_a_fenced_publisher(self, scene: Scene) -> None:
        token = await delivering(scene)
        message = {"deliveryAttempt": 1, "proposalDigest": sha("9")}

        answer = await scene.send("POST", "push-token", token, message, epoch=1)

        assert (409, "epoch_stale") == (answer.status, answer.code)

    @pytest.mark.parametrize("changes", [{"deliveryAttempt": 2}, {"deliveryAttempt": "1"}])
    async def test_it_asks_for_itself(self, scene: Scene, changes: dict[str, Any]) -> None:
        answer = await ask_token(scene, await delivering(scene), **changes)

        assert (400, "invalid_request") == (answer.status, answer.code)

    async def test_another_proposal_was_not_granted(self, scene: Scene) -> None:
        answer = await ask_token(scene, await delivering(scene), proposalDigest=sha("a"))

        assert (409, "publication_held") == (answer.status, answer.code)

    @pytest.mark.parametrize("wish", ["suspend", "cancel"])
    async def test_people_may_hold_it(self, scene: Scene, wish: str) -> None:
        token = await delivering(scene)
        await wish_for(scene, wish)

        answer = await ask_token(scene, token)

        assert (409, "publication_held") == (answer.status, answer.code)
        assert [("a1/mint/1", "clone")] == await mints(scene)

    async def test_between_push_and_pull_request_it_is_open(self, scene: Scene) -> None:
        token = await delivering(scene)
        await scene.append(push("done"), epoch=2)

        assert 200 == (await ask_token(scene, token)).status

    @pytest.mark.parametrize(
        "entries",
        [
            (push("failed", reason="denied"),),
            (push("done"), pull_request(), pull_request("failed", reason="denied")),
            (push("done"), pull_request(), pull_request("done")),
        ],
        ids=["push refused", "pull request refused", "published"],
    )
    async def test_nothing_open_means_no_token(self, scene: Scene, entries: Any) -> None:
        token = await delivering(scene)
        await scene.append(*entries, epoch=2)

        answer = await ask_token(scene, token)

        assert (409, "publication_held") == (answer.status, answer.code)
        assert [("a1/mint/1", "clone")] == await mints(scene)


class TestIntent:
    """upgrade-run.md §12: each further intent of a publisher is checked against what people want now."""

    async def test_it_is_written_while_nothing_holds_it(self, scene: Scene) -> None:
        token = await delivering(scene)

        answer = await intend(scene, token)

        assert 200 == answer.status
        assert (await scene.view()).state.pull_request is not None

    @pytest.mark.parametrize("wish", ["suspend", "cancel"])
    async def test_people_may_hold_it(self, scene: Scene, wish: str) -> None:
        token = await delivering(scene)
        await wish_for(scene, wish)

        answer = await intend(scene, token)

        assert (409, "publication_held") == (answer.status, answer.code)
        state = (await scene.view()).state
        assert (None, None) == (state.pushed, state.pull_request)

    @pytest.mark.parametrize("wish", ["suspend", "cancel"])
    async def test_what_was_done_is_recorded_all_the_same(self, scene: Scene, wish: str) -> None:
        token = await delivering(scene)
        await wish_for(scene, wish)

        answer = await append_as_publisher(scene, token, push("done"))

        assert 200 == answer.status

    async def test_an_intent_that_stands_is_a_replay(self, scene: Scene) -> None:
        token = await delivering(scene)
        await intend(scene, token)
        await wish_for(scene, "suspend")

        answer = await intend(scene, token)

        assert 200 == answer.status
        assert [True, True] == [item["replayed"] for item in answer.json["accepted"]]

    async def test_another_commit_was_not_granted(self, scene: Scene) -> None:
        token = await delivering(scene)

        answer = await intend(scene, token, commit="a" * 40)

        assert (409, "publication_held") == (answer.status, answer.code)


class KilledError(RuntimeError):
    """The process ends here: nobody catches it but the exit of the API."""


class TestCrash:
    """RP10: a crash around the mint costs one count at most, and never a second claim."""

    @pytest.mark.parametrize(
        ("purpose", "position"),
        [
            (name.removesuffix("_token"), position)
            for name in ("clone_token", "push_token")
            for position in EFFECTS[name].positions
        ],
    )
    async def test_the_next_call_mints_under_the_next_count(
        self,
        scene: Scene,
        host: Host,
        cluster: ApiServer,
        tmp_path: Path,
        purpose: str,
        position: Position,
    ) -> None:
        reached: list[str] = []

        def fault(effect: str, passed: Position) -> bool:
            if (effect, passed) != (f"{purpose}_token", position) or reached:
                return False
            reached.append(effect)
            if position is Position.REPLY_LOST:
                return True
            raise KilledError(effect)

        def struck(tools: Tools) -> Tools:
            return replace(tools, fault=fault)

        token = await (started if purpose == "clone" else delivering)(scene)
        async with serve(cluster, tmp_path / "store", through=struck) as replica:
            first = await call(Scene(replica, scene.ref, scene.pods), token, purpose)
        counted = [one for one in await mints(scene) if one[1] == purpose]

        again = await call(scene, token, purpose)

        lost = position is Position.REPLY_LOST
        assert (503 if lost else 500, 200) == (first.status, again.status)
        assert 1 == len(counted) == len(reached)
        after = [one for one in await mints(scene) if one[1] == purpose]
        assert 2 == len(after)
        level = "contents:write" if purpose == "push" else "contents:read"
        minted = [one for one in minted_at(host) if level in one]
        assert len(minted) == (1 if position is Position.BEFORE else 2)
        row = EFFECTS[f"{purpose}_token"]
        did = row.not_applied if position is Position.BEFORE else row.applied
        point = f"{row.name}.{position}@1"
        note(Struck("operator", point, "a policy with an App", did, "a token under number 2"))


async def call(scene: Scene, token: str, purpose: str) -> Answer:
    if purpose == "clone":
        return await scene.hello(token)
    return await ask_token(scene, token)
