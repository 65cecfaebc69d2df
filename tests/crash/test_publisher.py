"""A publisher struck at every fault point of the table leaves one branch and one pull request (§13.5).

One run reaches its frozen proposal; each test then publishes it on a repository that is made anew under
the same name, so that base, proposal and commit stay the same.
"""

import itertools
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import pytest_asyncio

from support.bookkeeper import Bookkeeper
from support.crash import (
    PATCH,
    PUBLISHER_KILLS,
    Kill,
    Struck,
    declared_retries,
    loses_reply,
    note,
    one_outcome_each,
    proof,
)
from support.hosting import publish
from support.ordinary_user import RunnerEnvironment
from support.runnerprocess import Ended, PodStandIn, bundle_of, delivery_of
from support.scenarios import BuiltScenario, build_world, load_table
from support.worlds import Outside
from upgraderun_protocol.bundle import Bundle
from upgraderun_protocol.effects import EFFECTS
from upgraderun_protocol.entries import Entry
from upgraderun_protocol.fold import Fold

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
NAME = "crash-publishing"
LABELS = ("dependencies",)


@dataclass(frozen=True, slots=True)
class Published:
    """What a delivery left outside and in the journal."""

    outcome: str
    branches: dict[str, str]
    pulls: list[tuple[str, str, tuple[str, ...]]]
    entries: tuple[Entry, ...]


@dataclass
class World:
    """A frozen proposal, and the repository that it is for, as often as needed."""

    built: BuiltScenario
    bundle: Bundle
    fold: Fold
    artifacts: dict[str, bytes]
    epoch: int
    runner: RunnerEnvironment
    outside: Outside
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    undisturbed: Published | None = None

    def granted(self) -> Bookkeeper:
        """A journal in which the push intent stands, and a remote with the base alone."""
        host, name = self.outside.servers.host, f"fixtures/{NAME}"
        host.control.rename_repository(name, f"{name}-{next(self.numbers)}")
        tokens = publish(host, name, self.built.local, self.built.base_commit)
        self.built = replace(self.built, clone_token=tokens.clone, push_token=tokens.push)
        keeper = Bookkeeper(self.bundle, Fold(self.fold), dict(self.artifacts), epoch=self.epoch)
        keeper.grant()
        return keeper

    async def deliver(
        self, keeper: Bookkeeper, number: int, place: Path, fault: str | None = None
    ) -> Ended:
        """Let delivery `number` run to its end."""
        keeper.deliver(replace(keeper.bundle, writer=f"d{number}"))
        pod = PodStandIn(
            self.runner,
            place / f"d{number}",
            self.built,
            self.outside.bundle,
            environment={} if fault is None else {"UPGRADERUN_FAULT": fault},
        )
        return await (await pod.start(keeper)).end()

    def end(self, keeper: Bookkeeper) -> Published:
        """Read what stands now."""
        control = self.outside.servers.host.control
        refs = control.refs(f"fixtures/{NAME}")
        pulls = control.pulls(f"fixtures/{NAME}")
        return Published(
            keeper.verdicts[-1].outcome,
            {ref: sha for ref, sha in refs.items() if ref != "refs/heads/main"},
            [(one["state"], one["head"], tuple(one["labels"])) for one in pulls],
            tuple(keeper.fold),
        )

    async def expected(self, place: Path) -> Published:
        """The undisturbed end, made once."""
        if self.undisturbed is None:
            keeper = await self.granted().start()
            try:
                ended = await self.deliver(keeper, 1, place / "undisturbed")
            finally:
                await keeper.stop()
            assert 0 == ended.code, ended.log
            self.undisturbed = self.end(keeper)
            assert 1 == len(self.undisturbed.branches) == len(self.undisturbed.pulls)
        return self.undisturbed


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(folder: Path, runner: RunnerEnvironment, outside: Outside) -> World:
    made = folder / "crash-publishing"
    made.mkdir(mode=0o755)
    row = next(row for row in load_table() if row.id == PATCH.row)
    built = build_world(row, made / "world", outside.servers, name=NAME, seen=outside.seen)
    bundle = bundle_of(built, PATCH.mode)
    bundle = replace(bundle, publication=replace(bundle.publication, labels=LABELS))
    keeper = await Bookkeeper(bundle).start()
    try:
        pod = PodStandIn(runner, made / "a1", built, outside.bundle)
        ended = await (await pod.start(keeper)).end()
    finally:
        await keeper.stop()
    assert 0 == ended.code, ended.log
    delivery = delivery_of(bundle, keeper)
    return World(built, delivery, keeper.fold, keeper.artifacts, keeper.epoch, runner, outside)


@pytest.mark.parametrize(("point", "kill"), PUBLISHER_KILLS.items(), ids=PUBLISHER_KILLS)
async def test_a_publisher_struck_at(point: str, kill: Kill, world: World, place: Path) -> None:
    expected = await world.expected(place)
    keeper = await world.granted().start()
    try:
        struck = await world.deliver(keeper, 1, place, kill.spelt(point))
        found = keeper.story[-1]
        assert proof(point, kill) in struck.log, struck.log
        assert (0 if loses_reply(point) else -9) == struck.code, struck.log
        entries, last = len(keeper.fold), struck
        if not loses_reply(point):
            last = await world.deliver(keeper, 2, place)
    finally:
        await keeper.stop()

    assert 0 == last.code, last.log
    end = world.end(keeper)
    assert (expected.outcome, expected.branches, expected.pulls) == (
        end.outcome,
        end.branches,
        end.pulls,
    )
    assert len(keeper.fold) >= entries
    assert () == keeper.fold.open_intents()
    assert one_outcome_each(keeper.fold)
    effect = point.rpartition(".")[0]
    retries = declared_retries(effect, keeper.fold, expected.entries)
    row = EFFECTS[effect]
    did = row.not_applied if point.endswith(".before") else row.applied
    note(
        Struck(
            "publisher",
            kill.spelt(point),
            f"{kill.scenario.row} {kill.scenario.mode}",
            f"last entry {found}; {did}",
            f"{end.outcome}, {len(end.branches)} branch, {len(end.pulls)} pull request",
            retries,
        )
    )
