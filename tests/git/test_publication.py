"""`ensure_branch` and `ensure_pull_request` against a real git host and a forge (§12, §13.5)."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from support.fixtures.faults import Fault, primary_rate_limit, secondary_rate_limit
from support.fixtures.launch import Host
from upgraderun_protocol.effects import (
    EFFECTS,
    FaultPoint,
    Position,
    Program,
    no_fault,
    points_of,
)
from upgraderun_protocol.entries import Draft, EntryState, entry_from_draft
from upgraderun_protocol.ids import CommitId, EntryId, Epoch, RunUid
from upgraderun_protocol.outcomes import ConflictKind
from upgraderun_protocol.slugs import marker
from upgraderun_runner.forge import limits
from upgraderun_runner.forge.delivery import (
    BranchEnsured,
    Destination,
    EffectName,
    OutcomeState,
    PublicationDeclined,
    PublicationDenied,
    PublicationUnknown,
    PullRequestEnsured,
    Remote,
    Subject,
)
from upgraderun_runner.forge.github import GitHub
from upgraderun_runner.forge.http import ForgeHttp, WritePacer
from upgraderun_runner.forge.publication import Publication
from upgraderun_runner.forge.tables import EffectJournal, PublicationConflict
from upgraderun_runner.workspace.clone import fetch_branch, init_repository
from upgraderun_runner.workspace.git import Credential, Git, Identity, Stamp

RUN_UID = RunUid("3f1c9a2b-0000-4000-8000-000000000001")
NAME = "acme/shop"
BRANCH = "upgraderun/httpx-0.28.1-3f1c9a2b"
REF = f"refs/heads/{BRANCH}"
DIGEST = "d" * 64
BODY = "Body.\n\n" + marker(RUN_UID, DIGEST, "python", "httpx", "0.28.1")


OWN = ("push", "pull_request", "decoration")
"""Effects of the publisher alone, in their order."""


class KilledError(Exception):
    """Stands for SIGKILL."""


@dataclass(slots=True)
class Journal:
    """What survives a kill: entries (id, state, data); with the semantics of the real one.

    `deferred` doesn't survive it. `appends` are the entries that were written together.
    """

    entries: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    deferred: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    appends: list[str] = field(default_factory=list)
    waiting: list[Callable[[], None]] = field(default_factory=list)

    def _ids(self, effect: str) -> dict[str, str]:
        known = (*self.entries, *self.deferred)
        return {i: state for i, state, _ in known if i.startswith(f"{effect}/")}

    def state(self, effect: EffectName) -> EffectJournal:
        states = self._ids(effect).values()
        if "done" in states:
            return EffectJournal.DONE
        return EffectJournal.OPEN if "intent" in states else EffectJournal.NOT_OPEN

    def pull_request_number(self) -> int | None:
        numbers = [d["number"] for i, s, d in self.entries if i.startswith("pr/") and s == "done"]
        return int(numbers[0]) if numbers else None

    async def intent(self, effect: EffectName, data: Mapping[str, str]) -> None:
        assert EffectJournal.NOT_OPEN is self.state(effect)
        self._append((f"{effect}/{len(self._ids(effect)) + 1}", "intent", dict(data)))

    async def outcome(
        self, effect: EffectName, state: OutcomeState, data: Mapping[str, str]
    ) -> None:
        self._append((self._closing(effect), state, dict(data)))

    def defer_done(
        self, effect: EffectName, data: Mapping[str, str], recorded: Callable[[], None]
    ) -> None:
        self.deferred.append((self._closing(effect), "done", dict(data)))
        self.waiting.append(recorded)

    async def flush(self) -> None:
        if self.deferred:
            self._append()

    def killed(self) -> None:
        self.deferred, self.waiting = [], []

    def _closing(self, effect: EffectName) -> str:
        open_ids = [i for i, s in self._ids(effect).items() if s == "intent"]
        return open_ids[0] if open_ids else f"{effect}/{len(self._ids(effect)) + 1}"

    def _append(self, *entries: tuple[str, str, dict[str, str]]) -> None:
        together, self.deferred = (*self.deferred, *entries), []
        self.entries.extend(together)
        self.appends.append(" + ".join(f"{name} {state}" for name, state, _ in together))
        waiting, self.waiting = self.waiting, []
        for recorded in waiting:
            recorded()

    def brief(self) -> list[str]:
        return [f"{name} {state}" for name, state, _ in self.entries]


class Time:
    """A clock that only sleeping moves; the host's clock moves along."""

    def __init__(self, host: Host) -> None:
        self.now = 1000.0
        self.slept: list[float] = []
        self._host = host

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        self._host.control.advance_clock(seconds)


@dataclass(slots=True)
class Bench:
    """One delivery that can be killed and begun again with the same journal."""

    host: Host
    git: Git
    credential: Credential
    commit: CommitId
    base: CommitId
    time: Time
    clients: list[ForgeHttp]
    journal: Journal = field(default_factory=Journal)
    labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    passed: list[tuple[str, str]] = field(default_factory=list)
    kill_at: tuple[str, str] | None = None
    meanwhile: FaultPoint = no_fault

    def fault(self, effect: str, position: Position) -> bool:
        self.meanwhile(effect, position)
        self.passed.append((effect, position))
        if (effect, position) != self.kill_at:
            return False
        if position is Position.REPLY_LOST:
            return True
        self.journal.killed()
        raise KilledError

    def publication(self, token: str | None = None) -> Publication:
        pacer = WritePacer(self.time.monotonic, self.time.sleep)
        credential = self.credential if token is None else replace(self.credential, secret=token)
        client = ForgeHttp(self.host.api_url, credential.secret, pacer=pacer)
        self.clients.append(client)
        return Publication(
            Destination(
                self.host.repository_url(NAME), f"{self.host.url}/{NAME}", BRANCH, "main",
                draft=True, labels=self.labels, reviewers=self.reviewers,
            ),
            Subject(self.commit, "Upgrade httpx from 0.27.2 to 0.28.1", BODY, RUN_UID, DIGEST),
            Remote(GitHub(client, NAME), self.git, credential, pacer, self.time.sleep),
            self.journal,
            self.fault,
        )  # fmt: skip

    async def publish(self) -> Any:
        """What the publisher role does in one pass."""
        publication = self.publication()
        branch = await publication.ensure_branch()
        if not isinstance(branch, BranchEnsured):
            return branch
        return await publication.ensure_pull_request()

    def creations(self) -> tuple[int, int]:
        """Create-pushes of our branch in the git server's log, pull requests in the forge's."""
        updates = [u for u in self.host.control.ref_updates(NAME) if u["ref"] == REF]
        return len(updates), len(self.host.control.pulls(NAME))

    def assert_published(self) -> None:
        assert (1, 1) == self.creations()
        assert self.commit == self.host.control.refs(NAME)[REF]
        (pull,) = self.host.control.pulls(NAME)
        assert (self.commit, BRANCH, "main", BODY) == (
            pull["head_sha"], pull["head"], pull["base"], pull["body"]
        )  # fmt: skip


@pytest.fixture
async def bench(host: Host, remote: Any, fresh_git: Any, push_credential: Credential) -> Any:
    base = remote.commit(remote.tree({"a": "1"}))
    git = fresh_git("publisher")
    await init_repository(git)
    await fetch_branch(git, host.repository_url(NAME), "main", push_credential, whole=False)
    made = await git.check(
        "commit-tree", await _tree(git), "-p", base, "-m", "Upgrade", stamp=_stamp()
    )
    clients: list[ForgeHttp] = []
    commit = CommitId(made.decode().strip())
    host.control.forget_requests()
    yield Bench(host, git, push_credential, commit, base, Time(host), clients)
    for client in clients:
        await client.close()


def _stamp() -> Any:
    return Stamp(Identity("UpgradeRun", "bot@example.com"), 1_780_000_000)


async def _tree(git: Git) -> str:
    blob = (await git.check("hash-object", "-w", "--stdin", stdin=b"2")).decode().strip()
    out = await git.check("mktree", stdin=f"100644 blob {blob}\ta\n".encode())
    return out.decode().strip()


def warnings_of(found: Any) -> tuple[str, ...]:
    assert isinstance(found, PullRequestEnsured), found
    return found.warnings


class TestUndisturbed:
    async def test_one_branch_one_pull_request_and_two_pairs_of_entries(self, bench: Bench) -> None:
        bench.host.control.put_repository(NAME, collaborators=["ann"])
        bench.labels, bench.reviewers = ("dependencies",), ("ann",)

        found = await bench.publish()

        url = f"{bench.host.url}/{NAME}/pull/1"
        assert PullRequestEnsured(1, url, False, ()) == found
        bench.assert_published()
        assert ["push/1 intent", "push/1 done", "pr/1 intent", "pr/1 done"] == bench.journal.brief()
        assert ["push/1 intent", "push/1 done + pr/1 intent", "pr/1 done"] == bench.journal.appends
        assert {"commit": bench.commit} == bench.journal.entries[1][2]
        assert {
            "number": "1", "state": "open", "commit": bench.commit, "url": url,
        } == bench.journal.entries[3][2]  # fmt: skip
        (pull,) = bench.host.control.pulls(NAME)
        assert (["dependencies"], ["ann"], True) == (
            pull["labels"], pull["reviewers"], pull["draft"]
        )  # fmt: skip
        assert set(points_of(Program.PUBLISHER)) & {
            f"{effect}.{position}" for effect, position in bench.passed
        } == {point for point in points_of(Program.PUBLISHER) if point.startswith(OWN)}

    async def test_writes_are_a_second_apart(self, bench: Bench) -> None:
        bench.labels = ("x",)

        await bench.publish()

        assert [1.0, 1.0] == bench.time.slept

    async def test_second_call_writes_nothing(self, bench: Bench) -> None:
        first = await bench.publish()
        before = (bench.journal.brief(), bench.creations(), bench.host.control.pulls(NAME))

        second = await bench.publish()

        assert replace(first, found=True) == second
        assert before == (
            bench.journal.brief(), bench.creations(), bench.host.control.pulls(NAME)
        )  # fmt: skip

    async def test_nothing_but_our_branch_moves(self, bench: Bench) -> None:
        before = bench.host.control.refs(NAME)

        await bench.publish()

        assert {**before, REF: bench.commit} == bench.host.control.refs(NAME)


class TestKilled:
    """Each fault point: one branch, one pull request, the same commit (§14)."""

    @pytest.mark.parametrize(("effect", "warned"), [(OWN[0], 0), (OWN[1], 0), (OWN[2], 1)])
    async def test_a_lost_reply_is_settled_by_looking(
        self, bench: Bench, effect: str, warned: int
    ) -> None:
        bench.labels = ("dependencies",)
        bench.kill_at = (effect, Position.REPLY_LOST)

        found = await bench.publish()

        assert warned == len(warnings_of(found))
        assert bench.kill_at in bench.passed
        bench.assert_published()
        assert ["push/1 intent", "push/1 done", "pr/1 intent", "pr/1 done"] == bench.journal.brief()

    @pytest.mark.parametrize(
        ("effect", "position"),
        [
            (effect, position)
            for effect in OWN
            for position in EFFECTS[effect].positions
            if position is not Position.REPLY_LOST
        ],
    )
    async def test_at_each_point_the_next_publisher_finishes(
        self, bench: Bench, effect: str, position: str
    ) -> None:
        bench.labels = ("dependencies",)
        bench.kill_at = (effect, position)
        with pytest.raises(KilledError):
            await bench.publish()
        assert bench.kill_at == bench.passed[-1]
        bench.kill_at = None

        found = await bench.publish()

        assert () == warnings_of(found)
        bench.assert_published()
        assert ["push/1 intent", "push/1 done", "pr/1 intent", "pr/1 done"] == bench.journal.brief()
        assert ["dependencies"] == bench.host.control.pulls(NAME)[0]["labels"]

    @pytest.mark.parametrize(
        ("position", "last"),
        [("applied", "push/1 intent"), ("recorded", "push/1 done + pr/1 intent")],
    )
    async def test_between_push_and_create_both_entries_stand_or_none(
        self, bench: Bench, position: str, last: str
    ) -> None:
        bench.kill_at = ("push", position)
        with pytest.raises(KilledError):
            await bench.publish()

        assert last == bench.journal.appends[-1]
        assert (1, 0) == bench.creations()

    async def test_what_was_found_is_recorded_as_found(self, bench: Bench) -> None:
        for effect in ("push", "pull_request"):
            bench.kill_at = (effect, "applied")
            with pytest.raises(KilledError):
                await bench.publish()
        bench.kill_at = None

        await bench.publish()

        assert ["true", "true"] == [
            data.get("found") for _, state, data in bench.journal.entries if state == "done"
        ]


class TestLostAnswers:
    async def test_answer_of_the_push_is_lost(self, bench: Bench) -> None:
        bench.host.control.add_fault(
            Fault("drop_after", path="git-receive-pack$", method="POST", times=1)
        )

        assert isinstance(await bench.publish(), PullRequestEnsured)
        bench.assert_published()

    async def test_answer_of_the_create_is_lost(self, bench: Bench) -> None:
        bench.host.control.add_fault(Fault("drop_after", path="/pulls$", method="POST", times=1))

        found = await bench.publish()

        assert isinstance(found, PullRequestEnsured)
        bench.assert_published()

    async def test_create_fails_with_502_after_effect(self, bench: Bench) -> None:
        bench.host.control.add_fault(
            Fault("status_after", path="/pulls$", method="POST", status=502, times=1)
        )

        assert isinstance(await bench.publish(), PullRequestEnsured)
        bench.assert_published()

    async def test_lost_answer_and_lists_that_lag_30_seconds(self, bench: Bench) -> None:
        bench.host.control.set_lag(NAME, list_seconds=30)
        bench.host.control.add_fault(Fault("drop_after", path="/pulls$", method="POST", times=1))

        assert isinstance(await bench.publish(), PullRequestEnsured)
        bench.assert_published()
        assert [2, 10, 30] == bench.time.slept[-3:]

    async def test_create_without_effect_is_unknown_then_created_under_the_same_intent(
        self, bench: Bench
    ) -> None:
        bench.host.control.add_fault(
            Fault("status", path="/pulls$", method="POST", status=500, times=1)
        )

        first = await bench.publish()

        assert isinstance(first, PublicationUnknown)
        assert [2, 10, 30, 180] == bench.time.slept[-4:]
        assert ["push/1 intent", "push/1 done", "pr/1 intent"] == bench.journal.brief()
        assert isinstance(await bench.publish(), PullRequestEnsured)
        bench.assert_published()
        assert "pr/1 done" == bench.journal.brief()[-1]

    async def test_422_of_a_lost_race_is_looked_up(self, bench: Bench) -> None:
        """Somebody (we, before a kill) was first, and the first list didn't show it yet."""
        bench.kill_at = ("pull_request", "applied")
        bench.host.control.set_lag(NAME, list_reads=1)
        with pytest.raises(KilledError):
            await bench.publish()
        bench.kill_at = None

        found = await bench.publish()

        assert isinstance(found, PullRequestEnsured)
        bench.assert_published()
        creates = [
            r for r in bench.host.control.requests() if r["method"] == "POST" and "/pulls" in str(r)
        ]
        assert 2 == len(creates)


class TestUnreachable:
    """5xx, limits and closed ports are waits, never verdicts; nothing is journaled but the intent."""

    @pytest.mark.parametrize("status", [500, 502, 503, 504])
    async def test_unreadable_branch_stops_the_pass(self, bench: Bench, status: int) -> None:
        bench.host.control.add_fault(Fault("status", path="info/refs", status=status))

        assert isinstance(await bench.publish(), PublicationUnknown)
        assert [] == bench.journal.brief()

    async def test_push_without_effect_is_unknown_and_keeps_its_intent(self, bench: Bench) -> None:
        bench.host.control.add_fault(
            Fault("status", path="git-receive-pack$", method="POST", status=503)
        )

        assert isinstance(await bench.publish(), PublicationUnknown)
        assert ["push/1 intent"] == bench.journal.brief()

        bench.host.control.clear_faults()
        assert isinstance(await bench.publish(), PullRequestEnsured)
        assert "push/1 done" == bench.journal.brief()[1]
        bench.assert_published()

    async def test_secondary_limit_is_obeyed(self, bench: Bench) -> None:
        bench.host.control.add_fault(secondary_rate_limit(77, path="/pulls"))

        found = await bench.publish()

        assert isinstance(found, PublicationUnknown)
        assert 77 == found.after_seconds
        assert isinstance(await bench.publish(), PullRequestEnsured)

    @pytest.mark.parametrize(
        ("status", "headers", "body", "after"),
        [
            (429, {}, "{}", 60),
            (429, {"Retry-After": "5"}, "{}", 5),
            (429, {"Retry-After": "999999"}, "{}", 3600),
            (403, {"X-RateLimit-Remaining": "0"}, "{}", 60),
            (403, {"Retry-After": "9"}, "{}", 9),
            (403, {}, '{"documentation_url": "https://docs.example/rate-limits"}', 60),
            (503, {"Retry-After": "7"}, "{}", 7),
            (503, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, "{}", None),
        ],
    )
    async def test_waits_are_read_from_the_answer(
        self, bench: Bench, status: int, headers: dict[str, str], body: str, after: int | None
    ) -> None:
        bench.host.control.add_fault(
            Fault("status", path="/pulls", method="GET", status=status, headers=headers, body=body)
        )

        found = await bench.publish()

        assert isinstance(found, PublicationUnknown)
        assert after == found.after_seconds

    async def test_unreadable_pull_requests_leave_the_branch_recorded(self, bench: Bench) -> None:
        """The wait may be long; and no pull request is intended before one was looked for."""
        bench.host.control.add_fault(Fault("status", path="/pulls", method="GET", status=500))

        assert isinstance(await bench.publish(), PublicationUnknown)
        assert ["push/1 intent", "push/1 done"] == bench.journal.appends

        bench.host.control.clear_faults()
        assert isinstance(await bench.publish(), PullRequestEnsured)
        assert ["pr/1 intent", "pr/1 done"] == bench.journal.appends[2:]
        bench.assert_published()

    async def test_garbage_is_no_answer(self, bench: Bench) -> None:
        bench.host.control.add_fault(Fault("garbage", path="/pulls", method="GET"))

        assert isinstance(await bench.publish(), PublicationUnknown)

    async def test_redirect_is_not_followed(self, bench: Bench) -> None:
        """H22: the token stays with the policy's host."""
        headers = {"Location": f"{bench.host.api_url}/repos/evil/elsewhere"}
        bench.host.control.add_fault(
            Fault("status", path="/pulls", method="GET", status=301, headers=headers)
        )

        found = await bench.publish()

        assert isinstance(found, PublicationDenied)
        assert "was renamed or moved" in found.text
        assert not [r for r in bench.host.control.requests() if "elsewhere" in str(r)]

    async def test_primary_limit_ends_at_its_reset(self, bench: Bench) -> None:
        """https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit."""
        bench.host.control.add_fault(primary_rate_limit(int(time.time()) + 240, path="/pulls"))

        found = await bench.publish()

        assert isinstance(found, PublicationUnknown)
        assert found.after_seconds is not None
        assert 235 <= found.after_seconds <= 242


class TestDenied:
    """A definite no: the intent is `failed`, a person must act; a later try has a new id."""

    async def test_a_rule_refuses_the_push_in_its_own_words(self, bench: Bench) -> None:
        bench.host.control.set_rules(NAME, {"type": "creation", "glob": "upgraderun/*"})

        found = await bench.publish()

        assert isinstance(found, PublicationDenied)
        assert found.text.startswith("GH013 ")
        assert "Cannot create ref due to creations being restricted" in found.text
        failed = bench.journal.entries[-1][2]
        assert failed["message"].startswith("GH013 Cannot create ref")

    async def test_hook_refuses_the_push(self, bench: Bench) -> None:
        bench.host.control.refuse_pushes(NAME, "refs/heads/upgraderun/*", "house rule 7")

        found = await bench.publish()

        assert isinstance(found, PublicationDenied)
        assert "house rule 7" in found.text
        assert ["push/1 intent", "push/1 failed"] == bench.journal.brief()

        bench.host.control.accept_pushes(NAME)
        assert isinstance(await bench.publish(), PullRequestEnsured)
        assert ["push/2 intent", "push/2 done"] == bench.journal.brief()[2:4]
        bench.assert_published()

    async def test_token_without_write_right(self, bench: Bench) -> None:
        bench.host.control.add_token("read-only-1", "upgraderun", NAME, contents="read")

        found = await bench.publication("read-only-1").ensure_branch()

        assert isinstance(found, PublicationDenied)
        assert ["push/1 intent", "push/1 failed"] == bench.journal.brief()
        assert (0, 0) == bench.creations()

    async def test_token_without_pull_request_right(self, bench: Bench) -> None:
        bench.host.control.add_token(
            "no-pr-1", "upgraderun", NAME, contents="write", pull_requests="read"
        )
        publication = bench.publication("no-pr-1")
        assert isinstance(await publication.ensure_branch(), BranchEnsured)

        found = await publication.ensure_pull_request()

        assert isinstance(found, PublicationDenied)
        assert ["pr/1 intent", "pr/1 failed"] == bench.journal.brief()[2:]
        assert {"status": "403"}.items() <= bench.journal.entries[-1][2].items()

    async def test_archived_repository(self, bench: Bench) -> None:
        bench.host.control.put_repository(NAME, archived=True)

        assert isinstance(await bench.publish(), PublicationDenied)
        assert (0, 0) == bench.creations()


def conflict_of(found: Any) -> ConflictKind:
    assert isinstance(found, PublicationConflict), found
    return found.kind


class TestConflicts:
    """Nothing foreign is touched (I8); expected and observed stand in the journal."""

    async def test_foreign_branch(self, bench: Bench) -> None:
        foreign = bench.host.control.commit(NAME, BRANCH, {"x": "y"}, start="main")

        found = await bench.publish()

        assert ConflictKind.FOREIGN_BRANCH is conflict_of(found)
        assert foreign == bench.host.control.refs(NAME)[REF]
        assert [f"commit {foreign} by A Stranger"] == list(found.evidence)
        assert [
            ("push/1", "conflict", {
                "conflict": "foreign_branch",
                "expected": f"branch at {bench.commit}", "observed": f"branch at {foreign}",
            })
        ] == bench.journal.entries  # fmt: skip

    async def test_foreign_branch_that_an_honest_push_could_fast_forward(
        self, bench: Bench
    ) -> None:
        bench.host.control.move_ref(NAME, REF, bench.base)

        assert ConflictKind.FOREIGN_BRANCH is conflict_of(await bench.publish())
        assert bench.base == bench.host.control.refs(NAME)[REF]

    async def test_stranger_is_quicker_than_our_push(self, bench: Bench) -> None:
        """The branch appears between look and push: the empty lease refuses, nobody is overrun."""

        def race(effect: str, position: Position) -> None:
            if (effect, position) == ("push", "before"):
                bench.host.control.move_ref(NAME, REF, bench.base)

        bench.meanwhile = race
        found = await bench.publish()

        assert ConflictKind.FOREIGN_BRANCH is conflict_of(found)
        assert bench.base == bench.host.control.refs(NAME)[REF]
        assert ["push/1 intent", "push/1 conflict"] == bench.journal.brief()

    async def test_foreign_push_between_push_and_create(self, bench: Bench) -> None:
        bench.kill_at = ("push", "recorded")
        with pytest.raises(KilledError):
            await bench.publish()
        bench.kill_at = None
        foreign = bench.host.control.commit(NAME, BRANCH, {"x": "y"})

        found = await bench.publish()

        assert ConflictKind.HEAD_MOVED is conflict_of(found)
        assert foreign == bench.host.control.refs(NAME)[REF]
        assert 0 == bench.creations()[1]

    async def test_no_pull_request_is_intended_for_a_branch_that_moved(self, bench: Bench) -> None:
        publication = bench.publication()
        assert isinstance(await publication.ensure_branch(), BranchEnsured)
        bench.host.control.commit(NAME, BRANCH, {"x": "y"})

        found = await publication.ensure_pull_request()

        assert ConflictKind.HEAD_MOVED is conflict_of(found)
        assert ["push/1 intent", "push/1 done + push/2 conflict"] == bench.journal.appends

    async def test_foreign_push_within_the_create(self, bench: Bench) -> None:
        def race(effect: str, position: Position) -> None:
            if (effect, position) == ("pull_request", "before"):
                bench.host.control.commit(NAME, BRANCH, {"x": "y"})

        bench.meanwhile = race
        found = await bench.publish()

        assert ConflictKind.HEAD_MOVED is conflict_of(found)
        assert bench.commit in found.expected
        assert "pr/1 conflict" == bench.journal.brief()[-1]
        assert "open" == bench.host.control.pulls(NAME)[0]["state"]

    async def test_foreign_pull_request_from_our_branch(self, bench: Bench) -> None:
        bench.kill_at = ("push", "recorded")
        with pytest.raises(KilledError):
            await bench.publish()
        bench.kill_at = None
        bench.host.control.open_pull(NAME, title="mine", head=BRANCH, base="main", user="eve")

        found = await bench.publish()

        assert ConflictKind.FOREIGN_PULL_REQUEST is conflict_of(found)
        assert "by eve" in found.observed
        assert 1 == bench.creations()[1]
        assert "open" == bench.host.control.pulls(NAME)[0]["state"]

    async def test_pull_requests_of_other_branches_do_not_matter(self, bench: Bench) -> None:
        bench.host.control.commit(NAME, "feature", {"x": "y"}, start="main")
        bench.host.control.open_pull(NAME, title="other", head="feature", base="main", user="eve")

        assert isinstance(await bench.publish(), PullRequestEnsured)


class TestDeclined:
    async def published(self, bench: Bench, until: tuple[str, str]) -> None:
        bench.kill_at = until
        with pytest.raises(KilledError):
            await bench.publish()
        bench.kill_at = None

    async def test_closed_pull_request_is_never_recreated(self, bench: Bench) -> None:
        await self.published(bench, ("pull_request", "applied"))
        bench.host.control.close_pull(NAME, 1)

        assert isinstance(await bench.publish(), PublicationDeclined)
        assert (1, 1) == bench.creations()

    async def test_merged_pull_request_is_done(self, bench: Bench) -> None:
        await self.published(bench, ("pull_request", "applied"))
        bench.host.control.merge_pull(NAME, 1)
        bench.host.control.move_ref(NAME, REF, None)

        assert isinstance(await bench.publish(), PullRequestEnsured)
        assert "merged" == bench.journal.entries[-1][2]["state"]

    async def test_removed_branch_needs_two_looks_three_minutes_apart(self, bench: Bench) -> None:
        await self.published(bench, ("push", "recorded"))
        bench.host.control.move_ref(NAME, REF, None)

        found = await bench.publish()

        assert isinstance(found, PublicationDeclined)
        assert 180 in bench.time.slept
        assert REF not in bench.host.control.refs(NAME)

    async def test_removed_branch_is_not_pushed_again_after_a_kill_between_the_looks(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def die(_seconds: float) -> None:
            bench.journal.killed()
            raise KilledError

        with monkeypatch.context() as patch:
            patch.setattr(bench.time, "sleep", die)
            publication = bench.publication()
            assert isinstance(await publication.ensure_branch(), BranchEnsured)
            bench.host.control.move_ref(NAME, REF, None)
            with pytest.raises(KilledError):
                await publication.ensure_pull_request()

        found = await bench.publish()

        assert isinstance(found, PublicationDeclined)
        assert REF not in bench.host.control.refs(NAME)


class TestDecoration:
    """Labels and reviewers are best effort: a failure is a warning."""

    @pytest.mark.parametrize("effect", ["pull_request", "decoration"])
    async def test_it_is_recorded_after_them(self, bench: Bench, effect: str) -> None:
        """Who dies before them leaves the intent open, so that there is a next publisher (§13.2)."""
        bench.labels = ("x",)
        bench.kill_at = (effect, Position.APPLIED)

        with pytest.raises(KilledError):
            await bench.publish()

        assert "push/1 done + pr/1 intent" == bench.journal.appends[-1]

    async def test_the_next_publisher_adds_only_what_is_missing(self, bench: Bench) -> None:
        bench.labels = ("x",)
        bench.kill_at = ("decoration", Position.APPLIED)
        with pytest.raises(KilledError):
            await bench.publish()
        bench.kill_at, bench.labels = None, ("x", "y")
        bench.host.control.forget_requests()

        await bench.publish()

        assert ["x", "y"] == bench.host.control.pulls(NAME)[0]["labels"]
        written = [r for r in bench.host.control.requests() if r["path"].endswith("/labels")]
        assert ["GET", "POST"] == [r["method"] for r in written]
        assert "pr/1 done" == bench.journal.appends[-1]

    async def test_what_is_known_of_the_branch_is_kept_before_them(self, bench: Bench) -> None:
        """A wait for the forge may end a publisher; the branch may be gone then, merged and deleted."""
        bench.kill_at = ("pull_request", Position.APPLIED)
        with pytest.raises(KilledError):
            await bench.publish()
        bench.journal.entries[1:] = []
        bench.kill_at = ("decoration", Position.BEFORE)

        with pytest.raises(KilledError):
            await bench.publish()

        assert ["push/1 intent", "push/1 done"] == bench.journal.brief()

    async def test_the_record_keeps_what_could_not_be_set(self, bench: Bench) -> None:
        bench.reviewers = ("stranger",)

        (warning,) = warnings_of(await bench.publish())

        kept = bench.journal.entries[-1][2]["warnings"]
        assert kept.startswith("reviewers stranger not set")
        assert warning.startswith(kept)

    async def test_the_record_has_room_for_the_longest_address(self, bench: Bench) -> None:
        url = "u" * (limits.PULL_REQUEST_TEXT_BYTES - 2)
        data = {
            "number": "9" * 9, "state": "closed", "commit": "c" * 40, "found": "true",
            "url": url[:100], "warnings": url[100:],
        }  # fmt: skip
        draft = Draft(EntryId("pr/9999"), "pullRequest", EntryState.DONE, data)
        at = "2026-01-01T00:00:00Z"
        entry_from_draft(draft, seq=99_999, at=at, attempt="d9999", epoch=Epoch(99_999))

    async def test_unknown_reviewer_is_a_warning(self, bench: Bench) -> None:
        bench.labels, bench.reviewers = ("x",), ("stranger",)

        warnings = warnings_of(await bench.publish())

        assert 1 == len(warnings)
        assert "reviewers stranger not set" in warnings[0]
        assert ["x"] == bench.host.control.pulls(NAME)[0]["labels"]

    async def test_one_unknown_reviewer_doesn_t_keep_the_others_out(self, bench: Bench) -> None:
        """https://docs.github.com/rest/pulls/review-requests: one bad name refuses the whole list."""
        bench.host.control.put_repository(NAME, collaborators=["ann"])
        bench.reviewers = ("ann", "stranger")

        warnings = warnings_of(await bench.publish())

        assert 1 == len(warnings)
        assert "reviewers stranger not set" in warnings[0]
        assert ["ann"] == bench.host.control.pulls(NAME)[0]["reviewers"]

    async def test_unreachable_labels_are_a_warning(self, bench: Bench) -> None:
        bench.labels = ("x",)
        bench.host.control.add_fault(Fault("status", path="/labels", status=500))

        assert ("labels couldn't be read",) == warnings_of(await bench.publish())

    async def test_what_is_there_is_not_asked_again(self, bench: Bench) -> None:
        bench.labels = ("x", "y")
        await bench.publish()
        bench.host.control.forget_requests()

        await bench.publish()

        assert [] == [
            r
            for r in bench.host.control.requests()
            if r["method"] == "POST" and "git-upload-pack" not in r["path"]
        ]


async def test_secret_is_in_no_request_line_and_no_answer(bench: Bench) -> None:
    await bench.publish()

    assert bench.credential.secret not in str(bench.host.control.requests())
    assert bench.credential.secret not in str(bench.journal.entries)
