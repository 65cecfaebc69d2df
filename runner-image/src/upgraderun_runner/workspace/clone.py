"""Cloning the base (upgrade-run.md §3 phase 2): fetch, strict check, detached, nothing checked out.

Callers: the prelude of the runner; `verify` uses `fetch_base` for the publisher's bare repository.
"""

from dataclasses import dataclass

from upgraderun_protocol.ids import CommitId, TreeId

from upgraderun_runner.workspace.git import Credential, Git


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


async def clone_base(git: Git, source: Source, credential: Credential | None) -> Base:
    """Create the git directory, fetch the branch, set HEAD detached to the base.

    Raises BaseMissing for an absent branch or an unreachable commit, RemoteFailed for a host that
    didn't answer or refused, GitFailed for objects that fail the strict check or a clone above
    2 GiB. Not repeatable in the same directory: a new start uses the next generation.
    """
    raise NotImplementedError


async def remote_refs(
    git: Git, url: str, refs: tuple[str, ...], credential: Credential | None
) -> dict[str, CommitId]:
    """Ask the host which of these full ref names exist; absent ones are left out.

    Raises RemoteFailed: unknown, never "absent".
    """
    raise NotImplementedError
