"""The tables of upgrade-run.md §13.5 as pure, total functions.

Caller: `forge.publication`, which observes before and performs after. The words of the spec's
tables are the names here.
"""

from dataclasses import dataclass
from enum import Enum

from upgraderun_protocol.ids import CommitId
from upgraderun_protocol.outcomes import ConflictKind

from upgraderun_runner.forge.github import SeenPullRequest, Unknown


class EffectJournal(Enum):
    """What the journal says of `push` or `pr`: its last id."""

    NOT_OPEN = "not_open"
    OPEN = "open"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class BranchAt:
    """The branch exists at a commit."""

    commit: CommitId


@dataclass(frozen=True, slots=True)
class BranchAbsent:
    """The forge says that there is no such branch. `confirmed`: said twice, ≥ 180 s apart."""

    confirmed: bool = False


BranchSeen = BranchAt | BranchAbsent | Unknown
PullRequestsSeen = tuple[SeenPullRequest, ...] | Unknown


@dataclass(frozen=True, slots=True)
class Ours:
    """What is ours: branch, base branch, commit, and the marker's run and digest."""

    branch: str
    base_branch: str
    commit: CommitId
    run_uid: str
    proposal_digest: str


@dataclass(frozen=True, slots=True)
class Push:
    """Append an intent if `needs_intent`, push create-only, look again."""

    needs_intent: bool


@dataclass(frozen=True, slots=True)
class RecordBranch:
    """Append push done, `found`."""


@dataclass(frozen=True, slots=True)
class BranchStands:
    """Go on to the pull request."""


@dataclass(frozen=True, slots=True)
class Create:
    """Append an intent if `needs_intent`, create, verify the head, look again."""

    needs_intent: bool


@dataclass(frozen=True, slots=True)
class RecordPullRequest:
    """Append pr done with number and state."""

    pull_request: SeenPullRequest


@dataclass(frozen=True, slots=True)
class PullRequestStands:
    """Done already."""


@dataclass(frozen=True, slots=True)
class LookAtBranch:
    """No pull request and the branch isn't at our commit: back to the branch table."""


@dataclass(frozen=True, slots=True)
class PublicationConflict:
    """`publication_conflict`: nothing is touched. `evidence` are short lines."""

    kind: ConflictKind
    expected: str
    observed: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Declined:
    """`publication_declined`: somebody decided against it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Unknown: no verdict; come back."""

    reason: str
    after_seconds: int | None = None


BranchDecision = Push | RecordBranch | BranchStands | PublicationConflict | Declined | Wait
PullRequestDecision = (
    Create
    | RecordPullRequest
    | PullRequestStands
    | LookAtBranch
    | PublicationConflict
    | Declined
    | Wait
)


def decide_branch(
    journal: EffectJournal, seen: BranchSeen, pull_requests: PullRequestsSeen, ours: Ours
) -> BranchDecision:
    """First table of §13.5. `pull_requests` only matters where a done branch is absent."""
    raise NotImplementedError


def decide_pull_request(
    journal: EffectJournal, pull_requests: PullRequestsSeen, branch: BranchSeen, ours: Ours
) -> PullRequestDecision:
    """Second table of §13.5."""
    raise NotImplementedError
