"""How each answer of the API server ends an effect: applied, moved, unknown, refused."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar

import pytest

from support.scenes import LEADER, NOW, OPTIONS, UID, Scene, a_record, report
from upgraderun_operator.answers import (
    AlreadyExists,
    Conflict,
    Denied,
    NotFound,
    Ok,
    Stored,
    StoreDown,
    Unknown,
)
from upgraderun_operator.build.events import EventText
from upgraderun_operator.decide.decision import Need
from upgraderun_operator.decide.effects import (
    AddFinalizer,
    Announce,
    Append,
    CreateClaim,
    CreateRunLease,
    CreateRunnerPod,
    DeletePod,
    ReleaseRepositoryLease,
    RemoveFinalizer,
    TakeRepositoryLease,
    WriteReport,
)
from upgraderun_operator.decide.readings import ABSENT
from upgraderun_operator.decide.views import ChildView, Holder, RepositoryLeaseView
from upgraderun_operator.finalize.cleanup import Cleanup
from upgraderun_operator.journal.guards import GuardFailure, NoVerdict
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
from upgraderun_operator.model.report import content_of
from upgraderun_operator.observe.repository import FROZEN_ANNOTATION
from upgraderun_operator.observe.world import World
from upgraderun_operator.operating import bindings
from upgraderun_operator.perform.appending import Appending
from upgraderun_operator.perform.creating import Creating
from upgraderun_operator.perform.repository import Repository
from upgraderun_operator.perform.results import Applied, Exists, Moved, NoAnswer, Refusal, RunGone
from upgraderun_operator.perform.table import Performer
from upgraderun_operator.perform.telling import TRIES_MAX, Telling
from upgraderun_protocol.effects import (
    EFFECTS,
    FaultPoint,
    Position,
    Program,
    effects_of,
    no_fault,
)
from upgraderun_protocol.ends import MintPurpose
from upgraderun_protocol.entries import Draft, EntryState
from upgraderun_protocol.ids import EntryId, Epoch, PodUid
from upgraderun_protocol.redact import Redactor

SEEN = Scene().working().seen()
CHILD = {"metadata": {"name": "child", "uid": "u", "creationTimestamp": "2026-01-01T11:00:00Z"}}
POD = {**CHILD, "spec": {"serviceAccountName": "upgraderun-runner"}}


@dataclass
class Answering:
    """A server that gives one answer per verb and remembers what it was asked."""

    answers: dict[str, Any]
    asked: list[tuple[str, str, Any]] = field(default_factory=list)

    async def get(self, resource: Any, namespace: str | None, name: str) -> Any:
        self.asked.append(("get", resource.plural, name))
        return self.answers.get("get", Ok({}))

    async def list(self, resource: Any, namespace: str | None = None, **_: str) -> Any:
        raise NotImplementedError

    async def create(self, resource: Any, namespace: str | None, body: Any) -> Any:
        self.asked.append(("create", resource.plural, body))
        return self.answers.get(f"create {resource.plural}", self.answers.get("create", Ok(body)))

    async def put(self, resource: Any, body: Any) -> Any:
        self.asked.append(("put", resource.plural, body))
        return self.answers.get("put", Ok(body))

    async def delete(self, resource: Any, namespace: str | None, name: str, *, uid: str) -> Any:
        self.asked.append(("delete", resource.plural, uid))
        return self.answers.get("delete", Ok(None))


@dataclass
class Writing:
    """A writer and a store that give one answer."""

    answer: Any = None
    stored: Any = None
    changes: list[Change] = field(default_factory=list)
    blobs: list[bytes] = field(default_factory=list)

    async def guarded_write(self, run: Any, guards: Any, change: Any) -> Any:
        self.changes.append(change(SEEN.view) if callable(change) else change)
        return self.answer or Done(SEEN.view, (), wrote=True)

    async def mark_broken(self, broken: Broken) -> Unavailable | None:
        raise NotImplementedError

    async def get(self, run_uid: Any, sha256: Any) -> Any:
        raise NotImplementedError

    async def put_bytes(self, run_uid: Any, data: bytes) -> Any:
        self.blobs.append(data)
        return self.stored or Stored("1" * 64, len(data))


class StoppedClock:
    """Time of these tests."""

    def now(self) -> datetime:
        return NOW

    def monotonic(self) -> float:
        return 0.0

    def new_id(self) -> str:
        return "0" * 32


@dataclass
class Leading:
    epoch: Epoch | None = LEADER

    def raise_above(self, seen: Epoch) -> None:
        """No performer asks for it: a run of a later leader is left before anything is performed."""
        raise AssertionError(f"asked to get above {seen}")


@dataclass
class Passed:
    """Notes the points that are passed; says of one that its reply is lost."""

    lost: str = ""
    names: list[str] = field(default_factory=list)

    def __call__(self, effect: str, position: Position, /) -> bool:
        self.names.append(f"{effect}.{position}")
        return self.names[-1] == self.lost


def performer(outside: World) -> Performer:
    """The door that the operator uses."""
    return Performer(outside, bindings(outside, Telling(outside)))


def world(
    cluster: Answering | None = None,
    writing: Writing | None = None,
    points: FaultPoint | None = None,
) -> World:
    writing = writing or Writing()
    return World(
        cluster=cluster or Answering({}),
        runs=writing,  # type: ignore[arg-type]  # nothing here reads a run
        writer=writing,
        artifacts=writing,
        forge=writing,  # type: ignore[arg-type]  # nor a forge
        tokens=writing,  # type: ignore[arg-type]  # nor mints
        clock=StoppedClock(),
        leader=Leading(),
        redactor=Redactor(),
        options=lambda: OPTIONS,
        identity="operator-0",
        fault=points if points is not None else no_fault,
    )


UNKNOWN = Unknown("timeout", 3.0)
NO_ANSWER = NoAnswer("cluster", "timeout", 3.0)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Ok(CHILD), Applied()),
        (AlreadyExists("x"), Exists(Need.CLAIM)),
        (NotFound(), NoAnswer("cluster", "the namespace is gone or going")),
        (UNKNOWN, NO_ANSWER),
        (
            Denied(403, "quota"),
            Refusal(
                "StorageUnavailable",
                "the API server refused to make the workspace volume (403): quota; mend what it "
                "names, such as a quota, an admission policy or a right; it is tried again every "
                "five minutes",
            ),
        ),
    ],
)
async def test_creating_a_volume(answer: Any, expected: Any) -> None:
    creating = Creating(world(Answering({"create": answer})))
    assert expected == await creating.claim(replace(SEEN, claim=ABSENT), CreateClaim({}))


async def test_a_refusal_of_what_wasnt_looked_for_is_looked_into_first() -> None:
    """A quota that the run's own volume or Lease fills hides that it stands already."""
    creating = Creating(world(Answering({"create": Denied(403, "quota")})))
    assert Exists(Need.CLAIM) == await creating.claim(SEEN, CreateClaim({}))
    assert Exists(Need.LEASE) == await creating.run_lease(SEEN, CreateRunLease({}))
    looked = await creating.run_lease(replace(SEEN, lease=ABSENT), CreateRunLease({}))
    assert isinstance(looked, Refusal)


async def test_creating_the_run_lease() -> None:
    result = await Creating(world()).run_lease(SEEN, CreateRunLease(CHILD))
    assert isinstance(result, Applied)
    assert {Need.LEASE: ChildView("child", "u", None)} == dict(result.found)


class TestPod:
    """The account first, which has no rights; a refusal tells people."""

    async def test_makes_the_account_once(self) -> None:
        cluster = Answering({"get": NotFound()})
        creating = Creating(world(cluster))
        for _ in range(2):
            result = await creating.pod(SEEN, CreateRunnerPod(POD))
            assert isinstance(result, Applied)
            assert result.found[Need.POD].uid == "u"
        kinds = [kind for verb, kind, _ in cluster.asked if verb == "create"]
        assert kinds == ["serviceaccounts", "pods", "pods"]
        account = cluster.asked[1][2]
        assert account["automountServiceAccountToken"] is False

    @pytest.mark.parametrize("answer", [UNKNOWN, Denied(403, "no")])
    async def test_waits_for_an_account_that_cant_be_read(self, answer: Any) -> None:
        creating = Creating(world(Answering({"get": answer})))
        assert isinstance(await creating.pod(SEEN, CreateRunnerPod(POD)), NoAnswer)

    async def test_waits_for_an_account_that_cant_be_made(self) -> None:
        answers = {"get": NotFound(), "create serviceaccounts": UNKNOWN}
        creating = Creating(world(Answering(answers)))
        assert NO_ANSWER == await creating.pod(SEEN, CreateRunnerPod(POD))

    async def test_looks_for_the_account_again_after_a_refusal(self) -> None:
        cluster = Answering({"create pods": Denied(403, "no account")})
        creating = Creating(world(cluster))
        for _ in range(2):
            result = await creating.pod(SEEN, CreateRunnerPod(POD))
            assert isinstance(result, Refusal)
        assert [verb for verb, *_ in cluster.asked] == ["get", "create", "get", "create"]


class TestReport:
    """Created, or replaced at the version that was seen."""

    content = content_of(a_record(), None)

    async def test_is_created(self) -> None:
        cluster = Answering({})
        await Creating(world(cluster)).report(SEEN, WriteReport(self.content, None))
        assert cluster.asked[0][:2] == ("create", "upgradereports")

    @pytest.mark.parametrize(
        ("answer", "kind"),
        [
            (Ok({}), Applied),
            (Conflict("x"), Moved),
            (NotFound(), Moved),
            (Denied(422, "x"), NoAnswer),
            (UNKNOWN, NoAnswer),
        ],
    )
    async def test_is_replaced(self, answer: Any, kind: type[Any]) -> None:
        cluster = Answering({"put": answer})
        effect = WriteReport(self.content, report("ProposalPrepared"))
        assert isinstance(await Creating(world(cluster)).report(SEEN, effect), kind)
        metadata = cluster.asked[0][2]["metadata"]
        assert (metadata["uid"], metadata["resourceVersion"]) == ("r", "1")


class TestRepository:
    """Compare-and-set on what was seen; frozen targets stay on the Lease."""

    raw: ClassVar[dict[str, Any]] = {
        "metadata": {"name": "repo-1", "uid": "u", "resourceVersion": "9"},
        "spec": {"holderIdentity": "", "leaseTransitions": 4},
    }
    me = f"team/run/{UID}"

    @pytest.mark.parametrize(
        ("answer", "kind"),
        [
            (Ok({}), Applied),
            (AlreadyExists("x"), Moved),
            (UNKNOWN, NoAnswer),
            (Denied(403, "x"), NoAnswer),
            (NotFound(), NoAnswer),
        ],
    )
    async def test_is_made_by_the_first_run(self, answer: Any, kind: type[Any]) -> None:
        cluster = Answering({"create": answer})
        free = RepositoryLeaseView("repo-1", Holder.FREE)
        effect = TakeRepositoryLease("https://x/y/z.git", self.me, free)
        assert isinstance(await Repository(world(cluster)).take(SEEN, effect), kind)
        assert cluster.asked[0][2]["spec"]["holderIdentity"] == self.me

    async def test_is_taken_at_the_version_that_was_seen(self) -> None:
        cluster = Answering({})
        free = RepositoryLeaseView("repo-1", Holder.FREE, raw=self.raw, frozen={"a/b/c": "x@1"})
        effect = TakeRepositoryLease("u", self.me, free)
        result = await Repository(world(cluster)).take(SEEN, effect)
        assert isinstance(result, Applied)
        assert result.found[Need.REPOSITORY].holder is Holder.OURS
        assert result.found[Need.REPOSITORY].raw == cluster.asked[0][2]
        body = cluster.asked[0][2]
        assert body["metadata"]["resourceVersion"] == "9"
        assert body["spec"]["leaseTransitions"] == 5
        assert body["metadata"]["annotations"][FROZEN_ANNOTATION] == '{"a/b/c":"x@1"}'

    @pytest.mark.parametrize(
        ("frozen", "expected"),
        [("lib@1", '{"a/b/c":"x@1","ME":"lib@1"}'), (None, '{"a/b/c":"x@1"}')],
    )
    async def test_is_released(self, frozen: str | None, expected: str) -> None:
        cluster = Answering({})
        ours = RepositoryLeaseView(
            "repo-1", Holder.OURS, raw=self.raw, frozen={"a/b/c": "x@1", self.me: "old@0"}
        )
        effect = ReleaseRepositoryLease(self.me, frozen, ours)
        assert Applied() == await Repository(world(cluster)).release(SEEN, effect)
        body = cluster.asked[0][2]
        assert body["spec"]["holderIdentity"] == ""
        told = body["metadata"]["annotations"][FROZEN_ANNOTATION]
        assert told == expected.replace("ME", self.me)


class TestCleanup:
    """Deletions name the UID; the finalizer goes by compare-and-set."""

    @pytest.mark.parametrize(
        ("answer", "kind"),
        [
            (Ok(None), Applied),
            (NotFound(), Applied),
            (Conflict("x"), Moved),
            (Denied(403, "x"), NoAnswer),
            (UNKNOWN, NoAnswer),
        ],
    )
    async def test_deletes_by_uid(self, answer: Any, kind: type[Any]) -> None:
        cluster = Answering({"delete": answer})
        effect = DeletePod("p", PodUid("u"))
        assert isinstance(await Cleanup(world(cluster)).pod(SEEN, effect), kind)
        assert cluster.asked == [("delete", "pods", "u")]

    async def test_keeps_finalizers_of_others(self) -> None:
        cluster = Answering({})
        cleanup = Cleanup(world(cluster))
        raw = {"metadata": {"name": "run", "finalizers": ["a/b", "upgraderun.dev/world"]}}
        await cleanup.remove_finalizer(SEEN, RemoveFinalizer(raw))
        await cleanup.add_finalizer(SEEN, AddFinalizer({"metadata": {}}))
        removed, added = (body["metadata"]["finalizers"] for _, _, body in cluster.asked)
        assert (removed, added) == (["a/b"], ["upgraderun.dev/world"])


class TestTelling:
    """An Event is told once; a server that refuses it doesn't keep the run."""

    event = EventText("NoCandidate", "m", "outcome/no_candidate")

    @pytest.mark.parametrize("answer", [Ok({}), AlreadyExists("x"), Denied(403, "x"), NotFound()])
    async def test_is_remembered(self, answer: Any) -> None:
        telling = Telling(world(Answering({"create": answer})))
        assert Applied() == await telling.announce(SEEN, Announce(self.event))
        assert telling.told(UID) == {self.event.key}
        telling.forget(UID)
        assert telling.told(UID) == frozenset()

    async def test_is_tried_five_times(self) -> None:
        telling = Telling(world(Answering({"create": UNKNOWN})))
        results = [await telling.tell(SEEN.view.ref, self.event) for _ in range(TRIES_MAX)]
        assert results == [NO_ANSWER] * (TRIES_MAX - 1) + [Applied()]
        assert telling.told(UID) == {self.event.key}


def an_append(**fields: Any) -> Append:
    draft = Draft(
        EntryId("outcome"), "outcome", EntryState.DONE, {"outcome": "cancelled", "message": "m"}
    )
    return Append(Change(drafts=(draft,)), (NoVerdict(),), **fields)


class TestAppend:
    """Artifacts, then the write, then Events; texts are redacted."""

    async def test_stores_first_and_tells_last(self) -> None:
        points = Passed()
        cluster, writing = Answering({}), Writing()
        outside = world(cluster, writing, points)
        event = EventText("X", "m", "k")
        effect = an_append(blobs=(b"1",), events=(event,), name="outcome", records="runner_pod")
        assert Applied() == await performer(outside).perform(SEEN, effect)
        assert writing.blobs == [b"1"]
        assert points.names == [
            "outcome.before",
            "outcome.reply_lost",
            "outcome.applied",
            "outcome.recorded",
            "runner_pod.recorded",
        ]
        assert cluster.asked[0][1] == "events"

    async def test_waits_for_the_store(self) -> None:
        writing = Writing(stored=StoreDown("disk"))
        outside = world(writing=writing)
        result = await Appending(outside, Telling(outside)).append(SEEN, an_append(blobs=(b"1",)))
        assert isinstance(result, NoAnswer)
        assert result.where == "store"
        assert not writing.changes

    @pytest.mark.parametrize(
        ("answer", "kind"),
        [
            (GuardFailed(GuardFailure(NoVerdict(), "x"), SEEN.view), Moved),
            (Contended(), Moved),
            (Contradicted("x", SEEN.view), Moved),
            (EpochFell(Epoch(3), SEEN.view), Moved),
            (Full(300_000, SEEN.view), Refusal),
            (Gone(), RunGone),
            (Broken("x", too_new=False, raw={}), NoAnswer),
            (Unavailable("x"), NoAnswer),
        ],
    )
    async def test_says_why_nothing_stands(self, answer: Any, kind: type[Any]) -> None:
        outside = world(writing=Writing(answer=answer))
        result = await Appending(outside, Telling(outside)).append(SEEN, an_append())
        assert isinstance(result, kind)

    async def test_redacts_free_text(self) -> None:
        writing = Writing()
        outside = world(writing=writing)
        outside.redactor.register("canary-canary")
        draft = Draft(
            EntryId("outcome"),
            "outcome",
            EntryState.DONE,
            {"outcome": "cancelled", "message": "by canary-canary"},
        )
        effect = Append(Change(drafts=(draft,)), ())
        await Appending(outside, Telling(outside)).append(SEEN, effect)
        (change,) = writing.changes
        assert "canary" not in str(change.drafts)
        assert len(change.drafts[0].data["message"]) <= len("by canary-canary")

    async def test_is_dropped_when_the_wish_changed(self) -> None:
        writing = Writing()
        outside = world(writing=writing)
        scene = Scene().working()
        scene.metadata["generation"] = 2
        appending = Appending(outside, Telling(outside))
        await appending.append(scene.seen(), an_append(same_wish=True))
        await appending.append(scene.seen(), an_append())
        await appending.append(SEEN, an_append(same_wish=True))
        assert [len(change.drafts) for change in writing.changes] == [0, 1, 1]


class TestFaultPoints:
    """Each effect is reached through the one door, between its points (reliability.md §5)."""

    async def passed(self, cluster: Answering, effect: Any) -> list[str]:
        points = Passed()
        await performer(world(cluster, points=points)).perform(SEEN, effect)
        return points.names

    @pytest.mark.parametrize(
        ("effect", "name"), [(CreateClaim(CHILD), "pvc"), (CreateRunLease(CHILD), "run_lease")]
    )
    async def test_of_an_effect_without_an_entry(self, effect: Any, name: str) -> None:
        assert list(EFFECTS[name].points) == sorted(
            await self.passed(Answering({}), effect), key=EFFECTS[name].points.index
        )

    async def test_of_an_effect_whose_entry_comes_later(self) -> None:
        assert ["runner_pod.before", "runner_pod.reply_lost", "runner_pod.applied"] == (
            await self.passed(Answering({}), CreateRunnerPod(POD))
        )

    async def test_of_an_effect_that_failed(self) -> None:
        assert ["pvc.before"] == await self.passed(Answering({"create": UNKNOWN}), CreateClaim({}))

    async def test_of_an_effect_whose_reply_is_lost(self) -> None:
        cluster = Answering({})
        outside = world(cluster, points=Passed(lost="pvc.reply_lost"))

        result = await performer(outside).perform(SEEN, CreateClaim(CHILD))

        assert NoAnswer("cluster", "the reply was lost") == result
        assert 1 == len(cluster.asked)


def test_every_effect_has_one_binding_and_every_binding_a_row() -> None:
    from typing import get_args

    from upgraderun_operator.decide.effects import AppendName, Effect

    outside = world()
    bound = bindings(outside, Telling(outside))
    names = {binding.name for binding in bound.values()}
    minted = {f"{purpose.value}_token" for purpose in MintPurpose}
    assert set(get_args(Effect)) == set(bound)
    assert {row.name for row in effects_of(Program.OPERATOR)} == {
        *names,
        *get_args(AppendName),
        *minted,
    }
