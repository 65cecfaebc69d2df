"""Rows of the scenario table through the real runner, with real uv and git (upgrade-run.md §15).

The operator's side is a bookkeeper in memory, so that a failure here is the runner's. Every cell of the
table runs with the real operator in `tests/runs`; here are the few that use most of the runner.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.bookkeeper import Bookkeeper
from support.ordinary_user import RunnerEnvironment
from support.runnerprocess import Ended, PodStandIn, bundle_of, delivery_of
from support.scenarios import BuiltScenario, Cell, Row, build_world, cells, load_table
from support.worlds import Outside
from upgraderun_protocol.outcomes import OUTCOMES

ROWS = ("patch-safe", "protected-change", "unsupported-no-lock")
CELLS = cells(tuple(row for row in load_table() if row.id in ROWS))
OWN_ENTRIES_MAX = 39
"""What runner, publisher and their incarnations may take of the fifty entries of `patch-safe`."""
PRELUDE_APPENDS = (
    "workspace/1 intent",
    "workspace/1 done + profile/1 intent + profile/1 done + acquire/1 intent + sb/acquire/1 intent",
    "acquire/1 done + baseline/1 intent + sb/baseline/1 intent",
    "baseline/1 done + candidates/1 intent + sb/candidates/1 intent",
)
LOOP_APPENDS = (
    "candidates/1 done + s0/decision done + s0 intent + sb/s0 intent",
    "s0/promotion intent",
    "s0/promotion done + s0 done + s1/decision done + s1 intent + sb/s1 intent",
    "s1 done + s2/decision done + s2 intent + sb/s2 intent",
    "s2 done + s3/decision done + s3 intent + proposal/s3 intent",
    "proposal/s3 done + s3 done",
)
SCRIPTED_APPENDS = (
    "candidates/1 done + s0/decision done + s0 intent + s0 done",
    "s1/decision done + s1 intent + s1 done",
    "s2/decision done + s2 intent + sb/s2 intent",
    "s2/promotion intent",
    "s2/promotion done + s2 done + s3/decision done + s3 intent + sb/s3 intent",
    "s3 done + s4/decision done + s4 intent + sb/s4 intent",
    "s4 done + s5/decision done + s5 intent + proposal/s5 intent",
    "proposal/s5 done + s5 done",
)
PUBLISHER_APPENDS = ("push/1 done + pr/1 intent", "pr/1 done")
PATCH_SAFE_APPENDS = {
    "Baseline": (*PRELUDE_APPENDS, *LOOP_APPENDS),
    "Rules": (*PRELUDE_APPENDS, *LOOP_APPENDS, *PUBLISHER_APPENDS),
    "Scripted": (*PRELUDE_APPENDS, *SCRIPTED_APPENDS, *PUBLISHER_APPENDS),
}
"""Each append is a write of status: what runner and publisher of `patch-safe` send together."""
pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("row", "cell"), CELLS, ids=[f"{r.id}-{c.mode}" for r, c in CELLS])
async def test_cell_ends_as_the_table_says(
    row: Row, cell: Cell, folder: Path, runner: RunnerEnvironment, outside: Outside
) -> None:
    name = f"{row.id}-{cell.mode}".lower()
    built = build_world(row, folder / "world", outside.servers, name=name, seen=outside.seen)
    bundle = bundle_of(built, cell.mode)
    keeper = Bookkeeper(bundle)
    if bundle.policy.decisions is not None:
        keeper.artifacts[bundle.policy.decisions] = row.decision_lines()
    await keeper.start()
    try:
        ended = await _run(runner, outside, built, keeper, folder / "a1")
        outcome = _outcome(keeper)
        if cell.publishes and outcome == "proposal_prepared":
            keeper.deliver(delivery_of(bundle, keeper))
            keeper.grant()
            ended = await _run(runner, outside, built, keeper, folder / "d1")
            outcome = _outcome(keeper)
    finally:
        await keeper.stop()

    told = f"{keeper.verdicts[-1].message if keeper.verdicts else ''}\n{ended.log}"
    assert cell.outcome == outcome, told
    assert OUTCOMES[cell.outcome].exit_code == ended.code, told
    _check(cell, row, keeper, told)
    if row.id == "patch-safe":
        assert list(PATCH_SAFE_APPENDS[cell.mode]) == keeper.appends
    if row.id == "patch-safe" and cell.mode != "Scripted":
        assert len(keeper.fold) <= OWN_ENTRIES_MAX, keeper.story


async def _run(
    runner: RunnerEnvironment,
    outside: Outside,
    built: BuiltScenario,
    keeper: Bookkeeper,
    directory: Path,
) -> Ended:
    pod = PodStandIn(runner, directory, built, outside.bundle)
    return await (await pod.start(keeper)).end()


def _outcome(keeper: Bookkeeper) -> str:
    return keeper.verdicts[-1].outcome if keeper.verdicts else "no verdict"


def _check(cell: Cell, row: Row, keeper: Bookkeeper, told: str) -> None:
    """Everything else that the cell says."""
    report = _report(keeper)
    shown = json.dumps(report, ensure_ascii=False)
    if cell.target is not None:
        expected = (cell.target.name, cell.target.before, cell.target.after)
        target = report.get("target", {})
        assert expected == (target["name"], target["fromVersion"], target["toVersion"]), told
    for finding in cell.findings:
        assert finding in shown, told
    for violation in cell.violations:
        assert violation in shown, told
    for refusal in row.refusals:
        assert f"({refusal.code})" in shown, shown
        assert refusal.file in shown, shown
    if cell.files:
        record = json.loads(keeper.artifact("record", "proposal"))
        assert list(cell.files) == sorted(file["path"] for file in record["files"]), told
        for moved in cell.moved:
            assert moved.name in record["recipe"]["body"], told
        for pattern in cell.says:
            assert re.search(pattern, record["recipe"]["body"]), record["recipe"]["body"]
    denied = [
        entry.data["tool"]
        for entry in keeper.fold
        if entry.kind == "step" and entry.data.get("reason") == "policy_denied"
    ]
    assert list(cell.denied) == denied, told


def _report(keeper: Bookkeeper) -> dict[str, Any]:
    digest = next((v.report for v in reversed(keeper.verdicts) if v.report is not None), None)
    assert digest is not None, "every end has a report"
    value: dict[str, Any] = json.loads(keeper.artifacts[digest])
    return value
