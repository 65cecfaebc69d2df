"""Bad input, people and queues: each ends in its outcome or waits with a reason that helps."""

from typing import Any

import pytest

from support.desk import Make, Play
from support.fixtures.faults import secondary_rate_limit
from upgraderun_operator.answers import Ok
from upgraderun_operator.resources import (
    CLAIMS,
    LEASES,
    PODS,
    UPGRADE_APPROVALS,
    UPGRADE_POLICIES,
    UPGRADE_RUNS,
)

pytestmark = pytest.mark.api


async def ended(play: Play) -> tuple[str, str]:
    """Outcome and message of a finished run that left only its report."""
    status = await play.status()
    assert status["finished"] is True
    assert [f"UpgradeReport {play.name}"] == await play.left()
    succeeded = next(one for one in status["conditions"] if one["type"] == "Succeeded")
    play.desk.writes.clear()
    assert (await play.go()).gone
    assert not play.desk.writes
    return str(status["outcome"]), str(succeeded["message"])


class TestRefused:
    """What a run must not do ends it before any child object exists."""

    async def test_by_a_missing_policy(self, make: Make) -> None:
        play = await make(policy={"repositories": []})
        await play.go()
        outcome, message = await ended(play)
        assert outcome == "PolicyRefused"
        assert "UpgradePolicy default isn't there" in message
        assert "create pods" not in play.desk.writes

    async def test_by_its_policy_without_asking_the_forge(self, make: Make) -> None:
        play = await make(policy={"repositories": ["https://git.example/other/*"]})
        play.host.control.forget_requests()
        await play.go()
        outcome, message = await ended(play)
        assert outcome == "PolicyRefused"
        assert "spec.repositories" in message
        assert [] == play.host.control.requests()

    async def test_by_a_missing_branch(self, make: Make) -> None:
        play = await make()
        raw = await play.get(UPGRADE_RUNS, play.name)
        await play.desk.client.delete(UPGRADE_RUNS, play.namespace, play.name, uid=play.uid)
        repository = {**raw["spec"]["repository"], "branch": "nowhere"}
        metadata = {key: raw["metadata"][key] for key in ("name", "namespace", "annotations")}
        body = {
            **raw,
            "metadata": metadata,
            "spec": {**raw["spec"], "repository": repository},
            "status": {},
        }
        assert isinstance(await play.desk.client.create(UPGRADE_RUNS, play.namespace, body), Ok)
        await play.go()
        outcome, message = await ended(play)
        assert outcome == "DestinationRefused"
        assert "branch 'nowhere' doesn't exist" in message

    async def test_by_a_wrong_token(self, make: Make) -> None:
        play = await make(
            policy={"credentials": {"push": {"secretRef": {"name": "none", "key": "token"}}}}
        )
        await play.go()
        outcome, message = await ended(play)
        assert outcome == "DestinationRefused"
        assert "Secret none" in message

    async def test_by_an_archived_repository(self, make: Make) -> None:
        play = await make()
        play.host.control.put_repository(play.repository, archived=True)
        await play.go()
        assert "DestinationRefused" == (await ended(play))[0]


async def test_an_unreachable_forge_is_told_from_the_third_pass(make: Make) -> None:
    play = await make()
    play.host.control.refuse_connections(refuse=True)
    try:
        waits: list[Any] = []
        for _ in range(3):
            assert (await play.go()).backoff
            waits.append((await play.status()).get("wait"))
    finally:
        play.host.control.refuse_connections(refuse=False)
    assert waits[:2] == [None, None]
    assert waits[2]["reason"] == "RemoteUnreachable"
    await play.go()
    assert "a1 done" in await play.entries()
    assert "wait" not in await play.status()


async def test_a_forge_that_limits_is_shown_with_its_end_and_asked_as_it_says(make: Make) -> None:
    """reliability.md §3: a limit is a wait, never a verdict; it ends when the forge says."""
    play = await make()
    repository = f"/repos/{play.repository}"
    play.host.control.add_fault(secondary_rate_limit(0, path=repository))
    before = await play.go()
    wait = (await play.status())["wait"]
    await play.go()

    assert (0.0, False) == (before.after_seconds, before.backoff)
    assert "ForgeLimited" == wait["reason"]
    assert "it is asked again after 20" in wait["message"]
    assert "a1 done" in await play.entries()
    assert "wait" not in await play.status()
    assert 1 == (await play.reasons()).count("ForgeLimited")


async def test_a_renamed_repository_is_refused_with_its_new_name(make: Make) -> None:
    play = await make()
    play.host.control.rename_repository(play.repository, f"{play.repository}-new")

    await play.go()

    outcome, message = await ended(play)
    assert outcome == "DestinationRefused"
    assert f"the repository is called {play.repository}-new now" in message


class TestBusy:
    """One active run per repository in the whole cluster."""

    async def test_the_second_waits_naming_the_first_and_then_goes_on(self, make: Make) -> None:
        first = await make()
        second = await make(repository=first.repository, name="other")
        await first.go()
        wake = await second.go()
        assert wake.after_seconds == 10
        wait = (await second.status())["wait"]
        assert wait["reason"] == "RepositoryBusy"
        assert f"run {first.namespace}/{first.name}" in wait["message"]
        second.desk.writes.clear()
        await second.go()
        assert not second.desk.writes
        await first.runs("a1")
        await first.freeze()
        await first.go()
        await second.go()
        assert "a1 done" in await second.entries()
        assert "wait" not in await second.status()

    async def test_a_holder_that_is_gone_is_no_holder(self, make: Make) -> None:
        first = await make()
        second = await make(repository=first.repository)
        await first.go()
        client = first.desk.client
        await client.delete(UPGRADE_RUNS, first.namespace, first.name, uid=first.uid)
        await second.go()
        assert "a1 done" in await second.entries()

    async def test_a_target_that_waits_elsewhere_isnt_proposed_twice(self, make: Make) -> None:
        from upgraderun_protocol.bundle import Bundle
        from upgraderun_protocol.records import from_bytes

        first = await make()
        second = await make(repository=first.repository)
        await first.go()
        await first.runs("a1")
        await first.freeze()
        await first.go()
        await second.go()
        attempt = (await second.view()).state.attempt
        assert attempt is not None
        data = await second.desk.store.get((await second.view()).uid, attempt.bundle)
        assert isinstance(data, bytes)
        assert from_bytes(Bundle, data).earlier.proposed == ("lib@1.1",)


class TestCancel:
    """Cancel works in every state and leaves nothing but the report."""

    @pytest.mark.parametrize("stage", ["new", "started", "asked"])
    async def test_before_the_push(self, make: Make, stage: str) -> None:
        play = await make()
        if stage != "new":
            await play.go()
        if stage == "asked":
            await play.runs("a1")
            await play.freeze()
            await play.go()
        await play.wish(cancel=True)
        await play.go()
        assert "Cancelled" == (await ended(play))[0]

    async def test_while_publishing_looks_first(self, make: Make) -> None:
        play = await make()
        for act in (play.go, play.freeze, play.go, play.approve, play.go):
            await act()
        await play.wish(cancel=True)
        await play.go()
        outcome, message = await ended(play)
        assert outcome == "Cancelled"
        assert "doesn't exist" in message
        assert "push/1 interrupted" in await play.entries()


async def test_a_suspended_run_rests_and_goes_on(make: Make) -> None:
    play = await make()
    await play.go()
    await play.wish(suspend=True)
    await play.go()
    assert [] == await play.listed(PODS)
    assert [] == await play.listed(LEASES)
    assert (await play.status())["phase"] == "Suspended"
    play.desk.writes.clear()
    await play.go()
    assert not play.desk.writes
    await play.wish(suspend=False)
    await play.go()
    assert "a2 done" in await play.entries()


class TestApproval:
    """Only the right answer to the right question counts."""

    async def asked(self, make: Make) -> Play:
        play = await make()
        for act in (play.go, play.freeze, play.go):
            await act()
        return play

    @pytest.mark.parametrize(
        "fields", [{"digest": "0" * 64}, {"approver": "rita"}], ids=["digest", "own"]
    )
    async def test_that_doesnt_count_is_told_once(self, make: Make, fields: Any) -> None:
        play = await self.asked(make)
        await play.approve(**fields)
        await play.go()
        await play.go()
        assert ["ApprovalIgnored"] == [
            one for one in await play.reasons() if one == "ApprovalIgnored"
        ]
        assert (await play.status())["phase"] == "AwaitingApproval"

    async def test_that_rejects_ends_the_run(self, make: Make) -> None:
        play = await self.asked(make)
        await play.approve(decision="Reject", comment="too risky")
        await play.go()
        outcome, message = await ended(play)
        assert outcome == "ApprovalRejected"
        assert "anna" in message

    async def test_that_is_taken_back_inside_the_pass_lets_nothing_go(self, make: Make) -> None:
        """I6: neither revoked nor expired when the push intent is written."""
        play = await self.asked(make)
        await play.approve()

        async def taken_back() -> None:
            uid = (await play.get(UPGRADE_APPROVALS, "yes"))["metadata"]["uid"]
            client = play.desk.client
            gone = await client.delete(UPGRADE_APPROVALS, play.namespace, "yes", uid=uid)
            assert isinstance(gone, Ok)

        # The token is read for the destination check, long after the approvals were counted.
        play.desk.client.meanwhile["secrets"] = taken_back
        await play.go()

        assert not play.desk.client.meanwhile
        assert "push/1 intent" not in await play.entries()
        assert (await play.status())["phase"] == "AwaitingApproval"

        await play.approve("again")
        await play.go()

        assert "push/1 intent" in await play.entries()

    async def test_under_a_policy_that_forbids_inside_the_pass_lets_nothing_go(
        self, make: Make
    ) -> None:
        play = await self.asked(make)
        await play.approve()

        async def forbidden() -> None:
            raw = await play.get(UPGRADE_POLICIES, "default")
            body = {**raw, "spec": {**raw["spec"], "repositories": ["https://other.example/*"]}}
            assert isinstance(await play.desk.client.put(UPGRADE_POLICIES, body), Ok)

        play.desk.client.meanwhile["secrets"] = forbidden
        await play.go()

        assert not play.desk.client.meanwhile
        assert "push/1 intent" not in await play.entries()
        assert (await play.status())["outcome"] == "PolicyRefused"

    async def test_that_never_comes_ends_the_run(self, make: Make) -> None:
        play = await self.asked(make)
        play.desk.clock.passed += 168 * 3600 + 1
        await play.go()
        assert "ApprovalExpired" == (await ended(play))[0]


async def test_a_deleted_run_is_let_go_and_told(make: Make) -> None:
    play = await make()
    for act in (play.go, play.freeze, play.go, play.approve, play.go):
        await act()
    assert (await play.get(UPGRADE_RUNS, play.name))["metadata"]["finalizers"]
    await play.desk.client.delete(UPGRADE_RUNS, play.namespace, play.name, uid=play.uid)
    await play.go()
    assert await play.get(UPGRADE_RUNS, play.name) is None
    assert "RunDeleted" in await play.reasons()
    assert (await play.go()).gone


async def test_a_strangers_volume_is_a_conflict_and_stays(make: Make) -> None:
    from upgraderun_protocol.slugs import child_name

    play = await make()
    name = child_name(play.name, (await play.view()).uid)
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    await play.desk.client.create(CLAIMS, play.namespace, claim)
    await play.go()
    status = await play.status()
    assert status["outcome"] == "ClusterConflict"
    assert status["conflict"]["kind"] == "ForeignClaim"
    assert "deletionTimestamp" not in (await play.get(CLAIMS, name))["metadata"]
    assert [("cluster_conflict", "foreign_claim")] == play.desk.ended
