"""Every cell of the scenario table (upgrade-run.md §15), through the real runner.

Tests are generated from `tests/scenarios/table.toml`; the summary prints how many cells ran.
"""

import re
from pathlib import Path

import pytest

from support.journals import Story, read_story
from support.platform import Platform
from support.scenarios import Cell, Row, cells, load_table, run_hidden_check
from support.toolchain import Uv
from support.worlds import Outside, Scene, open_scene
from upgraderun_protocol.outcomes import OUTCOMES

CELLS = cells(load_table())
pytestmark = pytest.mark.asyncio(loop_scope="session")


def cell_id(row: Row, cell: Cell) -> str:
    return f"{row.id}-{cell.mode}"


@pytest.mark.parametrize(("row", "cell"), CELLS, ids=[cell_id(row, cell) for row, cell in CELLS])
async def test_cell_ends_as_the_table_says(
    row: Row, cell: Cell, platform: Platform, outside: Outside, folder: Path
) -> None:
    name = cell_id(row, cell).lower()
    scene = await open_scene(row, name, folder / "scenes", outside, platform)
    await platform.create_run(name, scene.spec(cell.mode))

    if cell.publishes:
        await platform.asked(name)
        await platform.answer(name)
    status = await platform.finished(name)

    story = await read_story(platform, name)
    assert OUTCOMES[cell.outcome].reason == status["outcome"], platform.story(status)
    assert OUTCOMES[cell.outcome].exit_code == status["exitCode"]
    check_details(row, cell, story)
    check_remote(scene, cell, story)
    if cell.publishes and any(scene.built.hidden.iterdir()):
        fetch_published(scene, story)
        done = run_hidden_check(
            scene.built, story.commit, folder / "hidden" / name, Uv(folder / "hidden-uv" / name)
        )
        assert done.code == 0, f"false success:\n{done.out}\n{done.err}"


def check_details(row: Row, cell: Cell, story: Story) -> None:
    """What the table says beside the outcome stands in journal, artifacts and report."""
    if cell.target is not None:
        wanted = (cell.target.name, cell.target.before, cell.target.after)
        assert wanted == story.target
    if cell.files:
        assert sorted(cell.files) == story.changed_files
    assert sorted(cell.denied) == sorted(story.denied_tools)
    if cell.findings:
        assert sorted(cell.findings) == sorted(story.findings)
    text = story.report_text
    for moved in cell.moved:
        assert moved.name in text
        assert moved.after in text
    for violation in cell.violations:
        assert violation in text
    for refusal in row.refusals:
        assert re.search(rf"\b{refusal.code}\b", text), text
        assert refusal.file in text
    for version in row.ineligible:
        assert set(version.reasons) == story.reasons_of(version.name, version.version)


def check_remote(scene: Scene, cell: Cell, story: Story) -> None:
    """One branch at the frozen commit and one pull request, or nothing at all."""
    control = scene.outside.servers.host.control
    refs = control.refs(scene.repository)
    ours = {ref: sha for ref, sha in refs.items() if ref.startswith("refs/heads/upgraderun/")}
    pulls = control.pulls(scene.repository)
    assert scene.built.base_commit == refs["refs/heads/main"]
    if not cell.publishes:
        assert {} == ours
        assert [] == pulls
        return
    assert [story.commit] == list(ours.values())
    assert 1 == len(pulls)
    assert "open" == pulls[0]["state"]
    created = [u for u in control.ref_updates(scene.repository) if u["ref"] in ours]
    assert ["create"] == [update["kind"] for update in created]
    for pattern in cell.says:
        assert re.search(pattern, pulls[0]["body"]), pulls[0]["body"]


def fetch_published(scene: Scene, story: Story) -> None:
    """Bring the published branch from the host into the local repository."""
    from support.gitclient import authenticated, git

    host = scene.outside.servers.host
    url = authenticated(host.repository_url(scene.repository), scene.built.clone_token)
    git(scene.built.local, "fetch", "-q", url, story.commit)
