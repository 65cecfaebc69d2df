"""journal, workspace, artifacts, lease: what a working process calls (runner-protocol.md §1.5)."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest

from clusterlib.apiserver import ApiServer
from support.journal_story import TO_FROZEN, admit, end
from support.replicas import NONCE, JumpingClock, Replica, Scene, serve
from upgraderun_operator.adapters.lease_watch import LeaseWatch
from upgraderun_operator.answers import Ok
from upgraderun_operator.api.run_lease import Sightings
from upgraderun_operator.build.leases import LeaseView
from upgraderun_operator.journal.planning import Bounds
from upgraderun_operator.journal.writes import Change
from upgraderun_operator.resources import LEASES, UPGRADE_RUNS
from upgraderun_protocol.entries import Draft, entry_from_json
from upgraderun_protocol.fold import Fold
from upgraderun_protocol.slugs import child_name

pytestmark = pytest.mark.api

CLONE = {"id": "workspace/1", "kind": "workspace", "state": "intent"}
CLONE_DATA = {"generation": "1", "nonce": "n"}
PLAIN = {"cause": "yield", "reason": "suspended"}
ASKS = {"cause": "yield", "reason": "awaiting_approval"}
"""What a pod may not say without naming its question."""


async def running(scene: Scene) -> str:
    await scene.append(admit(baseCommit="a" * 40))
    await scene.pod("a1")
    token = await scene.token("a1")
    assert (await scene.hello(token)).status == 200
    return token


def wire(draft: Draft) -> dict[str, Any]:
    return {
        "id": draft.id,
        "kind": draft.kind,
        "state": draft.state.value,
        "data": dict(draft.data),
        "artifacts": dict(draft.artifacts),
    }


class TestJournal:
    """All or none; replay; altered replay; stale epoch; two replicas racing; full (RP8)."""

    async def post(self, scene: Scene, token: str, *entries: Any, **more: Any) -> Any:
        message = {"entries": list(entries)}
        return await scene.send("POST", "journal", token, message, epoch=1, **more)

    async def test_entries_are_appended_under_the_writer_s_epoch(self, scene: Scene) -> None:
        token = await running(scene)

        answer = await self.post(scene, token, {**CLONE, "data": CLONE_DATA})

        view = await scene.view()
        last = list(view.state.fold)[-1]
        assert answer.json["accepted"] == [
            {"id": "workspace/1", "seq": last.seq, "digest": last.draft.content, "replayed": False}
        ]
        assert answer.json["head"] == {
            "seq": last.seq,
            "digest": view.journal.digest,
            "epoch": 1,
        }
        assert (last.attempt, last.epoch) == ("a1", 1)

    async def test_a_replay_is_accepted_by_any_replica_and_changes_nothing(
        self, scene: Scene, other: Replica
    ) -> None:
        token = await running(scene)
        first = await self.post(scene, token, {**CLONE, "data": CLONE_DATA})
        version = (await scene.view()).resource_version

        again = await self.post(scene, token, {**CLONE, "data": CLONE_DATA}, replica=other)

        assert again.json["accepted"] == [{**first.json["accepted"][0], "replayed": True}]
        assert (await scene.view()).resource_version == version

    async def test_an_altered_replay_is_a_conflict(self, scene: Scene) -> None:
        token = await running(scene)
        await self.post(scene, token, {**CLONE, "data": CLONE_DATA})

        answer = await self.post(scene, token, {**CLONE, "data": {**CLONE_DATA, "nonce": "m"}})

        assert (answer.status, answer.code) == (409, "journal_conflict")

    @pytest.mark.parametrize(
        "bad",
        [
            {"id": "x", "kind": "odd", "state": "intent"},
            {"id": "admit", "kind": "admit", "state": "done"},
            {"id": "workspace/2", "kind": "workspace", "state": "intent"},
            {"id": "workspace/2", "kind": "workspace", "state": "odd"},
            {**CLONE, "data": {**CLONE_DATA, "odd": "x"}},
            {**CLONE, "data": CLONE_DATA, "seq": 3},
            {**CLONE, "data": []},
            {"id": "a2/end", "kind": "end", "state": "done", "data": {"cause": "yield"}},
            {"id": "a1/end", "kind": "end", "state": "done", "data": {"cause": "crashed"}},
            {"id": "a1/end", "kind": "end", "state": "done", "data": {"cause": "yield"}},
            {"id": "a1/end", "kind": "end", "state": "done", "data": ASKS},
            {"id": "a1/end", "kind": "end", "state": "done", "data": PLAIN | {"python": "3.13"}},
            {
                "id": "s1/decision",
                "kind": "decision",
                "state": "done",
                "data": {"tool": "t" * 250},
                "artifacts": {"decision": "a" * 64, "more": "b" * 64},
            },
        ],
    )
    async def test_half_bad_requests_append_nothing(self, scene: Scene, bad: Any) -> None:
        token = await running(scene)
        seq = (await scene.view()).state.seq

        answer = await self.post(scene, token, {**CLONE, "data": CLONE_DATA}, bad)

        assert (answer.status, answer.code) == (400, "invalid_request")
        assert (await scene.view()).state.seq == seq

    @pytest.mark.parametrize(
        ("body", "code"),
        [
            (b'{"entries": []}', "invalid_request"),
            (b"[]", "invalid_request"),
            (b"{", "invalid_request"),
            (b'{"entries": [], "entries": []}', "invalid_request"),
            (b'{"entries": ' + b"[" * 20 + b"]" * 20 + b"}", "invalid_request"),
            (b'{"entries": [' + b'{"id": "a"},' * 16 + b'{"id": "a"}]}', "invalid_request"),
            (b" " * 16_385, "too_large"),
        ],
    )
    async def test_odd_bodies_are_refused(self, scene: Scene, body: bytes, code: str) -> None:
        token = await running(scene)

        answer = await scene.send("POST", "journal", token, body, epoch=1)

        assert answer.code == code

    async def test_a_chunked_body_is_bounded_too(self, scene: Scene) -> None:
        token = await running(scene)

        async def flood() -> Any:
            for _ in range(40):
                yield b" " * 1024

        answer = await scene.replica.session.post(
            f"{scene.replica.url}{scene.path}/journal",
            data=flood(),
            headers={
                "Authorization": f"Bearer {token}",
                "UpgradeRun-Protocol": "1",
                "UpgradeRun-Epoch": "1",
            },
        )

        assert answer.status == 413

    async def test_an_artifact_must_be_stored_first(self, scene: Scene) -> None:
        token = await running(scene)
        digest = hashlib.sha256(b"decision").hexdigest()
        entry = {
            "id": "s0/decision",
            "kind": "decision",
            "state": "done",
            "data": {"tool": "read_file"},
            "artifacts": {"decision": digest},
        }

        missing = await self.post(scene, token, entry)
        await scene.send("PUT", f"artifacts/{digest}", token, b"decision", epoch=1)
        there = await self.post(scene, token, entry)

        assert (missing.status, missing.code) == (409, "artifact_missing")
        assert there.status == 200

    async def test_two_replicas_racing_keep_the_chain_dense(
        self, scene: Scene, other: Replica
    ) -> None:
        token = await running(scene)

        async def send(number: int) -> Any:
            entry = {
                "id": f"workspace/{number}",
                "kind": "workspace",
                "state": "intent",
                "data": {"generation": str(number), "nonce": "n"},
            }
            replica = other if number % 2 else scene.replica
            while True:
                answer = await self.post(scene, token, entry, replica=replica)
                if answer.status != 503:
                    return answer

        answers = await asyncio.gather(*(send(number) for number in range(1, 13)))

        assert {answer.status for answer in answers} == {200}
        seqs = sorted(answer.json["accepted"][0]["seq"] for answer in answers)
        assert seqs == list(range(seqs[0], seqs[0] + 12))
        view = await scene.view()
        assert view.state.seq == seqs[-1]

    async def test_a_parked_pod_wakes_the_leader(self, scene: Scene) -> None:
        token = await running(scene)
        scene.replica.counts.rung.clear()
        message = {"cause": "yield", "reason": "suspended"}

        answer = await self.post(scene, token, wire(end("a1", **message)))

        assert answer.status == 200
        assert scene.replica.counts.rung
        assert (await scene.view()).state.parked == "suspended"
        fenced = await self.post(scene, token, {**CLONE, "data": CLONE_DATA})
        assert fenced.code == "not_current_writer"

    async def test_a_full_journal_says_so(
        self, scene: Scene, cluster: ApiServer, tmp_path: Path
    ) -> None:
        token = await running(scene)
        tight = Bounds(soft=100_000, hard=1000)
        async with serve(cluster, tmp_path / "store", bounds=tight) as full:
            answer = await self.post(scene, token, {**CLONE, "data": CLONE_DATA}, replica=full)

        assert (answer.status, answer.code) == (409, "journal_full")

    async def test_reading_pages_through_segments_and_status(
        self, scene: Scene, cluster: ApiServer, tmp_path: Path
    ) -> None:
        token = await running(scene)
        async with serve(cluster, tmp_path / "store", bounds=Bounds(soft=3000)) as small:
            for item in TO_FROZEN[1:]:
                done = await small.writer.guarded_write(scene.ref, (), Change((item,)))
                assert done.wrote  # type: ignore[union-attr]  # it succeeds
        view = await scene.view()
        assert len(view.journal.compacted.segments) >= 2

        first = await scene.send("GET", "journal?after=0", token, epoch=1)
        rest = await scene.send("GET", f"journal?after={view.state.seq - 3}", token, epoch=1)
        odd = await scene.send("GET", "journal?after=-1", token, epoch=1)

        entries = [entry_from_json(value) for value in first.json["entries"]]
        assert Fold(entries).seq == view.state.seq
        assert entries == list(view.state.fold)
        assert len(rest.json["entries"]) == 3
        assert first.json["head"]["digest"] == view.journal.digest
        assert odd.code == "invalid_request"


class TestWorkspace:
    """Fixed once; the equal value is a replay, another one a mismatch (RP8)."""

    async def test_the_first_value_stands(self, scene: Scene) -> None:
        token = await running(scene)
        base = {"baseCommit": "A" * 40, "baseTree": "b" * 40}

        first = await scene.send("POST", "workspace", token, base, epoch=1)
        again = await scene.send("POST", "workspace", token, base, epoch=1)
        other = await scene.send(
            "POST", "workspace", token, {**base, "baseTree": "c" * 40}, epoch=1
        )

        assert first.json == {"baseCommit": "a" * 40, "baseTree": "b" * 40}
        assert again.json == first.json
        assert (other.status, other.code) == (409, "workspace_base_mismatch")
        assert (await scene.view()).status["base"]["tree"] == "b" * 40

    @pytest.mark.parametrize(
        ("commit", "code"),
        [("e" * 40, "workspace_base_mismatch"), ("x", "invalid_request")],
    )
    async def test_admission_fixed_the_commit(self, scene: Scene, commit: str, code: str) -> None:
        token = await running(scene)

        answer = await scene.send(
            "POST", "workspace", token, {"baseCommit": commit, "baseTree": "b" * 40}, epoch=1
        )

        assert answer.code == code
        assert (await scene.view()).state.base is None


class TestArtifacts:
    """PUT through one replica, GET through the other; a name only for matching bytes."""

    async def test_what_one_replica_stores_the_other_serves(
        self, scene: Scene, other: Replica
    ) -> None:
        token = await running(scene)
        data = b"\x00\xff" * 700_000
        digest = hashlib.sha256(data).hexdigest()

        put = await scene.send("PUT", f"artifacts/{digest}", token, data, epoch=1)
        again = await scene.send("PUT", f"artifacts/{digest}", token, data, epoch=1, replica=other)
        got = await scene.send("GET", f"artifacts/{digest}", token, epoch=1, replica=other)
        head = await scene.send("HEAD", f"artifacts/{digest}", token, epoch=1, replica=other)

        assert put.json == {"sha256": digest, "size": len(data)}
        assert again.json == put.json
        assert got.content == data
        assert got.headers["Content-Length"] == str(len(data))
        assert got.headers["UpgradeRun-SHA256"] == digest
        assert "Content-Encoding" not in got.headers
        assert (head.status, head.headers["Content-Length"]) == (200, str(len(data)))

    async def test_refusals(self, scene: Scene) -> None:
        token = await running(scene)
        wrong = await scene.send("PUT", f"artifacts/{'a' * 64}", token, b"x", epoch=1)
        named = await scene.send("PUT", "artifacts/odd", token, b"x", epoch=1)
        absent = await scene.send("GET", f"artifacts/{'a' * 64}", token, epoch=1)
        no_head = await scene.send("HEAD", f"artifacts/{'a' * 64}", token, epoch=1)

        assert (wrong.status, wrong.code) == (400, "digest_mismatch")
        assert named.code == "invalid_request"
        assert (absent.status, absent.code) == (404, "artifact_unknown")
        assert no_head.status == 404


class Ringing(Sightings):
    """Passes on what it saw, and rings."""

    def __init__(self, target: Sightings) -> None:
        super().__init__()
        self._target = target
        self.rung = asyncio.Event()

    def saw(self, lease: LeaseView, now: float) -> float:
        found = self._target.saw(lease, now)
        self.rung.set()
        return found


class TestLease:
    """Renewed by its holder; an outage costs time, a taken Lease fences (DESIGN §7, §9)."""

    async def test_renewal_moves_the_time_and_tells_wishes(self, scene: Scene) -> None:
        token = await running(scene)
        raw = (await scene.view()).raw
        await scene.replica.client.put(
            UPGRADE_RUNS, {**raw, "spec": {**raw["spec"], "suspend": True}}
        )
        before = await self.lease(scene)

        answer = await self.renew(scene, token)

        after = await self.lease(scene)
        assert answer.json["epoch"] == 1
        assert (answer.json["suspend"], answer.json["cancel"]) == (True, False)
        assert after["spec"]["renewTime"] > before["spec"]["renewTime"]
        assert after["spec"]["leaseTransitions"] == 1

    async def test_another_process_of_the_pod_is_no_holder(self, scene: Scene) -> None:
        token = await running(scene)

        answer = await self.renew(scene, token, "f" * 32)

        assert (answer.status, answer.code) == (409, "lease_lost")

    async def test_a_re_created_lease_is_taken_again_under_the_same_epoch(
        self, scene: Scene
    ) -> None:
        token = await running(scene)
        raw = await self.lease(scene)
        spec = {"leaseDurationSeconds": 30, "leaseTransitions": 0}
        await scene.replica.client.put(LEASES, {**raw, "spec": spec})

        answer = await self.renew(scene, token)

        after = await self.lease(scene)
        assert answer.json["epoch"] == 1
        assert after["spec"]["leaseTransitions"] == 1
        assert after["spec"]["holderIdentity"].endswith(NONCE)

    async def test_a_lease_expires_by_this_replica_s_own_clock(
        self, scene: Scene, cluster: ApiServer, tmp_path: Path
    ) -> None:
        token = await running(scene)
        clock = JumpingClock()
        async with serve(cluster, tmp_path / "store", clock=clock) as judge:
            first = await scene.hello(token, nonce="e" * 32, replica=judge)
            clock.jumped += 29
            early = await scene.hello(token, nonce="e" * 32, replica=judge)
            await self.renew(scene, token)
            clock.jumped += 29
            renewed = await scene.hello(token, nonce="e" * 32, replica=judge)
            clock.jumped += 30
            taken = await scene.hello(token, nonce="e" * 32, replica=judge)
        lost = await self.renew(scene, token)

        assert [first.code, early.code, renewed.code] == ["run_leased"] * 3
        assert taken.json["epoch"] == 2
        assert lost.code == "epoch_stale"

    async def test_a_watch_starts_the_clock_before_any_hello(
        self, scene: Scene, cluster: ApiServer, tmp_path: Path
    ) -> None:
        token = await running(scene)
        clock = JumpingClock()
        async with serve(cluster, tmp_path / "store", clock=clock) as judge:
            seen = Ringing(judge.sightings)
            watch = LeaseWatch(judge.client, clock, seen, scene.ref.namespace)
            task = asyncio.create_task(watch.once())
            async with asyncio.timeout(20):
                await seen.rung.wait()
            task.cancel()
            clock.jumped += 30
            taken = await scene.hello(token, nonce="e" * 32, replica=judge)

        assert taken.json["epoch"] == 2

    async def renew(self, scene: Scene, token: str, nonce: str = NONCE) -> Any:
        return await scene.send("PUT", "lease", token, {"bootNonce": nonce}, epoch=1)

    async def lease(self, scene: Scene) -> Any:
        name = child_name(scene.ref.name, scene.ref.uid)
        answer = await scene.replica.client.get(LEASES, scene.ref.namespace, name)
        assert isinstance(answer, Ok)
        return answer.value
