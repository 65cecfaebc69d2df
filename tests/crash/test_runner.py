"""A runner struck at every fault point of the table ends as if nothing had happened (§13, §14).

Each test proves by the hook's own line that its point was hit; then the next attempt finishes, and the
end is compared with the undisturbed run's: outcome, tree, files, the recipe's commit, the journal but
for declared retries, what is left on the volume, and that a further start writes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.bookkeeper import Bookkeeper, next_attempt
from support.crash import (
    RUNNER_KILLS,
    Kill,
    Scenario,
    Struck,
    declared_retries,
    loses_reply,
    note,
    one_outcome_each,
    proof,
)
from support.ordinary_user import RunnerEnvironment
from support.runnerprocess import Ended, PodStandIn, bundle_of
from support.scenarios import BuiltScenario, build_world, load_table
from support.worlds import Outside
from upgraderun_protocol.effects import EFFECTS
from upgraderun_protocol.entries import Draft, Entry, EntryState
from upgraderun_protocol.ids import EntryId
from upgraderun_protocol.records import from_bytes
from upgraderun_runner.workspace.proposal import ProposalRecord
from upgraderun_runner.workspace.recipe import commit_id

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Frozen:
    """What a run left that reached its proposal."""

    outcomes: tuple[str, ...]
    tree: str
    files: Mapping[str, str]
    entries: tuple[Entry, ...]


@dataclass
class World:
    """Repositories by row, and the undisturbed end of each scenario, made once."""

    runner: RunnerEnvironment
    outside: Outside
    folder: Path
    built: dict[str, BuiltScenario] = field(default_factory=dict)
    ends: dict[Scenario, Frozen] = field(default_factory=dict)

    def scene(self, scenario: Scenario) -> BuiltScenario:
        if scenario.row not in self.built:
            row = next(row for row in load_table() if row.id == scenario.row)
            made = build_world(
                row,
                self.folder / scenario.row,
                self.outside.servers,
                name=f"crash-{scenario.row}",
                seen=self.outside.seen,
            )
            self.built[scenario.row] = made
        return self.built[scenario.row]

    def keeper(self, scenario: Scenario) -> Bookkeeper:
        built = self.scene(scenario)
        keeper = Bookkeeper(bundle_of(built, scenario.mode))
        if keeper.bundle.policy.decisions is not None:
            keeper.artifacts[keeper.bundle.policy.decisions] = built.row.decision_lines()
        return keeper

    async def attempt(
        self, scenario: Scenario, keeper: Bookkeeper, place: Path, fault: str | None = None
    ) -> Ended:
        environment = {} if fault is None else {"UPGRADERUN_FAULT": fault}
        built = self.scene(scenario)
        pod = PodStandIn(self.runner, place, built, self.outside.bundle, environment=environment)
        return await (await pod.start(keeper)).end()

    async def undisturbed(self, scenario: Scenario, place: Path) -> Frozen:
        if scenario not in self.ends:
            keeper = await self.keeper(scenario).start()
            try:
                ended = await self.attempt(scenario, keeper, place / "undisturbed")
            finally:
                await keeper.stop()
            assert 0 == ended.code, ended.log
            self.ends[scenario] = frozen(keeper)
        return self.ends[scenario]


def frozen(keeper: Bookkeeper) -> Frozen:
    """Read the end, and check that the one commit is what its recipe gives."""
    record = from_bytes(ProposalRecord, keeper.artifact("record", "proposal"))
    assert commit_id(record.recipe) == record.commit
    return Frozen(
        tuple(dict.fromkeys(verdict.outcome for verdict in keeper.verdicts)),
        record.recipe.tree,
        {file.path: file.sha256 for file in record.files},
        tuple(keeper.fold),
    )


@pytest.fixture(scope="module")
def world(folder: Path, runner: RunnerEnvironment, outside: Outside) -> World:
    made = folder / "crash-worlds"
    made.mkdir()
    return World(runner, outside, made)


@pytest.mark.parametrize(("point", "kill"), RUNNER_KILLS.items(), ids=RUNNER_KILLS)
async def test_a_runner_struck_at(point: str, kill: Kill, world: World, place: Path) -> None:
    expected = await world.undisturbed(kill.scenario, place)
    keeper = await world.keeper(kill.scenario).start()
    try:
        struck = await world.attempt(kill.scenario, keeper, place, kill.spelt(point))
        found = (keeper.story or ["nothing"])[-1]
        assert proof(point, kill) in struck.log, struck.log
        assert (0 if loses_reply(point) else -9) == struck.code, struck.log
        if not loses_reply(point):
            await resume(world, kill.scenario, keeper, place)
        entries = len(keeper.fold)
        again = await restart(world, kill.scenario, keeper, place)
    finally:
        await keeper.stop()

    end = frozen(keeper)
    assert (expected.outcomes, expected.tree, expected.files) == (
        end.outcomes,
        end.tree,
        end.files,
    )
    assert 0 == again.code, again.log
    assert entries + 1 == len(keeper.fold), "a further start appends its incarnation alone"
    assert () == keeper.fold.open_intents()
    assert one_outcome_each(keeper.fold)
    left_clean(place)
    effect = point.rpartition(".")[0]
    retries = declared_retries(effect, keeper.fold, expected.entries)
    row = EFFECTS[effect]
    did = row.not_applied if point.endswith(".before") else row.applied
    note(
        Struck(
            "runner",
            kill.spelt(point),
            f"{kill.scenario.row} {kill.scenario.mode}",
            f"last entry {found}; {did}",
            f"{end.outcomes[-1]}, tree {end.tree[:12]}",
            retries,
        )
    )


async def resume(world: World, scenario: Scenario, keeper: Bookkeeper, place: Path) -> None:
    """Let the operator see the pod gone, and the next attempt go on to the end."""
    keeper.record(Draft(EntryId("a1/end"), "end", EntryState.DONE, {"cause": "pod_gone"}), "a1")
    keeper.deliver(next_attempt(keeper.bundle, 2))
    resumed = await world.attempt(scenario, keeper, place)
    assert 0 == resumed.code, resumed.log


async def restart(world: World, scenario: Scenario, keeper: Bookkeeper, place: Path) -> Ended:
    """One attempt more, though the run has its end."""
    (place / "workspace" / "verdict.json").unlink(missing_ok=True)
    keeper.deliver(next_attempt(keeper.bundle, 3))
    return await world.attempt(scenario, keeper, place)


def left_clean(place: Path) -> None:
    """§14 (3): one generation, no staging, no temporary file, no scratch."""
    generations = list((place / "workspace").glob("ws-*"))
    assert 1 == len(generations), generations
    workspace = generations[0]
    assert [] == list((workspace / "staging").iterdir())
    assert [] == list(workspace.rglob(".upgraderun-tmp-*"))
    scratch = workspace / "scratch"
    assert not scratch.exists() or [] == list(scratch.iterdir())
