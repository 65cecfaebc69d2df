"""The bundle: everything a runner or publisher is told, frozen before its pod exists.

Stored as an artifact; `hello` names its digest, `bundle` serves its bytes, the client checks
them (runner-protocol.md §1.5). Resolved: defaults are filled in, limits are within their caps.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from upgraderun_protocol.ids import CommitId, RunUid, Sha256, TreeId


@dataclass(frozen=True, slots=True)
class RunRef:
    """Which run."""

    namespace: str
    name: str
    uid: RunUid


@dataclass(frozen=True, slots=True)
class RepositoryOptions:
    """What to clone. `url` is the normalised URL; `directory` is `.` for the root.

    `commit` is the base that admission froze, or the spec's; None lets the branch's head decide.
    """

    url: str
    branch: str
    directory: str
    commit: CommitId | None = None


@dataclass(frozen=True, slots=True)
class UpgradeOptions:
    """What may be picked. `select`: Smallest or Latest. Ages are seconds, policy floor applied."""

    select: str
    allow_major: bool
    minimum_release_age_seconds: int
    dependency: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class PythonImage:
    """One Python that the policy offers: its version and the image that holds it."""

    version: str
    image: str


@dataclass(frozen=True, slots=True)
class ScopeOptions:
    """Size of a repair: source files and changed lines, soft ≤ hard (upgrade-run.md §9.4)."""

    soft_files: int
    soft_lines: int
    hard_files: int
    hard_lines: int


@dataclass(frozen=True, slots=True)
class Codemod:
    """Rename of one import path, exact match, for versions of one dependency."""

    dependency: str
    versions: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """Budgets of the loop (upgrade-run.md §9.5)."""

    steps: int
    consecutive_failures: int
    repeated_calls: int
    validation_cycles: int
    unchanged_validations: int


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """The policy as far as a runner needs it.

    `decisions`: digest of the Scripted mode's decision list, an artifact of the run.
    `protected_add`, `protected_release`: globs beside and out of the built-in ones.
    """

    name: str
    python_images: tuple[PythonImage, ...]
    python_registries: tuple[str, ...]
    sandbox: str
    require_tests: bool
    check_timeout_seconds: int
    scope: ScopeOptions
    protected_add: tuple[str, ...]
    protected_release: tuple[str, ...]
    deny: tuple[str, ...]
    codemods: tuple[Codemod, ...]
    author_name: str
    author_email: str
    on_base_moved: str
    ask_unexercised: bool = False
    decisions: Sha256 | None = None


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a proposal goes: forge API, repository `owner/name`, base branch, our branch."""

    forge: str
    host: str
    api_url: str
    repository: str
    base_branch: str


@dataclass(frozen=True, slots=True)
class PublicationOptions:
    """How the pull request looks."""

    enabled: bool
    draft: bool
    labels: tuple[str, ...]
    reviewers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EarlierProposals:
    """Targets `name@version` that need no second proposal (upgrade-run.md §5.1)."""

    proposed: tuple[str, ...]
    declined: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a publisher may push: exactly this proposal, on exactly this branch.

    `record`: artifact of the proposal record, whose SHA-256 is the proposal digest.
    """

    proposal_digest: Sha256
    record: Sha256
    commit: CommitId
    tree: TreeId
    base_commit: CommitId
    branch: str
    approvers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bundle:
    """Everything one pod is told. `role` is `run` or `publish`; `writer` its tag, `a1` or `d2`.

    `python`: which of the policy's Python images the pod is made of; empty for its runner image.
    """

    version: int
    role: str
    writer: str
    run: RunRef
    mode: str
    ecosystem: str
    config_hash: Sha256
    repository: RepositoryOptions
    upgrade: UpgradeOptions
    policy: PolicyOptions
    limits: LimitOptions
    publication: PublicationOptions
    earlier: EarlierProposals
    active_deadline_seconds: int
    destination: Destination | None = None
    delivery: Delivery | None = None
    python: str = ""
    notes: Mapping[str, str] | None = None
