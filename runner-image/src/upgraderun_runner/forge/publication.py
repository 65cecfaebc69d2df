"""Publication: `ensure_branch`, then `ensure_pull_request`, one path each (upgrade-run.md §12).

Observe → decide (`forge.tables`) → perform one effect → record, until a result stands. The first
attempt, a retry and a recovery are the same call. Caller: the publisher role, which hands in the
journal: an intent is appended before its effect, an outcome after it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from upgraderun_protocol.ids import CommitId, RunUid

from upgraderun_runner.forge.github import GitHub
from upgraderun_runner.forge.http import Monotonic, Sleep, WritePacer
from upgraderun_runner.forge.tables import EffectJournal, PublicationConflict, SeenPullRequest
from upgraderun_runner.workspace.faults import FaultPoint, no_fault
from upgraderun_runner.workspace.git import Credential, Git

EffectName = Literal["push", "pr"]
OutcomeState = Literal["done", "failed", "conflict"]


class PublicationJournal(Protocol):
    """What the publisher role gives: the fold's view and two appends, `<effect>/<k>`.

    `intent` opens a new id; the API checks grant, `suspend` and `cancel`, and an append that is
    refused raises. `outcome` closes the open id, or writes a fresh id where none is open
    (`found` without an intent of ours). Data keys are those of docs/journal.md.
    """

    def state(self, effect: EffectName) -> EffectJournal: ...

    async def intent(self, effect: EffectName, data: Mapping[str, str]) -> None: ...

    async def outcome(
        self, effect: EffectName, state: OutcomeState, data: Mapping[str, str]
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class Destination:
    """Where to: clone URL, web root for links, branches, draft, labels, reviewers."""

    url: str
    web_url: str
    branch: str
    base_branch: str
    draft: bool
    labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Subject:
    """What is published: the verified commit, the texts, the marker's parts."""

    commit: CommitId
    title: str
    body: str
    run_uid: RunUid
    proposal_digest: str


@dataclass(frozen=True, slots=True)
class BranchEnsured:
    """The branch is at our commit and the journal says so."""

    found: bool


@dataclass(frozen=True, slots=True)
class PullRequestEnsured:
    """The pull request is ours and the journal says so."""

    pull_request: SeenPullRequest
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
    """The forge refused for good; the intent is journaled failed. `ForgeDenied` with its text."""

    text: str


@dataclass(frozen=True, slots=True)
class PublicationDeclined:
    """`publication_declined`."""

    reason: str


NotPublished = PublicationConflict | PublicationUnknown | PublicationDenied | PublicationDeclined


class Publication:
    """One delivery's view of the remote. Holds no state between calls but the journal's."""

    def __init__(
        self,
        destination: Destination,
        subject: Subject,
        *,
        forge: GitHub,
        git: Git,
        credential: Credential | None,
        journal: PublicationJournal,
        pacer: WritePacer,
        monotonic: Monotonic,
        sleep: Sleep,
        fault: FaultPoint = no_fault,
    ) -> None:
        raise NotImplementedError

    async def ensure_branch(self) -> BranchEnsured | NotPublished:
        """Our branch at our commit, created only. Conflicts are journaled before they return."""
        raise NotImplementedError

    async def ensure_pull_request(self) -> PullRequestEnsured | NotPublished:
        """One pull request of ours, then labels and reviewers. Call after `ensure_branch`."""
        raise NotImplementedError
