"""What runner and publisher of `patch-safe` send, append by append: each is a write of status.

The operator's side is a bookkeeper in memory, so that a failure here is the runner's. Every cell of the
scenario table runs with the real operator in `tests/runs`.
"""

from pathlib import Path

import pytest

from support.bookkeeper import Bookkeeper
from support.ordinary_user import RunnerEnvironment
from support.runnerprocess import Ended, PodStandIn, bundle_of, delivery_of
from support.scenarios import BuiltScenario, build_world, load_table
from support.worlds import Outside
from upgraderun_protocol.outcomes import OUTCOMES

ROW = next(row for row in load_table() if row.id == "patch-safe")
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
APPENDS = {
    "Baseline": (*PRELUDE_APPENDS, *LOOP_APPENDS),
    "Rules": (*PRELUDE_APPENDS, *LOOP_APPENDS, *PUBLISHER_APPENDS),
    "Scripted": (*PRELUDE_APPENDS, *SCRIPTED_APPENDS, *PUBLISHER_APPENDS),
}
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("mode", APPENDS)
async def test_a_run_sends_exactly_these_appends(
    mode: str, folder: Path, runner: RunnerEnvironment, outside: Outside
) -> None:
    cell = ROW.cell(mode)
    name = f"appends-{mode}".lower()
    built = build_world(ROW, folder / "world", outside.servers, name=name, seen=outside.seen)
    bundle = bundle_of(built, cell.mode)
    keeper = Bookkeeper(bundle)
    if bundle.policy.decisions is not None:
        keeper.artifacts[bundle.policy.decisions] = ROW.decision_lines()
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
    assert list(APPENDS[mode]) == keeper.appends
    if mode != "Scripted":
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
