"""What `make demo` shows is true, and the commands of the README work on what it leaves."""

import contextlib
import io
import os
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from demolib.show import RUN, show
from demolib.stage import Stage, open_stage
from support.cluster import Cluster
from support.corpus import case
from support.gitclient import authenticated, git
from support.kubeapi import Json
from support.ordinary_user import as_ordinary_user, give_away
from support.pages import script
from support.plain import PlainProject
from support.platform import remove, world_folder
from support.toolchain import ROOT, Uv
from support.worlds import trusted_by_git

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
]

SAMPLES = "upgrades"


@dataclass(frozen=True, slots=True)
class Shown:
    """A showing that has ended, and what the forge had then."""

    stage: Stage
    status: Json
    told: str


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shown() -> AsyncIterator[Shown]:
    folder = world_folder()
    told = io.StringIO()
    async with open_stage(case("A4"), folder) as stage:
        with contextlib.redirect_stdout(told):
            await show(stage)
        yield Shown(stage, await stage.platform.status(RUN), told.getvalue())
    remove(folder)


async def test_the_demo_ends_with_one_pull_request_at_the_frozen_commit(shown: Shown) -> None:
    control = shown.stage.outside.servers.host.control
    pulls = control.pulls(shown.stage.repository)
    branch = shown.status["publication"]["branch"]

    assert ["open"] == [pull["state"] for pull in pulls]
    updates = control.ref_updates(shown.stage.repository)
    assert shown.status["proposal"]["commit"] == git_head(updates, branch)
    assert f"kubectl get upgradereport {RUN}" in shown.told
    assert '+version = "3.20.2"' in shown.told


async def test_the_published_tree_passes_the_librarys_own_tests(shown: Shown) -> None:
    stage = shown.stage
    folder = stage.platform.logs
    project = PlainProject(folder / "published", Uv(folder / "uv"), stage.case.sync)
    url = stage.outside.servers.host.repository_url(stage.repository)
    with trusted_by_git(stage.outside.bundle):
        clone = ["clone", "-q", "--branch", shown.status["publication"]["branch"]]
        git(folder, *clone, authenticated(url, stage.tokens.clone), str(project.path))

    check_tree(project, stage.case.baseline["passed"])


async def test_the_commands_of_the_readme_work_as_they_stand(
    shown: Shown, images: dict[str, str], cluster: Cluster
) -> None:
    try:
        done = run_readme(images["operator"])
    finally:
        cluster.kubectl("delete", "namespace", SAMPLES, "--ignore-not-found", "--timeout=120s")

    assert 0 == done.returncode, done.stdout + done.stderr
    patch = (await shown.stage.platform.report(RUN))["patch"]
    assert "condition met" in done.stdout
    assert "Published" in done.stdout
    assert patch in done.stdout


def run_readme(operator: str) -> subprocess.CompletedProcess[str]:
    """Run every command of the README in one shell, as somebody who follows it."""
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script(ROOT / "README.md")],
        cwd=ROOT,
        env={**os.environ, "OPERATOR": operator},
        capture_output=True,
        text=True,
        check=False,
    )


def git_head(updates: list[dict[str, str]], branch: str) -> str:
    (only,) = [update for update in updates if update["ref"] == f"refs/heads/{branch}"]
    assert "create" == only["kind"]
    return only["new"]


def check_tree(project: PlainProject, expected: int) -> None:
    """Install from its own lock, test as somebody who may not read everything."""
    project.uv(
        project.path, "sync", "--frozen", "--python", "/usr/bin/python3", *project.sync_flags
    )
    give_away(project.path.parent)
    done = project.test(tuple(as_ordinary_user([])))
    assert () == done.failing, done.output
    assert expected == done.counts["passed"]
