"""Whole runs in pods: built images, the chart, people with the chart's roles, real containers."""

from pathlib import Path

import pytest

from support.ends import check_details, check_hidden, check_outcome, check_remote
from support.journals import read_story
from support.podplatform import PodPlatform, images_of_pods
from support.scenarios import Cell, Row, cells, load_table
from support.toolchain import Uv
from support.worlds import Outside, open_scene

IN_PODS = ("patch-safe", "breaking-minor", "baseline-failing")
PODS = {"attempt", "delivery"}
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
    scene = await open_scene(row, row.id, tmp_path / "scene", outside, platform)
    async with images_of_pods(platform) as images:
        await platform.create_run(row.id, scene.spec(cell.mode))
        if cell.publishes:
            await platform.asked(row.id)
            await platform.answer(row.id)
        status = await platform.finished(row.id)

    story = await read_story(platform, row.id)
    check_outcome(cell, status, platform)
    check_details(row, cell, story)
    check_remote(scene, cell, story)
    check_hidden(scene, cell, story, Uv(tmp_path / "uv"), tmp_path / "hidden")
    pods = {e.id: e.data["podUID"] for e in story.fold if e.kind in PODS and "podUID" in e.data}
    assert ({"a1", "d1"} if cell.publishes else {"a1"}) == set(pods)
    assert dict.fromkeys(pods, outside.image) == {name: images[uid] for name, uid in pods.items()}
