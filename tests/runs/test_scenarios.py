"""Every cell of the scenario table (upgrade-run.md §15), through the real runner.

Tests are generated from `tests/scenarios/table.toml`. `make scenarios` plays all of them and prints the
matrix; `make test` leaves out those marked `repeated`.
"""

from pathlib import Path

import pytest

from support.ends import check_details, check_hidden, check_outcome, check_remote
from support.journals import read_story
from support.platform import Platform
from support.scenarios import Cell, Row, cells, load_table
from support.toolchain import Uv
from support.worlds import Outside, open_scene

pytestmark = pytest.mark.asyncio(loop_scope="session")


def cell_id(row: Row, cell: Cell) -> str:
    return f"{row.id}-{cell.mode}"


CELLS = [
    pytest.param(
        row,
        cell,
        id=cell_id(row, cell),
        marks=() if row.is_shown_by(cell) else pytest.mark.repeated,
    )
    for row, cell in cells(load_table())
]


@pytest.mark.parametrize(("row", "cell"), CELLS)
async def test_cell_ends_as_the_table_says(
    row: Row, cell: Cell, platform: Platform, outside: Outside, folder: Path
) -> None:
    name = cell_id(row, cell).lower()
    scene = await open_scene(row, name, folder / "scenes", outside, platform)
    await platform.create_run(name, scene.spec(cell.mode))

    for kind in cell.asks:
        await platform.asked(name, kind)
        await platform.answer(name)
    if cell.publishes:
        await platform.asked(name)
        await platform.answer(name)
    status = await platform.finished(name)

    story = await read_story(platform, name)
    check_outcome(cell, status, platform)
    check_details(row, cell, story)
    check_remote(scene, cell, story)
    check_hidden(scene, cell, story, Uv(folder / "hidden-uv"), folder / "hidden" / name)
