"""What single entries say, with types: the parts of `RunState`. No logic but conversion.

Callers: `journal.state` makes them; `decide`, `observe`, `finalize`, `api` read them. Strings that
stand in an entry's `data` become numbers, booleans and ids here, nowhere else.
"""

from dataclasses import dataclass
from enum import StrEnum

from upgraderun_protocol.ends import LOSSES, EndCause
from upgraderun_protocol.entries import EntryState
from upgraderun_protocol.ids import (
    CommitId,
    EntryId,
    Epoch,
    PodUid,
    ProposalDigest,
    RequestDigest,
    Sha256,
    TreeId,
    WriterTag,
)


class Role(StrEnum):
    """Kind of a writer."""

    RUNNER = "runner"
    PUBLISHER = "publisher"


@dataclass(frozen=True, slots=True)
class Admission:
    """Phase 0: what the policy allowed. `policy` and `earlier` are artifacts."""

    at: str
    policy_name: str
    config_hash: str
    policy: Sha256
    policy_hash: str | None = None
    repository: str | None = None
    branch: str | None = None
    base_commit: CommitId | None = None
    host: str | None = None
    generation: str | None = None
    earlier: Sha256 | None = None


@dataclass(frozen=True, slots=True)
class End:
    """Why a pod speaks no more. `outcome` is the verdict's, if it brought one."""

    at: str
    cause: EndCause
    pod_uid: PodUid | None = None
    exit_code: int | None = None
    reason: str | None = None
    message: str | None = None
    outcome: str | None = None
    verdict_id: str | None = None
    verdict: Sha256 | None = None
    report: Sha256 | None = None
    until: str | None = None
    question: Sha256 | None = None
    python: str | None = None

    @property
    def is_loss(self) -> bool:
        """Whether it counts against the limits of upgrade-run.md §9.5."""
        return self.cause in LOSSES


@dataclass(frozen=True, slots=True)
class PodRecord:
    """One runner pod (`a<n>`) or publisher pod (`d<n>`).

    `pod_uid` is None until the creation is recorded; `epoch` and `nonce_hash` belong to its last
    incarnation; `contradicted` says that its entry ended in conflict.
    """

    tag: WriterTag
    role: Role
    number: int
    pod_name: str
    image: str | None
    bundle: Sha256
    planned_at: str
    pod_uid: PodUid | None = None
    epoch: Epoch | None = None
    nonce_hash: str | None = None
    incarnations: int = 0
    end: End | None = None
    contradicted: bool = False

    @property
    def is_open(self) -> bool:
        """Whether it may still speak for the run, were the run not ended."""
        return self.end is None and not self.contradicted


@dataclass(frozen=True, slots=True)
class Base:
    """What the run starts from."""

    commit: CommitId
    tree: TreeId


@dataclass(frozen=True, slots=True)
class Context:
    """Phase 3: from here on the run is resumable."""

    at: str
    config_hash: str
    ecosystem: str
    context: Sha256
    python: str | None = None
    image: str | None = None
    isolation: str | None = None


@dataclass(frozen=True, slots=True)
class Baseline:
    """The untouched tree passed its checks."""

    at: str
    tree: TreeId
    config_hash: str
    record: Sha256
    tests: str | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """The upgrade that was picked."""

    name: str
    from_version: str
    to_version: str


@dataclass(frozen=True, slots=True)
class Validation:
    """The last completed validation of a candidate tree."""

    at: str
    step: EntryId
    clean: bool
    tree: TreeId | None


@dataclass(frozen=True, slots=True)
class Proposal:
    """The frozen commit. `sources` tells whether source files changed, as the runner wrote it."""

    id: EntryId
    at: str
    digest: ProposalDigest
    commit: CommitId
    tree: TreeId
    target: Target
    files: int
    added: int
    removed: int
    record: Sha256
    report: Sha256
    sources: str | None = None
    recovered: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What people answered, as counted: `decision` is one of `ends.RequestDecision`."""

    at: str
    decision: str
    by: str | None = None
    approval: str | None = None
    decided_at: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A question to people. `presentation` is the digest of what the report shows.

    `question` is the runner's own, where it asked in the middle of its work, with the size of the
    repair; None for the publication of the proposal.
    """

    id: EntryId
    number: int
    ask: str
    digest: RequestDigest
    nonce: str
    requested_at: str
    expires_at: str
    presentation: Sha256
    answer: Answer | None = None
    question: Sha256 | None = None
    files: int = 0
    lines: int = 0


@dataclass(frozen=True, slots=True)
class Push:
    """One push: its intent, if it had one, and its outcome, once known (`state` None: open)."""

    id: EntryId
    number: int
    at: str
    branch: str | None = None
    commit: CommitId | None = None
    proposal: str | None = None
    grant: str | None = None
    state: EntryState | None = None
    settled_at: str | None = None
    pushed: CommitId | None = None
    found: bool = False
    reason: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class PullRequest:
    """One pull request: its intent, if it had one, and its outcome (`state` None: open)."""

    id: EntryId
    number: int
    at: str
    branch: str | None = None
    commit: CommitId | None = None
    state: EntryState | None = None
    settled_at: str | None = None
    pull_number: int | None = None
    pull_state: str | None = None
    url: str | None = None
    head: CommitId | None = None
    found: bool = False
    warnings: str = ""
    reason: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the run ended; written once. `name` is the outcome table's journal name."""

    at: str
    name: str
    message: str = ""
    cause: str | None = None
    detail: str | None = None
    verdict_id: str | None = None
    pod_uid: PodUid | None = None
    exit_code: int | None = None
    verdict: Sha256 | None = None
    report: Sha256 | None = None


@dataclass(frozen=True, slots=True)
class Conflict:
    """The first contradiction that the journal records, and where."""

    entry: EntryId
    at: str
    kind: str
    expected: str
    observed: str
    evidence: Sha256 | None = None


@dataclass(frozen=True, slots=True)
class CurrentWriter:
    """The one pod that may speak for the run now. `epoch` is None before its first `hello`."""

    tag: WriterTag
    role: Role
    number: int
    pod_name: str
    pod_uid: PodUid | None
    epoch: Epoch | None


@dataclass(frozen=True, slots=True)
class LossCount:
    """Losses of upgrade-run.md §9.5: `in_row` since the last `done` entry of a pod's own work."""

    in_row: int = 0
    total: int = 0
