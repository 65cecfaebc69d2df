"""The publisher as a process, against the fixture forge (upgrade-run.md §12, §13.2, §13.5)."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio

from support.bookkeeper import Bookkeeper
from support.fixtures.faults import secondary_rate_limit
from support.hosting import publish
from support.ordinary_user import RunnerEnvironment
from support.runnerprocess import Ended, PodStandIn, bundle_of, delivery_of
from support.scenarios import BuiltScenario, build_world, load_table
from support.worlds import Outside
from upgraderun_protocol.bundle import Delivery
from upgraderun_protocol.ids import EntryId, Sha256

pytestmark = pytest.mark.slow


@dataclass
class Frozen:
    """A run whose proposal is frozen and granted: publishers may come."""

    built: BuiltScenario
    keeper: Bookkeeper
    runner: RunnerEnvironment
    outside: Outside
    folder: Path

    @property
    def delivery(self) -> Delivery:
        assert self.keeper.bundle.delivery is not None
        return self.keeper.bundle.delivery

    async def publish(self, number: int = 1, fault: str | None = None) -> Ended:
        """Let delivery `number` run to its end."""
        self.keeper.deliver(replace(self.keeper.bundle, writer=f"d{number}"))
        environment = {} if fault is None else {"UPGRADERUN_FAULT": fault}
        pod = PodStandIn(
            self.runner,
            self.folder / f"d{number}",
            self.built,
            self.outside.bundle,
            environment=environment,
        )
        return await (await pod.start(self.keeper)).end()

    @property
    def branches(self) -> dict[str, str]:
        """Our branches on the remote."""
        refs = self.outside.servers.host.control.refs(f"fixtures/{self.built.name}")
        return {ref: sha for ref, sha in refs.items() if "/upgraderun/" in ref}

    @property
    def pulls(self) -> int:
        """Pull requests of the repository, in any state."""
        return len(self.outside.servers.host.control.pulls(f"fixtures/{self.built.name}"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def prepared(
    open_root: Path, runner: RunnerEnvironment, outside: Outside
) -> tuple[BuiltScenario, Bookkeeper]:
    """One run of `patch-safe` up to its frozen proposal."""
    folder = open_root / "prepared"
    folder.mkdir()
    row = next(row for row in load_table() if row.id == "patch-safe")
    built = build_world(row, folder / "world", outside.servers, name="prepared", seen=outside.seen)
    keeper = await Bookkeeper(bundle_of(built, "Rules")).start()
    pod = PodStandIn(runner, folder / "a1", built, outside.bundle)
    ended = await (await pod.start(keeper)).end()
    await keeper.stop()
    assert 0 == ended.code, ended.log
    return built, keeper


@pytest.fixture
async def frozen(
    prepared: tuple[BuiltScenario, Bookkeeper],
    folder: Path,
    runner: RunnerEnvironment,
    outside: Outside,
) -> AsyncIterator[Frozen]:
    """That run once more, with a repository of its own."""
    first, done = prepared
    name = f"publishing-{folder.name.lower().replace('_', '-')}"
    host = outside.servers.host
    tokens = publish(host, f"fixtures/{name}", first.local, first.base_commit)
    built = replace(
        first,
        name=name,
        repository_url=f"{outside.seen.host_url}/fixtures/{name}.git",
        clone_token=tokens.clone,
        push_token=tokens.push,
    )
    bundle = bundle_of(built, "Rules")
    keeper = await done.copy(delivery_of(bundle, done)).start()
    keeper.grant()
    yield Frozen(built, keeper, runner, outside, folder)
    await keeper.stop()


@pytest.mark.parametrize(
    "point",
    [
        "push.before",
        "push.applied",
        "push.recorded",
        "pull_request.before",
        "pull_request.applied",
        "pull_request.recorded",
    ],
)
async def test_killed_publisher_leaves_one_branch_and_one_pull_request(
    frozen: Frozen, point: str
) -> None:
    killed = await frozen.publish(1, point)
    assert f"upgraderun_fault: SIGKILL at {point}" in killed.log, killed.log

    again = await frozen.publish(2)

    assert 0 == again.code, again.log
    assert "proposal_published" == frozen.keeper.verdicts[-1].outcome
    ref = f"refs/heads/{frozen.delivery.branch}"
    assert ({ref: frozen.delivery.commit}, 1) == (frozen.branches, frozen.pulls)
    assert () == frozen.keeper.fold.open_intents()


async def test_between_push_and_pull_request_both_entries_stand(frozen: Frozen) -> None:
    killed = await frozen.publish(1, "push.recorded")

    assert "upgraderun_fault: SIGKILL at push.recorded" in killed.log, killed.log
    assert "push/1 done + pr/1 intent" == frozen.keeper.appends[-1]
    ref = f"refs/heads/{frozen.delivery.branch}"
    assert ({ref: frozen.delivery.commit}, 0) == (frozen.branches, frozen.pulls)


async def test_foreign_branch_is_a_conflict_and_stays_untouched(frozen: Frozen) -> None:
    ref = f"refs/heads/{frozen.delivery.branch}"
    control = frozen.outside.servers.host.control
    control.move_ref(f"fixtures/{frozen.built.name}", ref, frozen.built.base_commit)

    ended = await frozen.publish()

    assert 4 == ended.code, ended.log
    verdict = frozen.keeper.verdicts[-1]
    assert ("publication_conflict", "foreign_branch") == (verdict.outcome, verdict.conflict)
    assert ({ref: frozen.built.base_commit}, 0) == (frozen.branches, frozen.pulls)


async def test_what_couldnt_be_set_stands_beside_the_address(frozen: Frozen) -> None:
    """upgrade-run.md §12: labels and reviewers are best effort, a failure is a warning."""
    bundle = frozen.keeper.bundle
    wish = replace(bundle.publication, reviewers=("nobody-here",))
    frozen.keeper.deliver(replace(bundle, publication=wish))

    ended = await frozen.publish()

    assert 0 == ended.code, ended.log
    verdict = frozen.keeper.verdicts[-1]
    assert verdict.pull_request is not None
    assert f"{verdict.pull_request.url}; reviewers nobody-here not set" in verdict.message


async def test_a_long_limit_parks_the_publisher_until_its_end(frozen: Frozen) -> None:
    """reliability.md §3: 403 and 429 are waits; a long one needs no pod, and people see its end."""
    control = frozen.outside.servers.host.control
    path = f"fixtures/{frozen.built.name}/pulls"
    control.add_fault(secondary_rate_limit(900, path=path))
    before = datetime.now(UTC)

    parked = await frozen.publish(1)
    again = await frozen.publish(2)

    assert 76 == parked.code, parked.log
    end = frozen.keeper.fold.outcome(EntryId("d1/end"))
    assert end is not None
    assert ("yield", "forge_limited") == (end.data["cause"], end.data["reason"])
    waits = (datetime.fromisoformat(end.data["until"]) - before).total_seconds()
    assert 895 <= waits <= 1000
    assert 0 == again.code, again.log
    assert 1 == frozen.pulls


async def test_a_held_intent_parks_the_publisher_and_keeps_what_it_did(frozen: Frozen) -> None:
    """upgrade-run.md §12: the API checks grant and wishes again; the next publisher goes on."""
    frozen.keeper.held = True
    parked = await frozen.publish(1)
    after_first = frozen.pulls
    frozen.keeper.held = False
    again = await frozen.publish(2)

    assert 76 == parked.code, parked.log
    end = frozen.keeper.fold.outcome(EntryId("d1/end"))
    assert end is not None
    assert ("yield", "suspended") == (end.data["cause"], end.data["reason"])
    assert "push/1 done + d1/end done" in frozen.keeper.appends
    assert 0 == after_first
    assert 0 == again.code, again.log
    assert (1, 1) == (len(frozen.branches), frozen.pulls)


async def test_changed_artifact_invalidates_the_proposal_before_anything_is_pushed(
    frozen: Frozen,
) -> None:
    """H28: one byte of a blob changed, and nothing leaves."""
    lock = next(
        digest
        for digest, content in frozen.keeper.artifacts.items()
        if content.startswith(b"version = 1") and b"1.0.1" in content
    )
    del frozen.keeper.artifacts[Sha256(lock)]

    ended = await frozen.publish()

    assert 4 == ended.code, ended.log
    assert "proposal_invalidated" == frozen.keeper.verdicts[-1].outcome
    assert ({}, 0) == (frozen.branches, frozen.pulls)


async def test_token_is_in_no_log_message_or_entry(frozen: Frozen) -> None:
    ended = await frozen.publish()

    told = ended.log + ended.message + " ".join(str(e.to_json()) for e in frozen.keeper.fold)
    assert frozen.built.push_token not in told
    assert frozen.built.clone_token not in told
    assert all(
        frozen.built.clone_token.encode() not in content
        for content in frozen.keeper.artifacts.values()
    )
