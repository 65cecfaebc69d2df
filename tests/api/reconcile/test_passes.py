"""What one pass asks of the API server, and that nothing it decides on is older than the pass."""

from pathlib import Path
from typing import Any

import pytest

from clusterlib.apiserver import ApiServer
from support.desk import Make, open_desk
from upgraderun_operator import limits

pytestmark = pytest.mark.api

BASELINE: dict[str, Any] = {"mode": "Baseline", "publication": {"enabled": False}}
NO_FORGE: dict[str, Any] = {"credentials": {}}


async def test_a_start_reads_the_run_once(make: Make) -> None:
    play = await make(policy=NO_FORGE, **BASELINE)
    await play.go()
    assert play.desk.reads["upgraderuns"] == 1
    assert "a1 done" in await play.entries()


async def test_what_is_kept_grows_old(make: Make, cluster: ApiServer, tmp_path: Path) -> None:
    """A pass that took longer than a leader may believe in itself reads the run again."""
    play = await make(policy=NO_FORGE, **BASELINE)

    def dawdle(point: str) -> None:
        if point == "pvc.applied":
            slow.clock.passed += limits.KEPT_SECONDS_MAX + 1

    async with open_desk(cluster, tmp_path / "store", fault=dawdle) as slow:
        play.desk = slow
        await play.go()
        assert slow.reads["upgraderuns"] == 2
        assert "a1 done" in await play.entries()


async def test_a_wish_that_comes_inside_a_pass_is_seen_by_its_next_write(
    make: Make, cluster: ApiServer, tmp_path: Path
) -> None:
    play = await make(policy=NO_FORGE, **BASELINE)

    def cancel(point: str) -> None:
        if point == "pvc.applied":
            patch = '{"spec":{"cancel":true}}'
            where = ("-n", play.namespace, "patch", "upgraderuns", play.name, "--type=merge")
            cluster.kubectl(*where, "-p", patch)

    async with open_desk(cluster, tmp_path / "store", fault=cancel) as hurried:
        play.desk = hurried
        await play.go()
        assert (await play.status())["outcome"] == "Cancelled"
