"""What `make demo` shows is true: one open pull request, and a tree that passes its own tests."""

import pytest

from demolib.show import RUN, show
from demolib.stage import open_stage
from support.corpus import case
from support.gitclient import authenticated, git
from support.ordinary_user import as_ordinary_user, give_away
from support.plain import PlainProject
from support.platform import remove, world_folder
from support.toolchain import Uv
from support.worlds import trusted_by_git

pytestmark = [pytest.mark.cluster, pytest.mark.real, pytest.mark.slow]


async def test_the_demo_ends_with_a_pull_request_whose_tree_passes_its_own_tests(
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = world_folder()
    try:
        async with open_stage(case("A4"), folder) as stage:
            await show(stage)
            status = await stage.platform.status(RUN)
            control = stage.outside.servers.host.control
            pulls = control.pulls(stage.repository)
            updates = control.ref_updates(stage.repository)
            project = PlainProject(folder / "published", Uv(folder / "uv"), stage.case.sync)
            with trusted_by_git(stage.outside.bundle):
                url = stage.outside.servers.host.repository_url(stage.repository)
                branch = status["publication"]["branch"]
                clone = ["clone", "-q", "--branch", branch, authenticated(url, stage.tokens.clone)]
                git(folder, *clone, str(project.path))
        told = capsys.readouterr().out
        check_tree(project, stage.case.baseline["passed"])
    finally:
        remove(folder)

    assert ["open"] == [pull["state"] for pull in pulls]
    assert status["proposal"]["commit"] == git_head(updates, branch)
    assert f"kubectl get upgradereport {RUN}" in told
    assert '+version = "3.20.2"' in told


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
