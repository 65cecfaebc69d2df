"""The tables of upgrade-run.md §13.5 as pure, total functions.

Caller: `forge.publication`, which observes before and performs after. The words of the spec's
tables are the names here.
"""

from dataclasses import dataclass
from enum import Enum

from upgraderun_protocol.ids import CommitId
from upgraderun_protocol.outcomes import ConflictKind
from upgraderun_protocol.slugs import read_marker
from upgraderun_runner.forge import limits
from upgraderun_runner.forge.github import Denied, SeenPullRequest, Unknown


class EffectJournal(Enum):
    """What the journal says of `push` or `pr`, its ids taken together."""

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
PullRequestsSeen = tuple[SeenPullRequest, ...] | Unknown | Denied


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
    """Append push done."""


@dataclass(frozen=True, slots=True)
class BranchStands:
    """Go on to the pull request."""


@dataclass(frozen=True, slots=True)
class Create:
    """Append an intent if `needs_intent`, create, verify the head."""

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
class ConfirmAbsence:
    """A branch that was there is gone: look once more, not before ABSENCE_SECONDS have passed."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Unknown: no verdict; come back."""

    reason: str
    after_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Forbidden:
    """The forge denies reading: a person must act."""

    text: str
    status: int | None = None


BranchDecision = (
    Push
    | RecordBranch
    | BranchStands
    | PublicationConflict
    | Declined
    | ConfirmAbsence
    | Wait
    | Forbidden
)
PullRequestDecision = (
    Create
    | RecordPullRequest
    | PullRequestStands
    | LookAtBranch
    | PublicationConflict
    | Declined
    | Wait
    | Forbidden
)


def decide_branch(
    journal: EffectJournal, seen: BranchSeen, pull_requests: PullRequestsSeen, ours: Ours
) -> BranchDecision:
    """First table of §13.5. `pull_requests` only matters where a pushed branch is absent."""
    done = journal is EffectJournal.DONE
    if isinstance(seen, Unknown):
        return Wait(seen.reason, seen.retry_after_seconds)
    if isinstance(seen, BranchAt):
        if seen.commit == ours.commit:
            return BranchStands() if done else RecordBranch()
        kind = ConflictKind.HEAD_MOVED if done else ConflictKind.FOREIGN_BRANCH
        return PublicationConflict(kind, f"branch at {ours.commit}", f"branch at {seen.commit}")
    if not done:
        return Push(needs_intent=journal is EffectJournal.NOT_OPEN)
    if isinstance(pull_requests, Unknown):
        return Wait(pull_requests.reason, pull_requests.retry_after_seconds)
    if isinstance(pull_requests, Denied):
        return Forbidden(pull_requests.text, pull_requests.status)
    if pull_requests:
        return BranchStands()  # merged or closed requests speak for themselves in the next table
    if not seen.confirmed:
        return ConfirmAbsence()
    return Declined(f"branch {ours.branch} was removed before a pull request was opened")


def decide_pull_request(
    journal: EffectJournal, pull_requests: PullRequestsSeen, branch: BranchSeen, ours: Ours
) -> PullRequestDecision:
    """Second table of §13.5."""
    if journal is EffectJournal.DONE:
        return PullRequestStands()
    if isinstance(pull_requests, Unknown):
        return Wait(pull_requests.reason, pull_requests.retry_after_seconds)
    if isinstance(pull_requests, Denied):
        return Forbidden(pull_requests.text, pull_requests.status)
    if pull_requests:
        return _judge_found(pull_requests, ours)
    if isinstance(branch, Unknown):
        return Wait(branch.reason, branch.retry_after_seconds)
    if branch == BranchAt(ours.commit):
        return Create(needs_intent=journal is EffectJournal.NOT_OPEN)
    return LookAtBranch()


def _judge_found(pull_requests: tuple[SeenPullRequest, ...], ours: Ours) -> PullRequestDecision:
    expected = f"one pull request of run {ours.run_uid} to {ours.base_branch}"
    foreign = [pull for pull in pull_requests if not is_ours(pull, ours)]
    if foreign:
        kind = ConflictKind.FOREIGN_PULL_REQUEST
        return PublicationConflict(kind, expected, _names(foreign), _evidence(foreign))
    if len(pull_requests) > 1:
        kind = ConflictKind.DUPLICATE_PULL_REQUEST
        return PublicationConflict(kind, expected, _names(pull_requests), _evidence(pull_requests))
    (pull,) = pull_requests
    if pull.state == "closed":
        return Declined(f"pull request #{pull.number} was closed without a merge")
    if pull.state == "merged" or pull.head_commit == ours.commit:
        return RecordPullRequest(pull)
    where = f"pull request #{pull.number}"
    return PublicationConflict(
        ConflictKind.HEAD_MOVED,
        f"{where} at {ours.commit}",
        f"{where} at {pull.head_commit}",
        _evidence(pull_requests),
    )


def is_ours(pull: SeenPullRequest, ours: Ours) -> bool:
    """Whether base branch and marker (run and digest; the target doesn't count) are ours."""
    marker = read_marker(pull.body)
    return (
        pull.base_branch == ours.base_branch
        and marker is not None
        and marker[:2] == (ours.run_uid, ours.proposal_digest)
    )


def _names(pulls: list[SeenPullRequest] | tuple[SeenPullRequest, ...]) -> str:
    shown = ", ".join(f"#{pull.number} by {pull.author}" for pull in pulls[:5])
    return f"pull request {shown}"[: limits.EVIDENCE_CHARACTERS_MAX]


def _evidence(pulls: list[SeenPullRequest] | tuple[SeenPullRequest, ...]) -> tuple[str, ...]:
    return tuple(
        f"#{pull.number} {pull.state} by {pull.author} to {pull.base_branch} at {pull.head_commit}"[
            : limits.EVIDENCE_CHARACTERS_MAX
        ]
        for pull in pulls[:5]
    )
