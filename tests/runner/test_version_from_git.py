"""A version that the build back end reads from git: the sandbox's copy has the base's nearest tag (§7.3)."""

from dataclasses import replace
from pathlib import Path

import pytest

from support.bookkeeper import Bookkeeper
from support.gitclient import authenticated, git
from support.ordinary_user import RunnerEnvironment
from support.runnerprocess import PodStandIn, bundle_of
from support.scenarios import BuiltScenario, build_world, load_table
from support.worlds import Outside

READS_A_FILE = 'version = (SOURCE / "storefront" / "VERSION").read_text().strip()'
ASKS_GIT = """import subprocess
    told = subprocess.run(["git", "describe", "--tags"], capture_output=True, text=True, check=True)
    version = told.stdout.strip().removeprefix("v")"""
TEST = """from importlib.metadata import version


def test_the_version_is_the_tag():
    assert version("storefront") == "0.3.0"
"""
pytestmark = pytest.mark.slow


def ask_git_for_the_version(built: BuiltScenario, folder: Path) -> BuiltScenario:
    """One commit more on the row's base; the tags lie one before it and on a branch beside it."""
    work = folder / "work"
    git(folder, "clone", "-q", str(built.local), str(work))
    git(work, "checkout", "-q", "--detach", built.base_commit)
    git(work, "tag", "v0.3.0")
    backend = work / "build_tools" / "backend.py"
    text = backend.read_text()
    assert 1 == text.count(READS_A_FILE)
    backend.write_text(text.replace(READS_A_FILE, ASKS_GIT))
    (work / "tests" / "test_version.py").write_text(TEST)
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", "Ask git for the version")
    commit = git(work, "rev-parse", "HEAD")
    git(work, "commit", "-q", "--allow-empty", "-m", "beside")
    git(work, "tag", "v9.9.9")
    url = authenticated(built.repository_url, built.push_token)
    git(work, "push", "-q", url, f"{commit}:refs/heads/{built.branch}", "--tags")
    return replace(built, base_commit=commit)


async def test_the_tests_see_the_version_of_the_nearest_tag(
    folder: Path, runner: RunnerEnvironment, outside: Outside
) -> None:
    row = next(row for row in load_table() if row.id == "dynamic-version")
    name = "version-from-git"
    built = build_world(row, folder / "world", outside.servers, name=name, seen=outside.seen)
    built = ask_git_for_the_version(built, folder)
    keeper = Bookkeeper(bundle_of(built, "Baseline"))
    await keeper.start()
    try:
        pod = PodStandIn(runner, folder / "a1", built, outside.bundle)
        ended = await (await pod.start(keeper)).end()
    finally:
        await keeper.stop()

    told = f"{keeper.verdicts[-1].message if keeper.verdicts else ''}\n{ended.log}"
    assert ["proposal_prepared"] == [verdict.outcome for verdict in keeper.verdicts], told
