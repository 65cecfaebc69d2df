"""The guarded write against a real API server (runner-protocol.md §1.3, DESIGN §6a)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from support.journal_story import BASE, TO_FROZEN, admit, draft, incarnation, outcome, pod
from support.replicas import Scene, make_run
from upgraderun_operator.adapters.runs import RunReader
from upgraderun_operator.adapters.writer import WRITE_TRIES, StatusWriter
from upgraderun_operator.answers import (
    Denied,
    KubeObject,
    Ok,
    PutAnswer,
    PutArtifactAnswer,
    StoreDown,
    Unknown,
)
from upgraderun_operator.journal.facts import Wait
from upgraderun_operator.journal.guards import (
    EntryAbsent,
    EpochIs,
    GuardFailure,
    LeaderEpochAtMost,
    NoVerdict,
    SeqIs,
)
from upgraderun_operator.journal.planning import Bounds
from upgraderun_operator.journal.run import RunView
from upgraderun_operator.journal.writes import (
    Broken,
    Change,
    Contended,
    Contradicted,
    Done,
    EpochFell,
    Full,
    Gone,
    GuardFailed,
    Unavailable,
)
from upgraderun_operator.resources import UPGRADE_RUNS, Resource
from upgraderun_protocol.bundle import RunRef
from upgraderun_protocol.entries import Draft, EntryState
from upgraderun_protocol.ids import EntryId, Epoch, RunUid

pytestmark = pytest.mark.api

Before = Callable[[int], Awaitable[None]]


@dataclass(slots=True)
class Line:
    """The real client behind a bad line: PUTs may be overtaken, or lose their request or answer."""

    scene: Scene
    lose_answer: frozenset[int] = frozenset()
    lose_request: frozenset[int] = frozenset()
    overtaken: frozenset[int] = frozenset()
    bodies: list[KubeObject] = field(default_factory=list)

    async def put_status(self, resource: Resource, body: KubeObject) -> PutAnswer:
        number = len(self.bodies)
        self.bodies.append(body)
        if number in self.overtaken:
            await self.scene.append(stranger(number))
        if number in self.lose_request:
            return Unknown("reset before it was sent")
        answer = await self.scene.replica.client.put_status(resource, body)
        return Unknown("reset after it was sent") if number in self.lose_answer else answer


def stranger(number: int) -> Draft:
    return draft(f"workspace/{number + 1}", "workspace", "intent", generation="1", nonce="n")


def second(scene: Scene, line: Line, bounds: Bounds | None = None) -> StatusWriter:
    """A writer of another process, with a cache of its own."""
    replica = scene.replica
    reader = RunReader(replica.client, replica.store)
    return StatusWriter(line, reader, replica.store, replica.clock, "second", bounds)


async def write(writer: StatusWriter, scene: Scene, *drafts: object, guards: object = ()) -> object:
    return await writer.guarded_write(scene.ref, guards, Change(drafts))  # type: ignore[arg-type]  # drafts and guards


class TestDone:
    """One PUT where nobody interferes; none where nothing changes."""

    async def test_a_write_carries_its_mark_and_its_projections(self, scene: Scene) -> None:
        done = await scene.write(admit())

        assert isinstance(done, Done)
        assert done.wrote
        status = (await scene.view()).raw["status"]
        assert status["write"]["by"] == "replica"
        assert len(status["write"]["id"]) == 32
        assert status["phase"] == "Queued"
        assert status["observedGeneration"] == 1

    async def test_a_second_write_needs_no_read(self, scene: Scene) -> None:
        await scene.append(admit())
        line = Line(scene)
        writer = second(scene, line)
        await write(writer, scene, pod("a1"))
        view = await scene.view()
        await write(writer, scene, pod("a1", "done"))

        assert len(line.bodies) == 2
        assert line.bodies[1]["metadata"]["resourceVersion"] == view.resource_version

    async def test_nothing_to_do_writes_nothing(self, scene: Scene) -> None:
        await scene.append(admit())
        version = (await scene.view()).resource_version

        done = await scene.write(admit())

        assert isinstance(done, Done)
        assert not done.wrote
        assert done.placed[0].replayed
        assert (await scene.view()).resource_version == version

    async def test_facts_change_through_the_same_door(self, scene: Scene) -> None:
        await scene.append(admit())
        wait = Wait("RepositoryBusy", "team/other is active", "2026-11-30T08:00:00Z")

        await scene.replica.writer.guarded_write(
            scene.ref, (), Change(leader_epoch=Epoch(4), wait=wait)
        )

        view = await scene.view()
        assert view.facts.leader_epoch == 4
        assert view.facts.wait == wait
        assert view.status["conditions"][0]["reason"] == "RepositoryBusy"

    async def test_a_change_may_be_computed_from_the_version_that_is_written(
        self, scene: Scene
    ) -> None:
        await scene.append(admit())

        def next_pod(view: RunView) -> Change:
            return Change((pod(f"a{len(view.state.attempts) + 1}"),))

        for _ in range(2):
            await scene.replica.writer.guarded_write(scene.ref, (), next_pod)

        assert [item.tag for item in (await scene.view()).state.attempts] == ["a1", "a2"]


class TestUnknown:
    """409 and lost answers are unknown: read, look for our own mark, decide again."""

    async def test_a_lost_answer_is_found_by_its_mark(self, scene: Scene) -> None:
        line = Line(scene, lose_answer=frozenset({0}))

        done = await write(
            second(scene, line), scene, admit(), guards=(EntryAbsent(EntryId("admit"), DONE),)
        )

        assert isinstance(done, Done)
        assert done.wrote
        assert not done.placed[0].replayed
        assert len(line.bodies) == 1
        assert (await scene.view()).state.seq == 1

    async def test_a_lost_request_is_computed_again(self, scene: Scene) -> None:
        line = Line(scene, lose_request=frozenset({0}))

        done = await write(second(scene, line), scene, admit())

        assert isinstance(done, Done)
        assert len(line.bodies) == 2
        assert (await scene.view()).state.seq == 1

    async def test_a_lost_answer_is_found_even_if_somebody_wrote_after_it(
        self, scene: Scene
    ) -> None:
        line = Line(scene, lose_answer=frozenset({0}))
        real = line.put_status

        async def then_overtaken(resource: Resource, body: KubeObject) -> PutAnswer:
            answer = await real(resource, body)
            await scene.append(pod("a1"))
            return answer

        line_then = Overtaking(then_overtaken)
        replica = scene.replica
        writer = StatusWriter(
            line_then, RunReader(replica.client, replica.store), replica.store, replica.clock, "b"
        )

        done = await write(writer, scene, admit(), guards=(SeqIs(0),))

        assert isinstance(done, Done)
        assert done.wrote
        assert [entry.id for entry in (await scene.view()).state.fold] == ["admit", "a1"]

    async def test_a_conflict_never_sends_the_same_body_again(self, scene: Scene) -> None:
        await scene.append(admit(), pod("a1"), pod("a1", "done"))
        line = Line(scene, overtaken=frozenset({0, 1}))

        done = await write(second(scene, line), scene, BASE)

        assert isinstance(done, Done)
        assert len(line.bodies) == 3
        seqs = [len(body["status"]["journal"]["entries"]) for body in line.bodies]
        versions = {body["metadata"]["resourceVersion"] for body in line.bodies}
        marks = {body["status"]["write"]["id"] for body in line.bodies}
        assert seqs == [4, 5, 6]
        assert len(versions) == len(marks) == 3

    async def test_guards_are_evaluated_again_on_what_was_read(self, scene: Scene) -> None:
        await scene.append(admit(), pod("a1"), pod("a1", "done"))
        line = Line(scene, overtaken=frozenset({0}))

        failed = await write(second(scene, line), scene, BASE, guards=(SeqIs(3),))

        assert isinstance(failed, GuardFailed)
        assert failed.failure == GuardFailure(SeqIs(3), "seq 4")
        assert len(line.bodies) == 1

    async def test_endless_contention_gives_up(self, scene: Scene) -> None:
        await scene.append(admit(), pod("a1"), pod("a1", "done"))
        line = Line(scene, overtaken=frozenset(range(10)))

        result = await write(second(scene, line), scene, BASE)

        assert isinstance(result, Contended)
        assert len(line.bodies) == WRITE_TRIES
        assert (await scene.view()).state.base is None

    async def test_a_silent_server_is_unavailable(self, scene: Scene) -> None:
        deaf = Deaf()
        reader = RunReader(deaf, scene.replica.store)
        writer = StatusWriter(deaf, reader, scene.replica.store, scene.replica.clock, "deaf")

        assert isinstance(await write(writer, scene, admit()), Unavailable)

    async def test_writers_of_one_process_don_t_contend(self, scene: Scene) -> None:
        await scene.append(admit(), pod("a1"), pod("a1", "done"))

        done = await asyncio.gather(*(scene.write(stranger(number)) for number in range(20)))

        assert all(isinstance(item, Done) for item in done)
        assert scene.replica.writer.counts.conflicts == 0
        assert (await scene.view()).state.seq == 23


@dataclass(slots=True)
class Overtaking:
    """A client whose PUT is the given function."""

    put: Callable[[Resource, KubeObject], Awaitable[PutAnswer]]

    async def put_status(self, resource: Resource, body: KubeObject) -> PutAnswer:
        return await self.put(resource, body)


class Deaf:
    """A server that answers nothing, or refuses for good."""

    def __init__(self, answer: Unknown | Denied | None = None) -> None:
        self._answer = answer or Unknown("no route")

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Unknown | Denied:
        return self._answer

    async def put_status(self, resource: Resource, body: KubeObject) -> Unknown | Denied:
        return self._answer


class TestRefused:
    """What isn't written, and why."""

    async def test_a_failed_guard_on_an_old_view_is_checked_on_a_new_one(
        self, scene: Scene
    ) -> None:
        await scene.append(admit(), pod("a1"), pod("a1", "done"))
        line = Line(scene)
        writer = second(scene, line)
        await write(writer, scene, stranger(0))
        await scene.append(incarnation("a1", 2), epoch=2)

        done = await write(writer, scene, stranger(1), guards=(EpochIs(Epoch(2)),))

        assert isinstance(done, Done)

    async def test_a_later_leader_fences(self, scene: Scene) -> None:
        await scene.append(admit())
        await scene.replica.writer.guarded_write(scene.ref, (), Change(leader_epoch=Epoch(5)))

        failed = await scene.replica.writer.guarded_write(
            scene.ref, (LeaderEpochAtMost(Epoch(4)),), Change((pod("a1"),))
        )

        assert isinstance(failed, GuardFailed)

    async def test_an_ended_run_takes_no_second_verdict(self, scene: Scene) -> None:
        await scene.append(admit())
        await scene.append(outcome("cancelled"))

        failed = await scene.replica.writer.guarded_write(
            scene.ref, (NoVerdict(),), Change((outcome("failed"),))
        )

        assert isinstance(failed, GuardFailed)
        assert isinstance(await scene.write(outcome("failed")), Contradicted)

    async def test_an_older_epoch_is_fenced(self, scene: Scene) -> None:
        await scene.append(admit(), pod("a1"), pod("a1", "done"))
        await scene.append(incarnation("a1", 3), epoch=3)

        assert isinstance(await scene.write(BASE, epoch=2), EpochFell)

    async def test_the_server_itself_refuses_what_falls(self, scene: Scene) -> None:
        """A second fence: the CRD refuses a falling seq, whoever writes (DESIGN §3)."""
        view = await scene.append(admit(), pod("a1"))
        journal = view.raw["status"]["journal"]
        head = {**journal["head"], "seq": 1}
        status = {**view.raw["status"], "journal": {**journal, "head": head}}

        answer = await scene.replica.client.put_status(UPGRADE_RUNS, {**view.raw, "status": status})

        assert isinstance(answer, Denied)
        assert answer.status == 422

    async def test_another_uid_under_the_name_is_gone(self, scene: Scene) -> None:
        await scene.append(admit())
        await scene.replica.client.delete(
            UPGRADE_RUNS, scene.ref.namespace, scene.ref.name, uid=scene.ref.uid
        )
        gone = await scene.write(pod("a1"))
        await make_run(scene.replica, scene.ref.namespace)
        other = await scene.write(pod("a1"))
        never = await scene.replica.writer.guarded_write(
            RunRef(scene.ref.namespace, "nobody", RunUid("x")), (), Change((admit(),))
        )

        assert isinstance(gone, Gone)
        assert isinstance(other, Gone)
        assert isinstance(never, Gone)

    async def test_a_refused_status_is_no_success(self, scene: Scene) -> None:
        reader = RunReader(scene.replica.client, scene.replica.store)
        denying = StatusWriter(
            Deaf(Denied(422, "odd")), reader, scene.replica.store, scene.replica.clock, "d"
        )
        blind = StatusWriter(
            Deaf(),
            RunReader(Deaf(Denied(403, "no")), scene.replica.store),
            scene.replica.store,
            scene.replica.clock,
            "d",
        )

        assert isinstance(await write(denying, scene, admit()), Unavailable)
        assert isinstance(await write(blind, scene, admit()), Unavailable)


class TestCompaction:
    """A segment stands in the store, read back, before its entries leave the status."""

    async def test_entries_move_to_segments_and_the_fold_stays(self, scene: Scene) -> None:
        await scene.append(admit(), pod("a1"), pod("a1", "done"))
        await scene.append(incarnation("a1", 1), epoch=1)
        small = second(scene, Line(scene), Bounds(soft=4096))
        for item in TO_FROZEN:
            assert isinstance(await write(small, scene, item), Done)

        fresh = await RunReader(scene.replica.client, scene.replica.store).read_ref(scene.ref)

        assert isinstance(fresh, RunView)
        assert small.counts.segments >= 2
        assert len(fresh.journal.compacted.segments) == small.counts.segments
        assert fresh.state.seq == 4 + len(TO_FROZEN)
        assert [entry.seq for entry in fresh.state.fold] == list(range(1, fresh.state.seq + 1))
        assert fresh.status["journal"]["bytes"] < 8192

    async def test_a_store_that_is_down_only_lets_the_status_grow(self, scene: Scene) -> None:
        await scene.append(admit(), pod("a1"), pod("a1", "done"))
        replica = scene.replica
        writer = StatusWriter(
            replica.client, replica.reader, Down(), replica.clock, "d", Bounds(soft=1000)
        )

        done = await write(writer, scene, BASE)

        assert isinstance(done, Done)
        assert not done.view.journal.compacted.segments

    async def test_a_full_status_waits_for_the_store(self, scene: Scene) -> None:
        await scene.append(admit(), pod("a1"), pod("a1", "done"))
        replica = scene.replica
        bounds = Bounds(soft=1000, hard=2000)
        down = StatusWriter(replica.client, replica.reader, Down(), replica.clock, "d", bounds)
        full = StatusWriter(
            replica.client,
            replica.reader,
            replica.store,
            replica.clock,
            "d",
            Bounds(soft=100_000, hard=2000),
        )

        assert isinstance(await write(down, scene, BASE), Unavailable)
        assert isinstance(await write(full, scene, BASE), Full)

    async def test_a_missing_segment_is_no_verdict(self, scene: Scene) -> None:
        await scene.append(admit(), pod("a1"), pod("a1", "done"))
        small = second(scene, Line(scene), Bounds(soft=1500))
        for item in TO_FROZEN[:8]:
            await write(small, scene, item)
        await scene.replica.store.delete(scene.ref.uid)

        found = await RunReader(scene.replica.client, scene.replica.store).read_ref(scene.ref)

        assert isinstance(found, Unavailable)
        assert "isn't there" in found.cause


class Down:
    """A store that doesn't answer."""

    async def put_bytes(self, run_uid: RunUid, data: bytes) -> PutArtifactAnswer:
        return StoreDown("no route")


class TestBroken:
    """A damaged journal is told once, kept as it is, and never written to (H23)."""

    async def damage(self, scene: Scene) -> Broken:
        view = await scene.append(admit(), pod("a1"))
        journal = view.raw["status"]["journal"]
        entries = [{**journal["entries"][0], "at": "2020-01-01T00:00:00Z"}, journal["entries"][1]]
        status = {**view.raw["status"], "journal": {**journal, "entries": entries}}
        written = await scene.replica.client.put_status(
            UPGRADE_RUNS, {**view.raw, "status": status}
        )
        assert isinstance(written, Ok), written
        found = await scene.replica.reader.read_ref(scene.ref)
        assert isinstance(found, Broken)
        return found

    async def test_it_is_told_and_counted_and_left_alone(self, scene: Scene) -> None:
        broken = await self.damage(scene)

        assert await scene.replica.writer.mark_broken(broken) is None
        again = await scene.replica.reader.read_ref(scene.ref)
        assert isinstance(again, Broken)
        version = again.raw["metadata"]["resourceVersion"]
        assert await scene.replica.writer.mark_broken(again) is None

        last = await scene.replica.reader.read_ref(scene.ref)
        assert isinstance(last, Broken)
        assert last.raw["metadata"]["resourceVersion"] == version
        assert last.raw["status"]["conflict"]["kind"] == "JournalBroken"
        assert last.raw["status"]["journal"] == broken.raw["status"]["journal"]

    async def test_nothing_is_appended_to_it(self, scene: Scene) -> None:
        await self.damage(scene)

        assert isinstance(await scene.write(pod("a1", "done")), Broken)

    async def test_telling_may_fail(self, scene: Scene) -> None:
        broken = await self.damage(scene)
        writer = StatusWriter(
            Deaf(), scene.replica.reader, scene.replica.store, scene.replica.clock, "d"
        )

        assert isinstance(await writer.mark_broken(broken), Unavailable)


DONE = EntryState.DONE
