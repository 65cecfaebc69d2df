"""The tag that a version derived from git starts from (upgrade-run.md §7.3)."""

from pathlib import Path
from typing import Any

import pytest

from support.fixtures.launch import Host
from upgraderun_protocol.ids import CommitId
from upgraderun_runner.workspace.clone import Source, clone_base
from upgraderun_runner.workspace.errors import RemoteFailed
from upgraderun_runner.workspace.git import Credential, Git
from upgraderun_runner.workspace.tags import nearest_tag

REPOSITORY = "acme/shop"


@pytest.fixture
def url(host: Host) -> str:
    return host.repository_url(REPOSITORY)


@pytest.fixture
def aside(git: Git, tmp_path: Path) -> Git:
    return Git(git.settings, tmp_path / "tags.git")


def history(remote: Any, length: int) -> list[CommitId]:
    commits: list[CommitId] = []
    for number in range(length):
        parents = commits[-1:]
        commits.append(remote.commit(remote.tree({"a.py": f"x = {number}\n"}), *parents))
    return commits


async def test_the_nearest_one_below_the_base_is_found(
    aside: Git, remote: Any, url: str, clone_credential: Credential
) -> None:
    old, near, base, later = history(remote, 4)
    remote.git("tag", "v1.0.0", old)
    remote.git("tag", "-m", "a release", "v1.1.0", near)
    remote.git("tag", "v2.0.0", later)

    assert "v1.1.0" == await nearest_tag(aside, url, "main", base, clone_credential)


async def test_a_tag_of_another_branch_is_none(
    aside: Git, remote: Any, url: str, clone_credential: Credential
) -> None:
    (base,) = history(remote, 1)
    other = remote.commit(remote.tree({"b.py": "y = 1\n"}), base, branch="other")
    remote.git("tag", "v9.0.0", other)

    assert "" == await nearest_tag(aside, url, "main", base, clone_credential)


async def test_files_stay_at_the_host(
    aside: Git, remote: Any, url: str, clone_credential: Credential
) -> None:
    """A large repository costs its commits, not what they hold."""
    base = remote.commit(remote.tree({"a.py": "x = 1\n"}))
    remote.git("tag", "v1.0.0", base)

    await nearest_tag(aside, url, "main", base, clone_credential)

    objects = await aside.run("cat-file", "--batch-all-objects", "--batch-check=%(objecttype)")
    assert b"commit\n" == objects.stdout


async def test_the_directory_of_the_run_is_left_alone(
    git: Git, aside: Git, remote: Any, url: str, clone_credential: Credential
) -> None:
    _, base = history(remote, 2)
    remote.git("tag", "v1.0.0", base)
    await clone_base(git, Source(url), clone_credential)

    await nearest_tag(aside, url, "main", base, clone_credential)

    assert b"" == (await git.run("tag", "--list")).stdout
    assert b"true" == (await git.run("rev-parse", "--is-shallow-repository")).stdout.strip()


async def test_a_refusal_is_no_answer(aside: Git, remote: Any, url: str) -> None:
    base = remote.commit(remote.tree({"a.py": "x = 1\n"}))

    with pytest.raises(RemoteFailed):
        await nearest_tag(
            aside, url, "main", base, Credential(url.partition("/acme")[0], "x", "wrong")
        )
