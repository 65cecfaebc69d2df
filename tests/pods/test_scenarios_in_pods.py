"""Rows of the scenario table in pods, beside those that `tests/cluster` runs with every change."""

from pathlib import Path

import pytest

from support.inpods import check_run
from support.podplatform import PodPlatform
from support.podscenes import IN_PODS
from support.scenarios import Cell, Row, cells, load_table
from support.worlds import Outside

CELLS = [(row, cell) for row, cell in cells(load_table()) if IN_PODS.get(row.id) == cell.mode]
pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def test_every_named_row_is_in_the_table() -> None:
    assert set(IN_PODS) == {row.id for row, _ in CELLS}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("row", "cell"), CELLS, ids=[row.id for row, _ in CELLS])
async def test_a_run_in_pods_ends_as_the_table_says(
    row: Row, cell: Cell, platform: PodPlatform, outside: Outside, tmp_path: Path
) -> None:
    _, images = await check_run(row, cell, row.id, platform, outside, tmp_path)
    assert {outside.image} == set(images.values())
    assert cell.publishes == ("d1" in images)
