"""Compaction in whole runs: old entries leave the status, and nothing that is known changes.

A run at a small soft bound is compared with one of the same row at the default bound (DESIGN §6).
"""

from pathlib import Path
from typing import Any

import pytest

from support.ends import check_outcome, check_remote
from support.journals import Story, read_story
from support.operators import restarted_with
from support.platform import Platform
from support.scenarios import load_table
from support.worlds import Outside, open_scene
from upgraderun_protocol.canonical import canonical_json
from upgraderun_protocol.limits import STATUS_SOFT_BYTES

SMALL_BYTES = 4096
MODE = "Scripted"
ROW = next(row for row in load_table() if row.id == "breaking-minor")
"""The row with the most decisions: failing checks, reads, an edit, two validations."""
CELL = ROW.cell(MODE)
ASKED_SECONDS = 420
"""Its way to the request is the longest of the table, on a busy machine too."""

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def published(name: str, platform: Platform, outside: Outside, folder: Path) -> Story:
    """Take a run to its pull request and read what it left."""
    scene = await open_scene(ROW, name, folder / "scenes", outside, platform)
    await platform.create_run(name, scene.spec(MODE))
    await platform.asked(name, seconds=ASKED_SECONDS)
    await platform.answer(name)
    status = await platform.finished(name)
    story = await read_story(platform, name)
    check_outcome(CELL, status, platform)
    check_remote(scene, CELL, story)
    return story


def segments(story: Story) -> list[str]:
    return list(story.status["journal"].get("compacted", {}).get("segments", []))


def size(story: Story) -> int:
    return len(canonical_json(story.status))


def shape(story: Story) -> dict[str, Any]:
    """What two runs of one row share: times, digests and names of objects differ."""
    conditions = story.status["conditions"]
    return {
        "outcome": story.status["outcome"],
        "exit code": story.status["exitCode"],
        "conditions": {c["type"]: (c["status"], c["reason"]) for c in conditions},
        "entries": [(entry.id, entry.kind, entry.state.value) for entry in story.fold],
        "target": story.target,
        "files": story.changed_files,
    }


async def test_runs_compact_at_either_bound_and_fold_alike(
    platform: Platform, outside: Outside, folder: Path
) -> None:
    usual = await published("bound-default", platform, outside, folder)
    async with restarted_with(platform.operators[0], UPGRADERUN_STATUS_SOFT_BYTES=str(SMALL_BYTES)):
        small = await published("bound-small", platform, outside, folder)

    assert segments(usual), "a long run compacts at the default bound"
    assert len(segments(small)) >= 2
    assert len(segments(small)) > len(segments(usual))
    assert size(small) < size(usual) <= STATUS_SOFT_BYTES
    assert shape(usual) == shape(small)
