"""Cloning the base (upgrade-run.md §3 phase 2): fetch, strict check, detached, nothing checked out.

Callers: the prelude of the runner (`clone_base`), the publisher's verification (`fetch_commit`).
"""

import re
from dataclasses import dataclass
from typing import Final

from upgraderun_protocol.canonical import is_git_id
from upgraderun_protocol.effects import FaultPoint, no_fault
from upgraderun_protocol.ids import CommitId, TreeId
from upgraderun_runner.performing import AsyncEffect
from upgraderun_runner.workspace import limits
from upgraderun_runner.workspace.errors import BaseMissing, GitFailed
from upgraderun_runner.workspace.git import (
    REMOTE,
    Bounds,
    Credential,
    Git,
    directory_bytes,
    remote_failure,
    resolve_ref,
)

BASE_REF: Final = "refs/upgraderun/base"
"""Where the fetched branch head lies in our git directory; a sandbox never sees it."""

_BRANCH_MAX: Final = 255
_BRANCH_REFUSED: Final = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|\.lock(?:/|$)|(?:^|/)\.")


@dataclass(frozen=True, slots=True)
class Source:
    """What to clone. Without `branch` the host's default; `commit` must be reachable from it."""

    url: str
    branch: str | None = None
    commit: CommitId | None = None


@dataclass(frozen=True, slots=True)
class Base:
    """The commit and tree the run starts from, and the branch it was found on."""

    commit: CommitId
    tree: TreeId
    branch: str


def branch_is_valid(branch: str) -> bool:
    """Whether a branch name is one that git takes, and no option or refspec in disguise."""
    return (
        0 < len(branch.encode()) <= _BRANCH_MAX
        and not _BRANCH_REFUSED.search(branch)
        and not branch.startswith(("-", "/"))
        and not branch.endswith(("/", "."))
        and branch != "@"
    )


async def clone_base(
    git: Git, source: Source, credential: Credential | None, fault: FaultPoint = no_fault
) -> Base:
    """Create the git directory, fetch the branch, set HEAD detached to the base.

    Raises BaseMissing for an absent branch or an unreachable commit, RemoteFailed for a host that
    didn't answer or refused or whose objects fail the strict check, GitFailed for a clone above
    2 GiB. Not repeatable in the same directory: a new start uses the next generation.
    """
    return await CLONE(fault, git, source, credential)


async def _clone(git: Git, source: Source, credential: Credential | None) -> Base:
    branch = source.branch or await _default_branch(git, source.url, credential)
    await init_repository(git)
    head = await fetch_branch(git, source.url, branch, credential, whole=source.commit is not None)
    commit = source.commit or head
    await require_reachable(git, commit, head, branch)
    await git.check("update-ref", "--no-deref", "HEAD", commit)
    return Base(commit, await tree_of(git, commit), branch)


CLONE: Final = AsyncEffect("clone", _clone)


async def init_repository(git: Git) -> None:
    """Make the git directory, without templates and hooks. Refuses one that exists."""
    if git.git_dir.exists():
        raise GitFailed("init", -1, f"{git.git_dir.name} exists already")
    await git.check("init", "--quiet", "--object-format=sha1", "--initial-branch=unused")


async def fetch_branch(
    git: Git, url: str, branch: str, credential: Credential | None, *, whole: bool
) -> CommitId:
    """Fetch one branch into BASE_REF and return its head; `whole` fetches its history too.

    Without history a run of the usual kind (no commit named) moves a fraction of the bytes.
    """
    if not branch_is_valid(branch):
        raise BaseMissing(f"{branch!r} is no branch name")
    depth = await _unshallow(git) if whole else ("--depth=1",)
    result = await git.remote(
        "fetch",
        "--quiet",
        "--no-tags",
        "--no-recurse-submodules",
        "--no-write-fetch-head",
        "--no-auto-maintenance",
        *depth,
        "--end-of-options",
        url,
        f"+refs/heads/{branch}:{BASE_REF}",
        url=url,
        credential=credential,
        bounds=Bounds(timeout_seconds=limits.CLONE_TIMEOUT_SECONDS, directory=git.git_dir),
    )
    if result.exit_code != 0:
        # Asked only now: most branches are there, and each question costs a connection.
        ref = f"refs/heads/{branch}"
        if not await remote_refs(git, url, (ref,), credential):
            raise BaseMissing(f"branch {branch!r} isn't there")
        raise remote_failure("fetch", result)
    if directory_bytes(git.git_dir) > limits.CLONE_BYTES_MAX:
        raise GitFailed("fetch", -1, f"more than {limits.CLONE_BYTES_MAX} bytes on disk")
    head = await resolve_ref(git, BASE_REF)
    if head is None:
        raise GitFailed("fetch", -1, "the fetched branch isn't there")
    return head


async def _unshallow(git: Git) -> tuple[str, ...]:
    """The option that completes a history which an earlier fetch cut; git refuses it elsewhere."""
    shallow = await git.run("rev-parse", "--is-shallow-repository")
    return ("--unshallow",) if shallow.stdout.strip() == b"true" else ()


async def require_reachable(git: Git, commit: CommitId, head: CommitId, branch: str) -> None:
    """Raise BaseMissing unless `commit` is `head` or one of its ancestors."""
    if commit == head:
        return
    known = await git.run("cat-file", "-e", f"{commit}^{{commit}}")
    if known.exit_code == 0:
        found = await git.run("merge-base", "--is-ancestor", commit, head)
        if found.exit_code == 0:
            return
    raise BaseMissing(f"commit {commit} isn't reachable from branch {branch!r} at {head}")


async def tree_of(git: Git, commit: CommitId) -> TreeId:
    """The tree of a commit."""
    out = await git.check("rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}")
    return TreeId(out.decode("ascii").strip())


async def remote_refs(
    git: Git, url: str, refs: tuple[str, ...], credential: Credential | None
) -> dict[str, CommitId]:
    """Ask the host which of these full ref names exist; absent ones are left out.

    Raises RemoteFailed: unknown, never "absent".
    """
    result = await git.remote(
        "ls-remote", "--quiet", "--end-of-options", url, *refs,
        url=url, credential=credential, bounds=REMOTE,
    )  # fmt: skip
    if result.exit_code != 0:
        raise remote_failure("ls-remote", result)
    found: dict[str, CommitId] = {}
    for line in result.stdout.decode("utf-8", errors="replace").splitlines():
        commit, _, name = line.partition("\t")
        if name in refs and is_git_id(commit):  # a pattern also matches deeper names
            found[name] = CommitId(commit)
    return found


async def _default_branch(git: Git, url: str, credential: Credential | None) -> str:
    result = await git.remote(
        "ls-remote", "--quiet", "--symref", "--end-of-options", url, "HEAD",
        url=url, credential=credential, bounds=REMOTE,
    )  # fmt: skip
    if result.exit_code != 0:
        raise remote_failure("ls-remote", result)
    for line in result.stdout.decode("utf-8", errors="replace").splitlines():
        target, _, name = line.removeprefix("ref: ").partition("\t")
        if line.startswith("ref: refs/heads/") and name == "HEAD":
            return target.removeprefix("refs/heads/")
    raise BaseMissing("the repository names no default branch")
