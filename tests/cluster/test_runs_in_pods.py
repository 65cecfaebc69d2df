"""Whole runs in pods: built images, the chart, people with the chart's roles, real containers."""

from pathlib import Path

import pytest

from support.inpods import check_run
from support.podplatform import PodPlatform
from support.scenarios import Cell, Row, cells, load_table
from support.worlds import Outside

IN_PODS = ("patch-safe", "breaking-minor", "baseline-failing")
CELLS = [
    (row, cell) for row, cell in cells(load_table()) if row.id in IN_PODS and cell.mode == "Rules"
]
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest.mark.parametrize(("row", "cell"), CELLS, ids=[row.id for row, _ in CELLS])
async def test_a_run_in_pods_ends_as_the_table_says(
    row: Row, cell: Cell, platform: PodPlatform, outside: Outside, tmp_path: Path
) -> None:
    _, images = await check_run(row, cell, row.id, platform, outside, tmp_path)
    pods = {"a1", "d1"} if cell.publishes else {"a1"}
    assert dict.fromkeys(pods, outside.image) == images
