"""Loss, strangers, restarts at every fault point, two leaders: the run goes on or stops with why."""

from collections.abc import Callable
from pathlib import Path

import pytest

from clusterlib.apiserver import ApiServer
from support.desk import Desk, Make, Play, open_desk
from upgraderun_operator.answers import Ok
from upgraderun_operator.journal.writes import Change
from upgraderun_operator.resources import PODS, SERVICE_ACCOUNTS, UPGRADE_RUNS
from upgraderun_protocol.effects import EFFECTS, Position
from upgraderun_protocol.ids import Epoch

pytestmark = pytest.mark.api


class Killed(BaseException):
    """What SIGKILL is to a process: nothing handles it."""


class TestLoss:
    """Two looks, the grace apart (runner-protocol.md §5)."""

    async def test_resumes_with_the_next_attempt(self, make: Make) -> None:
        play = await make()
        await play.go()
        await play.runs("a1")
        await play.vanishes("a1")
        play.desk.clock.stop()
        wake = await play.go()
        assert wake.after_seconds is not None
        assert 9 < wake.after_seconds <= 10
        assert (await play.status())["attempt"]["lossObservedAt"]
        play.desk.clock.passed += 9
        play.desk.writes.clear()
        await play.go()
        assert not play.desk.writes
        play.desk.clock.passed += 1
        await play.go()
        assert {"a1/end done", "a2 done"} <= set(await play.entries())
        assert "lossObservedAt" not in (await play.status())["attempt"]

    async def test_that_was_none_is_cleared(self, make: Make, desk: Desk) -> None:
        play = await make()
        await play.go()
        await play.runs("a1")
        change = Change(attempt_lost_at="2026-01-01T00:00:00Z")
        await desk.writer.guarded_write((await play.view()).ref, (), change)
        assert (await play.status())["attempt"]["lossObservedAt"]
        await play.go()
        assert "lossObservedAt" not in (await play.status())["attempt"]

    async def test_whose_stamp_was_cleared_meanwhile_is_none(self, make: Make) -> None:
        """I12: the second look counts only beside the very stamp of the first."""
        play = await make()
        await play.go()
        await play.runs("a1")
        await play.vanishes("a1")
        await play.go()
        first = (await play.view()).facts.attempt_lost_at
        play.desk.clock.passed += 11

        async def cleared() -> None:
            change = Change(attempt_lost_at=None)
            await play.desk.writer.guarded_write((await play.view()).ref, (), change)

        play.desk.client.meanwhile["pods"] = cleared
        await play.go()

        assert not play.desk.client.meanwhile
        assert "a1/end done" not in await play.entries()
        assert first != (await play.view()).facts.attempt_lost_at

        play.desk.clock.passed += 11
        await play.go()

        assert "a1/end done" in await play.entries()

    async def test_too_often_ends_the_run(self, make: Make) -> None:
        play = await make(limits={"consecutiveLostAttempts": 2})
        for tag in ("a1", "a2"):
            await play.go()
            await play.vanishes(tag)
            await play.go()
            play.desk.clock.passed += 11
            await play.go()
        status = await play.status()
        assert (status["outcome"], status["finished"]) == ("RunnerLost", True)

    async def test_keeps_the_old_pod_from_living_on(self, make: Make) -> None:
        play = await make()
        await play.go()
        old = await play.pod_of("a1")
        await play.exits("a1", 1)
        await play.go()
        play.desk.clock.passed += 11
        await play.go()
        names = [one["metadata"]["name"] for one in await play.listed(PODS)]
        assert old["metadata"]["name"] not in names
        assert len(names) == 1


async def test_a_strangers_pod_under_our_name_is_a_conflict_and_stays(make: Make) -> None:
    play = await make()
    await play.go()
    pod = await play.pod_of("a1")
    await play.vanishes("a1")
    stranger = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod["metadata"]["name"]},
        "spec": {
            "serviceAccountName": pod["spec"]["serviceAccountName"],
            "containers": [{"name": "x", "image": "x"}],
        },
    }
    made = await play.desk.client.create(PODS, play.namespace, stranger)
    assert isinstance(made, Ok)
    await play.go()
    play.desk.clock.passed += 11
    await play.go()
    status = await play.status()
    assert status["conflict"]["kind"] == "ForeignPod"
    left = await play.get(PODS, pod["metadata"]["name"])
    assert left["metadata"]["uid"] == made.value["metadata"]["uid"]


async def test_a_strangers_pod_under_a_name_that_was_never_recorded_stays(
    make: Make, cluster: ApiServer, tmp_path: Path
) -> None:
    """The attempt was planned and cancelled before its pod was made: nothing but the owner tells."""
    play = await make()

    def kill(effect: str, position: Position) -> None:
        if (effect, position) == ("runner_pod", Position.BEFORE):
            raise Killed

    async with open_desk(cluster, tmp_path / "store", fault=kill) as killed:
        with pytest.raises(Killed):
            await killed.reconcile(play.key)
    attempt = (await play.view()).state.attempt
    assert attempt is not None
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "stranger"}}
    await play.desk.client.create(SERVICE_ACCOUNTS, play.namespace, account)
    stranger = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": attempt.pod_name},
        "spec": {"serviceAccountName": "stranger", "containers": [{"name": "x", "image": "x"}]},
    }
    made = await play.desk.client.create(PODS, play.namespace, stranger)
    assert isinstance(made, Ok), made
    await play.wish(cancel=True)

    await play.go()

    status = await play.status()
    assert (status["outcome"], status["finished"]) == ("Cancelled", True)
    assert [made.value["metadata"]["uid"]] == [
        one["metadata"]["uid"] for one in await play.listed(PODS)
    ]


async def test_a_verdict_in_the_termination_message_needs_no_window(make: Make) -> None:
    from upgraderun_protocol.ids import PodUid
    from upgraderun_protocol.messages import Verdict
    from upgraderun_protocol.records import to_bytes

    play = await make()
    await play.go()
    pod, view = await play.pod_of("a1"), await play.view()
    verdict = Verdict(
        version=1,
        verdict_id="v1",
        run_uid=view.uid,
        writer="a1",
        pod_uid=PodUid(pod["metadata"]["uid"]),
        outcome="no_candidate",
        message="nothing newer",
        exit_code=4,
    )
    await play.exits("a1", 4, to_bytes(verdict).decode())
    await play.go()
    assert (await play.status())["outcome"] == "NoCandidate"


class TestLeaders:
    """A leader that was replaced can't write; the next one takes runs over first."""

    async def test_the_older_one_is_fenced(
        self, make: Make, cluster: ApiServer, tmp_path: Path
    ) -> None:
        play = await make()
        await play.go()
        old = play.desk
        async with open_desk(cluster, tmp_path / "store", epoch=2, clock=old.clock) as new:
            play.desk = new
            await play.vanishes("a1")
            await play.go()
            assert (await play.view()).facts.leader_epoch == 2
            play.desk = old
            entries = await play.entries()
            old.clock.passed += 11
            await play.go()
            assert entries == await play.entries()

    async def test_a_leader_lease_made_anew_gets_above_what_runs_remember(
        self, make: Make, cluster: ApiServer, tmp_path: Path
    ) -> None:
        """DESIGN §7: a re-created Lease counts from 1, while the run remembers more."""
        play = await make()
        await play.go()
        async with open_desk(cluster, tmp_path / "store", epoch=5, clock=play.desk.clock) as fifth:
            play.desk = fifth
            await play.vanishes("a1")
            await play.go()
        async with open_desk(cluster, tmp_path / "store", epoch=1, clock=play.desk.clock) as anew:
            play.desk = anew
            await play.go()
            assert not anew.writes
            assert anew.leader.raised == [5]
            anew.leader.epoch = Epoch(6)
            anew.clock.passed += 11
            await play.go()
            assert (await play.view()).facts.leader_epoch == 6

    async def test_who_leads_no_more_does_nothing(self, make: Make) -> None:
        play = await make()
        play.desk.leader.epoch = None
        await play.go()
        assert not play.desk.writes

    async def test_the_next_one_raises_its_epoch_before_an_effect(
        self, make: Make, cluster: ApiServer, tmp_path: Path
    ) -> None:
        play = await make()
        for act in (play.go, play.freeze):
            await act()
        async with open_desk(cluster, tmp_path / "store", epoch=5) as new:
            play.desk = new
            await play.go()
            assert (await play.view()).facts.leader_epoch == 5


async def test_a_broken_journal_is_told_and_nothing_else(make: Make) -> None:
    play = await make()
    await play.go()
    raw = await play.get(UPGRADE_RUNS, play.name)
    journal = raw["status"]["journal"]
    broken = {
        **journal,
        "entries": [
            {**journal["entries"][0], "at": "2026-01-01T00:00:00Z"},
            *journal["entries"][1:],
        ],
    }
    body = {**raw, "status": {**raw["status"], "journal": broken}}
    assert isinstance(await play.desk.client.put_status(UPGRADE_RUNS, body), Ok)
    await play.go()
    raw = await play.get(UPGRADE_RUNS, play.name)
    assert raw["status"]["conflict"]["kind"] == "JournalBroken"
    play.desk.writes.clear()
    await play.go()
    assert not play.desk.writes


async def live(play: Play, restart: Callable[[], None]) -> None:
    """The whole life; whoever is killed is started again and goes on by the same rules."""

    async def go() -> None:
        """What a worker does: it comes again after a kill, and after an answer that was lost."""
        try:
            await play.go()
        except Killed:
            restart()
        await play.go()

    await go()
    await play.runs("a1")
    await go()
    await play.freeze()
    await go()
    await play.approve()
    await go()
    await play.runs("d1")
    await go()
    await play.publish()
    await go()


IN_EACH_RUN = tuple(
    point
    for name in (
        "repository_lease",
        "pvc",
        "runner_pod",
        "publisher_pod",
        "request",
        "grant",
        "outcome",
        "cleanup_pod",
        "lease_release",
    )
    for point in EFFECTS[name].points
)
"""Points that are tried here in each run of the tests; `make crash-matrix` tries all, on processes."""


@pytest.mark.parametrize("name", IN_EACH_RUN)
async def test_a_kill_at_any_point_changes_nothing_of_the_end(
    make: Make, cluster: ApiServer, tmp_path: Path, name: str
) -> None:
    """Struck once at each point (upgrade-run.md §14); the run ends the same."""
    reached: list[str] = []

    def strike(effect: str, position: Position) -> bool:
        if f"{effect}.{position}" != name or reached:
            return False
        reached.append(name)
        if position is Position.REPLY_LOST:
            return True
        raise Killed(name)

    play = await make()
    store = tmp_path / "store"
    async with (
        open_desk(cluster, store, fault=strike) as first,
        open_desk(cluster, store, epoch=2) as second,
    ):
        play.desk = first

        def restart() -> None:
            play.desk = second

        await live(play, restart)
        entries = await play.entries()
        made = first.writes["create pods"] + second.writes["create pods"]
        left = await play.left()
        status = await play.status()
    if name.partition(".")[0] != "outcome":
        assert reached == [name]
    assert len(entries) == len(set(entries)) == 20
    assert (status["outcome"], status["finished"]) == ("Published", True)
    assert made - len([name for name in reached if name.endswith("pod.applied")]) <= 2
    assert left == [f"UpgradeReport {play.name}"]


@pytest.mark.parametrize("position", ["before", "applied", "recorded"])
async def test_a_kill_around_the_leaders_own_outcome(
    make: Make, cluster: ApiServer, tmp_path: Path, position: str
) -> None:
    """The leader claims ends of its own; killed around the claim, the end is the same."""
    reached: list[str] = []

    def strike(effect: str, passed: Position) -> None:
        if (effect, passed) == ("outcome", position) and not reached:
            reached.append(f"{effect}.{passed}")
            raise Killed(effect)

    play = await make(policy={"repositories": ["https://git.example/other/*"]})
    async with open_desk(cluster, tmp_path / "store", fault=strike) as first:
        play.desk = first
        with pytest.raises(Killed):
            await play.go()
    async with open_desk(cluster, tmp_path / "store", epoch=2) as second:
        play.desk = second
        await play.go()
        assert ["outcome done", "finalized done"] == await play.entries()
    assert reached == [f"outcome.{position}"]
