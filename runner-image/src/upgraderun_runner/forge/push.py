"""Pushing one commit to one new branch (upgrade-run.md §12). Creates only, never forces.

Caller: `forge.publication`.
"""

from dataclasses import dataclass

from upgraderun_protocol.ids import CommitId

from upgraderun_runner.workspace.git import Credential, Git


@dataclass(frozen=True, slots=True)
class PushApplied:
    """Created, or up to date."""


@dataclass(frozen=True, slots=True)
class PushRefused:
    """The server answered and refused: stale expectation, rule or hook. Look before judging."""

    text: str


@dataclass(frozen=True, slots=True)
class PushUnknown:
    """No readable answer: it may have happened."""

    text: str


def push_arguments(url: str, branch: str, commit: CommitId) -> tuple[str, ...]:
    """The argv after `git`: `push --no-verify --porcelain --force-with-lease=refs/heads/<b>: …`."""
    raise NotImplementedError


async def push_branch(
    git: Git, url: str, branch: str, commit: CommitId, credential: Credential | None
) -> PushApplied | PushRefused | PushUnknown:
    """Push once. Never repeats by itself."""
    raise NotImplementedError
