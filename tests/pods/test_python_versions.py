"""A repository that needs a newer Python than the runner's image has, with real images of both."""

from dataclasses import replace
from pathlib import Path

import pytest

from support.cluster import Cluster
from support.inpods import check_run
from support.podplatform import PodPlatform
from support.podscenes import NEWER_PYTHON
from support.scenarios import load_table
from support.worlds import Outside
from upgraderun_protocol.entries import EntryState

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
]


async def test_the_image_is_chosen_by_requires_python(
    cluster: Cluster, platform: PodPlatform, outside: Outside, tmp_path: Path
) -> None:
    newer = cluster.load("runner-trixie")["runner-trixie"]
    offered = [
        {"version": "3.11", "image": outside.image},
        {"version": "3.13", "image": newer},
    ]
    policy = {"images": {"runner": outside.image, "python": offered}}
    patch_safe = next(row for row in load_table() if row.id == "patch-safe")
    row = replace(patch_safe, repository=NEWER_PYTHON, policy=policy)

    cell = row.cell("Rules")
    story, images = await check_run(
        row, cell, NEWER_PYTHON, platform, outside, tmp_path, hidden=False
    )

    context = story.fold.last("profile", EntryState.DONE)
    assert context is not None
    assert ("a2", "3.13") == (context.attempt, context.data["python"])
    assert {"a1": outside.image, "a2": newer, "d1": outside.image} == images
