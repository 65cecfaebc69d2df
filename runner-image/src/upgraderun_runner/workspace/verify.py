"""The publisher's verification (upgrade-run.md §10 "Verify", security.md H28, H30, H31).

From artifacts and the base alone, in a fresh bare repository; the runner's git directory is never
opened. Caller: the publisher role. Every id is rebuilt and compared before anything is pushed.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from upgraderun_protocol.ids import CommitId, ProposalDigest, Sha256

from upgraderun_runner.workspace.git import Credential, Git
from upgraderun_runner.workspace.proposal import ProposalRecord
from upgraderun_runner.workspace.protected import ProtectedPaths

LoadArtifact = Callable[[Sha256], Awaitable[bytes]]
"""Bytes of an artifact. Raises what the transport raises when the store can't be asked."""


@dataclass(frozen=True, slots=True)
class Verified:
    """The commit lies in the publisher's repository; `branch_head` is the base branch as seen."""

    record: ProposalRecord
    commit: CommitId
    branch_head: CommitId


@dataclass(frozen=True, slots=True)
class Invalidated:
    """`proposal_invalidated`: which comparison failed, with both sides."""

    code: str
    expected: str
    observed: str


@dataclass(frozen=True, slots=True)
class Expectation:
    """What journal and grant say: digest, commit, repository, base branch."""

    digest: ProposalDigest
    commit: CommitId
    url: str
    branch: str


async def verify_proposal(
    git: Git,
    expectation: Expectation,
    load: LoadArtifact,
    protected: ProtectedPaths,
    credential: Credential | None,
) -> Verified | Invalidated:
    """Rebuild the proposal and compare digest, base tree, blobs, tree, commit, paths and limits.

    `git` points at a directory that doesn't exist yet. Raises RemoteFailed (unknown) when the
    forge can't be read; never a verdict then. May be repeated with another empty directory.
    """
    raise NotImplementedError
