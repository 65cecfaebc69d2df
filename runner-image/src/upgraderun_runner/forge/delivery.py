"""What publication is given and what it answers: values and the journal it writes through.

Callers: `forge.publication` and its two halves, the publisher role.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from upgraderun_protocol.effects import FaultPoint
from upgraderun_protocol.ids import CommitId, RunUid
from upgraderun_runner.forge import limits
from upgraderun_runner.forge.github import Denied, GitHub
from upgraderun_runner.forge.http import Sleep, WritePacer
from upgraderun_runner.forge.tables import (
    BranchDecision,
    Declined,
    EffectJournal,
    Forbidden,
    Ours,
    PublicationConflict,
    PullRequestDecision,
    Wait,
)
from upgraderun_runner.workspace.git import Credential, Git

EffectName = Literal["push", "pr"]
OutcomeState = Literal["done", "failed", "conflict"]


class PublicationJournal(Protocol):
    """What the publisher role gives: the fold's view and appends of `<effect>/<k>`.

    Data keys are those of docs/journal.md; `evidence` of a conflict is the caller's to store.
    """

    def state(self, effect: EffectName) -> EffectJournal:
        """DONE once an id is done, else OPEN while one is open, else NOT_OPEN."""

    def pull_request_number(self) -> int | None:
        """Number in the done `pr` entry."""

    async def intent(self, effect: EffectName, data: Mapping[str, str]) -> None:
        """Open a new id. The API checks grant, `suspend`, `cancel`; a refusal raises."""

    async def outcome(
        self, effect: EffectName, state: OutcomeState, data: Mapping[str, str]
    ) -> None:
        """Close the open id; where none is open, write the outcome under a new id."""

    def defer_done(
        self, effect: EffectName, data: Mapping[str, str], recorded: Callable[[], None]
    ) -> None:
        """Count it as done now, but let the entry travel with the next one; then call `recorded`."""

    async def flush(self) -> None:
        """Append what was deferred and found no company."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where to: clone URL, web root of the repository for links, branches, looks."""

    url: str
    web_url: str
    branch: str
    base_branch: str
    draft: bool
    labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Subject:
    """What is published: the verified commit, the texts (marker last), the marker's parts."""

    commit: CommitId
    title: str
    body: str
    run_uid: RunUid
    proposal_digest: str


@dataclass(frozen=True, slots=True)
class Remote:
    """How the remote is reached. `git` holds the commit; `pacer` is the one of `forge`'s client."""

    forge: GitHub
    git: Git
    credential: Credential | None
    pacer: WritePacer
    sleep: Sleep


@dataclass(frozen=True, slots=True)
class BranchEnsured:
    """The branch is at our commit and the journal says so."""

    found: bool


@dataclass(frozen=True, slots=True)
class PullRequestEnsured:
    """The pull request is ours and the journal says so."""

    number: int
    url: str
    found: bool
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PublicationUnknown:
    """No verdict: end this pass, come back after `after_seconds` (None: the caller's backoff)."""

    reason: str
    after_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class PublicationDenied:
    """The forge refused for good; an open intent is journaled failed. `ForgeDenied` with its text."""

    text: str


@dataclass(frozen=True, slots=True)
class PublicationDeclined:
    """`publication_declined`."""

    reason: str


NotPublished = PublicationConflict | PublicationUnknown | PublicationDenied | PublicationDeclined


@dataclass(frozen=True, slots=True)
class Delivery:
    """Everything that one call of `ensure_*` works with; holds no state but the journal's."""

    to: Destination
    subject: Subject
    remote: Remote
    journal: PublicationJournal
    fault: FaultPoint

    @property
    def ours(self) -> Ours:
        """What the tables compare with."""
        return Ours(
            self.to.branch,
            self.to.base_branch,
            self.subject.commit,
            self.subject.run_uid,
            self.subject.proposal_digest,
        )

    async def pause(self, seconds: int) -> None:
        """Sleep, but not for nothing."""
        if seconds:
            await self.remote.sleep(seconds)

    async def denied(self, effect: EffectName, denied: Denied) -> PublicationDenied:
        """Close an open intent as failed, and say so."""
        if self.journal.state(effect) is EffectJournal.OPEN:
            data = {"reason": "denied", "message": denied.text[: limits.ENTRY_TEXT_MAX]}
            status = {} if denied.status is None else {"status": str(denied.status)}
            await self.journal.outcome(effect, "failed", {**data, **status})
        return PublicationDenied(denied.text)

    async def conflict(
        self, effect: EffectName, conflict: PublicationConflict
    ) -> PublicationConflict:
        """Journal a conflict, touch nothing, and return it."""
        data = {
            "conflict": conflict.kind.value,
            "expected": conflict.expected[: limits.ENTRY_TEXT_MAX],
            "observed": conflict.observed[: limits.ENTRY_TEXT_MAX],
        }
        await self.journal.outcome(effect, "conflict", data)
        return conflict

    async def ended(
        self, effect: EffectName, decision: BranchDecision | PullRequestDecision
    ) -> NotPublished | None:
        """The answer of a decision that ends the pass; None for one that goes on."""
        match decision:
            case PublicationConflict():
                return await self.conflict(effect, decision)
            case Declined(reason):
                return PublicationDeclined(reason)
            case Wait(reason, after_seconds):
                return PublicationUnknown(reason, after_seconds)
            case Forbidden(text, status):
                return await self.denied(effect, Denied(text, status))
        return None
