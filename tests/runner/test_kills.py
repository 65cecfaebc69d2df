"""A runner killed where it can leave most behind goes on from its journal (upgrade-run.md §13.2, §14).

Every test proves by the hook's own line that the point was hit, then lets the next attempt finish and
compares with what the undisturbed run gives: outcome, tree, recipe's commit, one outcome per intent.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.bookkeeper import Bookkeeper, next_attempt
from support.ordinary_user import RunnerEnvironment
from support.runnerprocess import PodStandIn, bundle_of
from support.scenarios import BuiltScenario, build_world, load_table
from support.worlds import Outside
from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.entries import Draft, EntryState
from upgraderun_protocol.ids import CommitId, EntryId
from upgraderun_protocol.records import from_bytes
from upgraderun_runner.workspace.proposal import ProposalRecord
from upgraderun_runner.workspace.recipe import commit_id

POINTS = (
    "lease_acquire.applied",
    "clone.applied",
    "validation.applied@1",
    "artifact.applied@3",
    "promotion_first.applied",
    "promotion_second.applied",
    "staging_delete.before",
    "validation.applied@2",
    "proposal_objects.applied",
    "proposal_commit.applied",
    "proposal_ref.applied",
    "proposal_upload.applied",
)
"""Where something stands that no entry tells of. Every point is struck by tests/crash and tests/sim."""
LOST_DECISION = b'{"arguments":{"reason":"no"},"tool":"report_blocked"}'
pytestmark = pytest.mark.slow


@dataclass
class World:
    """One repository on which run after run may start anew."""

    built: BuiltScenario
    runner: RunnerEnvironment
    outside: Outside

    def keeper(self, mode: str = "Rules") -> Bookkeeper:
        keeper = Bookkeeper(bundle_of(self.built, mode))
        if keeper.bundle.policy.decisions is not None:
            keeper.artifacts[keeper.bundle.policy.decisions] = self.built.row.decision_lines()
        return keeper

    def pod(self, folder: Path, fault: str | None = None) -> PodStandIn:
        environment = {} if fault is None else {"UPGRADERUN_FAULT": fault}
        return PodStandIn(
            self.runner, folder, self.built, self.outside.bundle, environment=environment
        )


@pytest.fixture(scope="module")
def world(open_root: Path, runner: RunnerEnvironment, outside: Outside) -> World:
    row = next(row for row in load_table() if row.id == "patch-safe")
    folder = open_root / "kills"
    folder.mkdir()
    built = build_world(row, folder, outside.servers, name="kills", seen=outside.seen)
    return World(built, runner, outside)


@pytest.mark.parametrize("point", POINTS)
async def test_killed_runner_is_resumed_to_the_same_tree(
    world: World, folder: Path, point: str
) -> None:
    keeper = await world.keeper().start()
    try:
        killed = await (await world.pod(folder, point).start(keeper)).end()
        assert f"upgraderun_fault: SIGKILL at {point}" in killed.log, killed.log
        assert -9 == killed.code

        first = keeper.bundle
        keeper.record(Draft(EntryId("a1/end"), "end", EntryState.DONE, {"cause": "pod_gone"}), "a1")
        keeper.deliver(next_attempt(first, 2))
        resumed = await (await world.pod(folder).start(keeper)).end()
    finally:
        await keeper.stop()

    assert 0 == resumed.code, resumed.log
    assert ["proposal_prepared"] == [verdict.outcome for verdict in keeper.verdicts], resumed.log
    _assert_frozen(keeper, world.built)
    _assert_settled(keeper, folder)


async def test_abandoned_clone_goes_also_after_a_kill_between_context_and_removal(
    world: World, folder: Path
) -> None:
    keeper = await world.keeper().start()
    try:
        for number, point in enumerate(("clone.applied", "context.recorded"), start=2):
            killed = await (await world.pod(folder, point).start(keeper)).end()
            assert f"upgraderun_fault: SIGKILL at {point}" in killed.log, killed.log
            keeper.deliver(next_attempt(keeper.bundle, number))
        left = sorted(path.name for path in (folder / "workspace").glob("ws-*"))
        assert ["ws-1", "ws-2"] == left
        resumed = await (await world.pod(folder).start(keeper)).end()
    finally:
        await keeper.stop()

    assert 0 == resumed.code, resumed.log
    assert ["ws-2"] == sorted(path.name for path in (folder / "workspace").glob("ws-*"))
    _assert_settled(keeper, folder)


@pytest.mark.parametrize(
    ("point", "stands"),
    [
        ("decision.before@2", ["s0/promotion intent"]),
        (
            "decision.recorded@2",
            ["s0/promotion done", "s0 done", "s1/decision done", "s1 intent", "sb/s1 intent"],
        ),
    ],
)
async def test_decision_and_intent_stand_together_or_not_at_all(
    world: World, folder: Path, point: str, stands: list[str]
) -> None:
    keeper = await world.keeper().start()
    try:
        killed = await (await world.pod(folder, point).start(keeper)).end()
    finally:
        await keeper.stop()

    assert f"upgraderun_fault: SIGKILL at {point}" in killed.log, killed.log
    assert " + ".join(stands) == keeper.appends[-1]


@pytest.mark.parametrize("point", ["decision.before@4", "decision.recorded@4"])
async def test_killed_script_goes_on_with_the_line_that_was_not_done(
    world: World, folder: Path, point: str
) -> None:
    """A decision that was lost is decided again; one whose step was cut short, too."""
    keeper = await world.keeper("Scripted").start()
    try:
        killed = await (await world.pod(folder, point).start(keeper)).end()
        keeper.deliver(next_attempt(keeper.bundle, 2))
        resumed = await (await world.pod(folder).start(keeper)).end()
    finally:
        await keeper.stop()

    assert f"upgraderun_fault: SIGKILL at {point}" in killed.log, killed.log
    assert 0 == resumed.code, resumed.log
    decided = [json.loads(line)["tool"] for line in world.built.row.decision_lines().splitlines()]
    done = [e.data["tool"] for e in keeper.fold.of_kind("step") if e.state is EntryState.DONE]
    assert decided == done
    _assert_frozen(keeper, world.built)
    _assert_settled(keeper, folder)


async def test_decision_alone_is_kept_and_not_executed(world: World, folder: Path) -> None:
    """§13.2 "between decision and step intent": how a mode that asks leaves it."""
    keeper = await world.keeper().start()
    try:
        await (await world.pod(folder, "decision.before@1").start(keeper)).end()
        digest = sha256_of(LOST_DECISION)
        keeper.artifacts[digest] = LOST_DECISION
        entry = EntryId("s0/decision")
        data, artifacts = {"tool": "report_blocked"}, {"decision": digest}
        keeper.record(Draft(entry, "decision", EntryState.DONE, data, artifacts), "a1")
        keeper.deliver(next_attempt(keeper.bundle, 2))
        resumed = await (await world.pod(folder).start(keeper)).end()
    finally:
        await keeper.stop()

    assert 0 == resumed.code, resumed.log
    outcome = keeper.fold.outcome("s0")
    assert outcome is not None
    assert ("interrupted", "the runner ended before it began") == (
        outcome.state.value,
        outcome.data["message"],
    )
    _assert_frozen(keeper, world.built)
    _assert_settled(keeper, folder)


async def test_finished_run_is_not_done_again(world: World, folder: Path) -> None:
    """A second attempt after a frozen proposal appends nothing but its incarnation."""
    keeper = await world.keeper().start()
    try:
        await (await world.pod(folder).start(keeper)).end()
        entries = len(keeper.fold)
        (folder / "workspace" / "verdict.json").unlink()
        keeper.deliver(next_attempt(keeper.bundle, 2))
        again = await (await world.pod(folder).start(keeper)).end()
    finally:
        await keeper.stop()

    assert 0 == again.code, again.log
    assert entries + 1 == len(keeper.fold)


async def test_tampered_pair_is_a_conflict_and_nothing_is_touched(
    world: World, folder: Path
) -> None:
    """Row 6 of §13.3, case 2 of §13.6: never `failed`, always with the hashes."""
    keeper = await world.keeper().start()
    try:
        await (await world.pod(folder, "promotion_first.applied").start(keeper)).end()
        lock = folder / "workspace" / "ws-1" / "work" / "uv.lock"
        lock.write_text("third content\n")
        keeper.deliver(next_attempt(keeper.bundle, 2))
        ended = await (await world.pod(folder).start(keeper)).end()
    finally:
        await keeper.stop()

    assert 4 == ended.code, ended.log
    verdict = keeper.verdicts[-1]
    assert ("workspace_conflict", "promotion_contradicted") == (verdict.outcome, verdict.conflict)
    assert "third content\n" == lock.read_text()


async def test_lost_volume_before_any_promotion_starts_from_the_recorded_base(
    world: World, folder: Path, open_root: Path
) -> None:
    keeper = await world.keeper().start()
    try:
        await (await world.pod(folder, "decision.recorded@1").start(keeper)).end()
        keeper.deliver(next_attempt(keeper.bundle, 2))
        ended = await (await world.pod(folder / "other").start(keeper)).end()
    finally:
        await keeper.stop()

    assert 0 == ended.code, ended.log
    _assert_frozen(keeper, world.built)
    assert 1 == keeper.story.count("baseline/1 done"), "accepted evidence stays"


async def test_lost_volume_after_a_promotion_is_a_conflict(world: World, folder: Path) -> None:
    keeper = await world.keeper().start()
    try:
        await (await world.pod(folder, "decision.recorded@2").start(keeper)).end()
        keeper.deliver(next_attempt(keeper.bundle, 2))
        ended = await (await world.pod(folder / "other").start(keeper)).end()
    finally:
        await keeper.stop()

    assert 4 == ended.code, ended.log
    assert "workspace_lost" == keeper.verdicts[-1].conflict


def _assert_frozen(keeper: Bookkeeper, built: BuiltScenario) -> None:
    """The one commit is what its recipe gives, on the base, with the undisturbed run's content."""
    record = from_bytes(ProposalRecord, keeper.artifact("record", "proposal"))
    assert commit_id(record.recipe) == record.commit
    assert CommitId(built.base_commit) == record.base_commit
    assert ["pyproject.toml", "uv.lock"] == [file.path for file in record.files]
    manifest = keeper.artifacts[record.files[0].sha256].decode()
    assert 'dependencies = ["tinylib==1.0.1"]' in manifest
    assert '"tinylib"\nversion = "1.0.1"' in keeper.artifacts[record.files[1].sha256].decode()


def _assert_settled(keeper: Bookkeeper, folder: Path) -> None:
    """§14 (2), (3): one outcome per intent, nothing open, nothing left over in the workspace."""
    assert () == keeper.fold.open_intents()
    root = folder / "workspace"
    generations = sorted(path.name for path in root.glob("ws-*"))
    assert 1 == len(generations), generations
    workspace = root / generations[0]
    assert [] == list((workspace / "staging").iterdir())
    assert [] == list(workspace.rglob(".upgraderun-tmp-*"))
    scratch = workspace / "scratch"
    assert not scratch.exists() or [] == list(scratch.iterdir())
    identity = json.loads((workspace / "identity.json").read_text())
    assert generations[0] == f"ws-{identity['generation']}"
