"""The base's nearest tag, for versions that a build back end derives from git (upgrade-run.md §7.3).

Callers: the prelude, where the manifest leaves its version to the build. Works in a git directory of its
own: the run's has one commit and no tag, and nothing that is fetched here may change that.
"""

from typing import Final

from upgraderun_protocol.ids import CommitId
from upgraderun_runner.workspace import limits
from upgraderun_runner.workspace.clone import BASE_REF, init_repository
from upgraderun_runner.workspace.git import Bounds, Credential, Git, remote_failure

_TAG_BYTES_MAX: Final = 255


async def nearest_tag(
    git: Git, url: str, branch: str, commit: CommitId, credential: Credential | None
) -> str:
    """Name the nearest tag that `commit` reaches, or "" if it reaches none.

    `git` points at a directory that doesn't exist yet. Fetches the branch's commits and the tags on
    them, without trees and files where the host can leave them out. Raises RemoteFailed for a host that
    didn't answer or refused, GitFailed for a history above 2 GiB.
    """
    await init_repository(git)
    result = await git.remote(
        "fetch",
        "--quiet",
        "--filter=tree:0",
        "--no-recurse-submodules",
        "--no-write-fetch-head",
        "--no-auto-maintenance",
        "--end-of-options",
        url,
        f"+refs/heads/{branch}:{BASE_REF}",
        url=url,
        credential=credential,
        bounds=Bounds(timeout_seconds=limits.CLONE_TIMEOUT_SECONDS, directory=git.git_dir),
    )
    if result.exit_code != 0:
        raise remote_failure("fetch", result)
    described = await git.run("describe", "--tags", "--abbrev=0", commit)
    tag = described.stdout.decode("utf-8", errors="replace").strip()
    usable = described.exit_code == 0 and len(tag.encode()) <= _TAG_BYTES_MAX
    return tag if usable else ""
