"""result: one verdict, claimed once, answered the same way ever after (runner-protocol.md §6)."""

import asyncio
import hashlib
from typing import Any

import pytest

from support.journal_story import TO_FROZEN, answer, ask, draft, end, outcome, pull_request, push
from support.journal_story import admit as admitted
from support.replicas import PUBLISHER, Replica, Scene, make_scene
from upgraderun_protocol.ends import EndCause

pytestmark = pytest.mark.api

REPORT = b'{"version":1}'
REPORT_DIGEST = hashlib.sha256(REPORT).hexdigest()


async def running(scene: Scene, tag: str = "a1") -> str:
    if tag == "a1":
        await scene.append(admitted())
    await scene.pod(tag)
    token = await scene.token(tag)
    assert (await scene.hello(token)).status == 200
    return token


async def frozen(scene: Scene) -> str:
    token = await running(scene)
    await scene.append(*TO_FROZEN)
    return token


def verdict(scene: Scene, tag: str = "a1", **changes: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "verdictId": "v-1",
        "runUID": scene.ref.uid,
        "writer": tag,
        "podUID": scene.pods[tag]["metadata"]["uid"],
        "outcome": "baseline_failing",
        "message": "2 tests fail",
        "exitCode": 3,
        **changes,
    }


async def post(scene: Scene, token: str, message: Any, replica: Replica | None = None) -> Any:
    return await scene.send("POST", "result", token, message, replica=replica)


class TestClaim:
    """Outcome entry and finalization marks in one write; a lost claim has no side effect."""

    async def test_an_end_is_recorded_with_its_verdict(self, scene: Scene) -> None:
        token = await running(scene)
        await scene.send("PUT", f"artifacts/{REPORT_DIGEST}", token, REPORT, epoch=1)
        scene.replica.counts.rung.clear()

        reply = await post(scene, token, verdict(scene, report=REPORT_DIGEST))

        view = await scene.view()
        assert reply.json == {"verdictId": "v-1", "recorded": True, "finalized": False}
        assert view.state.outcome is not None
        assert view.state.outcome.name == "baseline_failing"
        assert view.state.outcome.verdict_id == "v-1"
        assert view.state.outcome.report == REPORT_DIGEST
        assert view.status["outcome"] == "BaselineFailing"
        assert set(view.status["finalization"]) == {"finishedAt", "renewedAt"}
        assert view.status["finished"] is False
        assert scene.replica.counts.rung
        blob = view.state.outcome.verdict
        assert blob is not None
        stored = await scene.replica.store.get(scene.ref.uid, blob)
        assert isinstance(stored, bytes)
        assert b"2 tests fail" in stored

    async def test_a_replay_is_answered_the_same_way(self, scene: Scene, other: Replica) -> None:
        token = await running(scene)
        first = await post(scene, token, verdict(scene))
        version = (await scene.view()).resource_version

        again = await post(scene, token, verdict(scene), other)

        assert again.json == first.json
        assert (await scene.view()).resource_version == version

    async def test_an_altered_verdict_is_a_conflict(self, scene: Scene) -> None:
        token = await running(scene)
        await post(scene, token, verdict(scene))

        reply = await post(scene, token, verdict(scene, verdictId="v-2", outcome="failed"))

        assert (reply.status, reply.code) == (409, "verdict_conflict")
        assert (await scene.view()).status["outcome"] == "BaselineFailing"

    async def test_two_verdicts_at_once_have_one_winner(self, scene: Scene, other: Replica) -> None:
        token = await running(scene)

        replies = await asyncio.gather(
            post(scene, token, verdict(scene)),
            post(scene, token, verdict(scene, verdictId="v-2", outcome="unsupported"), other),
        )

        assert sorted(reply.status for reply in replies) == [200, 409]
        winner = next(reply.json["verdictId"] for reply in replies if reply.status == 200)
        view = await scene.view()
        assert view.state.outcome is not None
        assert view.state.outcome.verdict_id == winner

    async def test_what_the_leader_ended_stays(self, scene: Scene) -> None:
        token = await running(scene)
        await scene.append(outcome("cancelled"))

        reply = await post(scene, token, verdict(scene))

        assert (reply.status, reply.code) == (409, "run_terminal")
        assert (await scene.view()).status["outcome"] == "Cancelled"

    async def test_a_conflict_comes_with_its_evidence(self, scene: Scene) -> None:
        token = await running(scene)
        message = verdict(
            scene,
            outcome="workspace_conflict",
            exitCode=4,
            conflict="staging_lost",
            expected="e" * 256,
            observed="o" * 256,
            message="m" * 512,
        )

        reply = await post(scene, token, message)

        assert reply.status == 200
        status = (await scene.view()).status
        assert status["conflict"]["kind"] == "StagingLost"
        assert status["conflict"]["expected"].startswith("e")

    async def test_what_people_read_is_redacted(self, scene: Scene) -> None:
        token = await running(scene)

        await post(scene, token, verdict(scene, message="with ghp_abcdefgh12345678 inside"))

        view = await scene.view()
        assert view.state.outcome is not None
        assert view.state.outcome.message == "with [redacted] inside"


class TestFrozenProposal:
    """If publication is wanted, it ends the attempt only."""

    async def test_it_ends_the_attempt(self, scene: Scene) -> None:
        token = await frozen(scene)
        message = verdict(scene, outcome="proposal_prepared", exitCode=0, proposalDigest="9" * 64)

        reply = await post(scene, token, message)
        again = await post(scene, token, message)
        altered = await post(scene, token, {**message, "verdictId": "v-2"})

        view = await scene.view()
        assert reply.status == again.status == 200
        assert view.state.outcome is None
        assert view.state.attempts[0].end is not None
        assert view.state.attempts[0].end.cause is EndCause.VERDICT
        assert view.state.attempts[0].end.outcome == "proposal_prepared"
        assert view.status["phase"] == "AwaitingApproval"
        assert altered.code == "verdict_conflict"

    async def test_without_publication_it_ends_the_run(self, replica: Replica) -> None:
        spec = {"publication": {"enabled": False}}
        scene = await make_scene(replica, "runner-api-unpublished", spec)
        token = await frozen(scene)

        await post(scene, token, verdict(scene, outcome="proposal_prepared", exitCode=0))

        view = await scene.view()
        assert view.state.outcome is not None
        assert view.state.outcome.name == "proposal_prepared"


class TestSpooledVerdict:
    """A successor may deliver its predecessor's verdict as its first act (§6.1)."""

    async def successor(self, scene: Scene) -> str:
        await running(scene)
        await scene.delete_pod("a1")
        await scene.append(end("a1", "pod_gone"))
        return await running(scene, "a2")

    async def test_as_its_first_act(self, scene: Scene) -> None:
        token = await self.successor(scene)

        reply = await post(scene, token, verdict(scene))

        assert reply.status == 200
        assert (await scene.view()).status["outcome"] == "BaselineFailing"

    async def test_after_a_step_it_is_stale(self, scene: Scene) -> None:
        token = await self.successor(scene)
        await scene.append(draft("workspace/1", "workspace", "intent", generation="1", nonce="n"))

        reply = await post(scene, token, verdict(scene))

        assert (reply.status, reply.code) == (409, "verdict_stale")
        assert (await scene.view()).state.outcome is None

    async def test_a_pod_that_was_judged_lost_is_fenced(self, scene: Scene) -> None:
        token = await running(scene)
        await scene.append(end("a1", "pod_gone"))

        reply = await post(scene, token, verdict(scene))

        assert (reply.status, reply.code) == (403, "not_current_writer")


class TestPublisher:
    """The publisher's verdict ends the run, if the pull request stands."""

    async def publishing(self, scene: Scene) -> str:
        await frozen(scene)
        await scene.append(end("a1", "verdict"), ask())
        await scene.delete_pod("a1")
        await scene.append(answer("approved"), push())
        await scene.pod("d1", PUBLISHER)
        token = await scene.token("d1")
        assert (await scene.hello(token, nonce="d" * 32)).status == 200
        return token

    async def test_a_conflict_that_has_its_entry_leaves_the_room_to_the_words(
        self, scene: Scene
    ) -> None:
        token = await self.publishing(scene)
        ours, theirs = f"branch at {'a' * 40}", f"branch at {'b' * 40}"
        found = {"conflict": "foreign_branch", "expected": ours, "observed": theirs}
        await scene.append(draft("push/1", "push", "conflict", **found))
        words = f"foreign_branch: expected {ours}, observed {theirs}"
        changes = {"outcome": "publication_conflict", "exitCode": 4, **found, "message": words}

        reply = await post(scene, token, verdict(scene, "d1", **changes, verdictId="v" * 36))

        assert reply.status == 200
        state = (await scene.view()).state
        assert state.outcome is not None
        assert words == state.outcome.message
        assert state.conflict is not None
        assert ("push/1", theirs) == (state.conflict.entry, state.conflict.observed)

    async def test_it_is_published(self, scene: Scene) -> None:
        token = await self.publishing(scene)
        await scene.append(push("done"), pull_request())
        await scene.append(pull_request("done"))
        message = verdict(scene, "d1", outcome="proposal_published", exitCode=0)

        reply = await post(scene, token, message)

        assert reply.status == 200
        assert (await scene.view()).status["outcome"] == "Published"

    async def test_a_claim_without_pull_request_is_refused(self, scene: Scene) -> None:
        token = await self.publishing(scene)
        message = verdict(scene, "d1", outcome="proposal_published", exitCode=0)

        reply = await post(scene, token, message)

        assert reply.code == "invalid_request"
        assert (await scene.view()).state.outcome is None

    async def test_it_doesn_t_speak_for_a_runner(self, scene: Scene) -> None:
        token = await self.publishing(scene)

        assert (await post(scene, token, verdict(scene))).code == "invalid_request"


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"runUID": "another"},
        {"podUID": "another"},
        {"writer": "a9"},
        {"outcome": "odd"},
        {"outcome": "proposal_prepared"},
        {"proposalDigest": "9" * 64},
        {"conflict": "odd"},
        {"extra": 1},
        {"message": "m" * 513},
        {"exitCode": True},
    ],
)
async def test_a_verdict_is_a_claim_never_an_instruction(
    scene: Scene, change: dict[str, Any]
) -> None:
    """What it says of itself, proposal and outcome must be so (security.md H16)."""
    token = await running(scene)

    reply = await post(scene, token, verdict(scene, **change))

    assert (reply.status, reply.code) == (400, "invalid_request")
    assert (await scene.view()).state.outcome is None


async def test_its_report_must_be_stored(scene: Scene) -> None:
    token = await running(scene)

    reply = await post(scene, token, verdict(scene, report="a" * 64))

    assert reply.code == "artifact_missing"


async def test_a_verdict_is_bounded(scene: Scene) -> None:
    token = await running(scene)

    assert (await post(scene, token, b" " * 16_385)).code == "too_large"
