"""Typed calls to the part of the GitHub API that publication uses. Decides nothing.

Callers: `forge.publication`. Each read answers with a value, or `Unknown`; each write with what
the forge said. Links are built from the policy's host and a number, never copied (H22).
"""

from dataclasses import dataclass

from upgraderun_protocol.ids import CommitId

from upgraderun_runner.forge.http import ForgeHttp


@dataclass(frozen=True, slots=True)
class Unknown:
    """The forge couldn't be read; `retry_after_seconds` if it said when to come back."""

    reason: str
    retry_after_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Denied:
    """A definite no: 401, 403 without rate limit, a rule or hook. Waits for a person."""

    text: str


@dataclass(frozen=True, slots=True)
class SeenPullRequest:
    """One pull request as the forge shows it. `state` is open, closed or merged."""

    number: int
    state: str
    head_commit: CommitId
    head_repository: str
    base_branch: str
    body: str
    author: str


@dataclass(frozen=True, slots=True)
class NewPullRequest:
    """What is asked of the forge."""

    title: str
    body: str
    head: str
    base: str
    draft: bool


@dataclass(frozen=True, slots=True)
class Created:
    """201: the pull request as answered."""

    pull_request: SeenPullRequest


@dataclass(frozen=True, slots=True)
class Rejected:
    """422: somebody, perhaps we, was first, or the head isn't visible yet: look."""

    text: str


class GitHub:
    """Calls for one repository, `owner/name`."""

    def __init__(self, http: ForgeHttp, repository: str) -> None:
        raise NotImplementedError

    async def pull_requests_from(
        self, branch: str
    ) -> tuple[SeenPullRequest, ...] | Unknown | Denied:
        """Every pull request whose head is that branch of this repository, in all states."""
        raise NotImplementedError

    async def create_pull_request(
        self, wish: NewPullRequest
    ) -> Created | Rejected | Unknown | Denied:
        """Create one. Unknown after a lost answer: look before doing it again."""
        raise NotImplementedError

    async def may_push(self) -> bool | Unknown | Denied:
        """Whether this token may push here: tells a denied push from an unreachable host."""
        raise NotImplementedError

    async def commit_author(self, commit: CommitId) -> str:
        """Author of a commit, for evidence; "unknown" if the forge doesn't say."""
        raise NotImplementedError

    async def decorate(
        self, number: int, labels: tuple[str, ...], reviewers: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Add missing labels and reviewers, looked up first; returns warnings. Best effort (§12)."""
        raise NotImplementedError
