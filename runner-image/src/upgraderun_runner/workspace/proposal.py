"""The one commit of a run: recipe, computed id, freeze, record (upgrade-run.md §10, §13.4).

Callers: `prepare_proposal` (freeze), the start of an incarnation (recover), `verify` (rebuild).
The caller appends entries and uploads artifacts. HEAD never moves.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from upgraderun_protocol.ids import CommitId, ProposalDigest, RunUid, Sha256, TreeId
from upgraderun_protocol.outcomes import ConflictKind

from upgraderun_runner.workspace.diff import TreeDiff
from upgraderun_runner.workspace.faults import FaultPoint, no_fault
from upgraderun_runner.workspace.git import Git


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that determines a commit id. Artifact `recipe` of the proposal's intent."""

    tree: TreeId
    parent: CommitId
    author_name: str
    author_email: str
    unix_seconds: int
    title: str
    body: str
    run_uid: RunUid
    proposal: str


@dataclass(frozen=True, slots=True)
class Target:
    """What is upgraded: `python`, `httpx`, from, to."""

    ecosystem: str
    name: str
    from_version: str
    to_version: str


@dataclass(frozen=True, slots=True)
class ProposalFile:
    """One file that the proposal adds or changes; `sha256` names the artifact with its content."""

    path: str
    mode: str
    blob: str
    size: int
    sha256: Sha256


@dataclass(frozen=True, slots=True)
class ProposalRecord:
    """What is frozen; SHA-256 of its canonical JSON is the proposal digest."""

    version: int
    recipe: Recipe
    base_commit: CommitId
    base_tree: TreeId
    commit: CommitId
    target: Target
    pair: tuple[str, ...]
    files: tuple[ProposalFile, ...]
    evidence: Mapping[str, str]
    readiness: tuple[str, ...]
    config_hash: Sha256
    images: Mapping[str, str]
    time: str


@dataclass(frozen=True, slots=True)
class Artifact:
    """Bytes to be stored before the entry that names them."""

    sha256: Sha256
    content: bytes


@dataclass(frozen=True, slots=True)
class FrozenProposal:
    """The record, its digest, and every artifact: the files' contents and the record itself."""

    record: ProposalRecord
    digest: ProposalDigest
    artifacts: tuple[Artifact, ...]


class ProposalJournal(Enum):
    """What the journal says of a proposal."""

    OPEN = "open"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class ProposalStands:
    """Done: nothing to do; publication verifies."""


@dataclass(frozen=True, slots=True)
class FinishFreeze:
    """Make the commit again, set the ref, upload what is missing, append done."""


@dataclass(frozen=True, slots=True)
class ProposalContradiction:
    """Append a conflict; the proposal is invalid."""

    kind: ConflictKind
    expected: str
    observed: str


ProposalDecision = ProposalStands | FinishFreeze | ProposalContradiction


def proposal_id(run_uid: RunUid, step: int) -> str:
    """`<uid8>-s<i>`."""
    raise NotImplementedError


def proposal_ref(proposal: str) -> str:
    """`refs/upgraderun/proposals/<proposal id>`."""
    raise NotImplementedError


def commit_message(recipe: Recipe) -> str:
    """Title, blank line, body, blank line, the two trailers, one newline."""
    raise NotImplementedError


def commit_id(recipe: Recipe) -> CommitId:
    """The id that git will give, computed from the object's bytes. Pure."""
    raise NotImplementedError


def decide_proposal(
    journal: ProposalJournal,
    *,
    expected: CommitId,
    ref: CommitId | None,
    recomputed: CommitId,
    tree_present: bool,
    work_tree: TreeId | None,
    recipe_tree: TreeId,
) -> ProposalDecision:
    """The table of upgrade-run.md §13.4. Pure and total.

    `work_tree` is the candidate tree of `work/`, asked only where the tree's objects are missing.
    """
    raise NotImplementedError


async def tree_is_present(git: Git, tree: TreeId) -> bool:
    """Whether a tree and all it reaches are in the object store."""
    raise NotImplementedError


async def freeze(git: Git, recipe: Recipe, fault: FaultPoint = no_fault) -> CommitId:
    """Make commit and ref; repeatable. The intent with this recipe must stand already.

    Raises WorkspaceContradicts `recipe_mismatch` or `proposal_ref_moved`.
    """
    raise NotImplementedError


async def proposal_files(
    git: Git, diff: TreeDiff
) -> tuple[tuple[ProposalFile, ...], tuple[Artifact, ...]]:
    """Files and artifacts of a diff from the base. Raises TreeRefused for a deletion, a link, a
    mode or a size that a proposal may not have.
    """
    raise NotImplementedError


def seal(record: ProposalRecord, files: tuple[Artifact, ...]) -> FrozenProposal:
    """Digest a record and add it to the artifacts."""
    raise NotImplementedError
