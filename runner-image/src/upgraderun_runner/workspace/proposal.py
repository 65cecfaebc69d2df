"""The one commit of a run: recipe, computed id, freeze, record (upgrade-run.md §10, §13.4).

Callers: `prepare_proposal` (freeze), the start of an incarnation (recover), `verify` (rebuild).
The caller appends entries and uploads artifacts. HEAD never moves.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.effects import FaultPoint, no_fault
from upgraderun_protocol.ids import CommitId, ProposalDigest, RunUid, Sha256, TreeId
from upgraderun_protocol.outcomes import ConflictKind
from upgraderun_protocol.records import bounded, to_bytes
from upgraderun_protocol.slugs import uid8
from upgraderun_runner.performing import AsyncEffect
from upgraderun_runner.workspace import limits
from upgraderun_runner.workspace.diff import FileChange, TreeDiff
from upgraderun_runner.workspace.errors import (
    OutputTooLong,
    TreeRefused,
    Violation,
    WorkspaceContradicts,
)
from upgraderun_runner.workspace.git import Bounds, Git, Identity, Stamp, resolve_ref
from upgraderun_runner.workspace.paths import shown, write_violation
from upgraderun_runner.workspace.recipe import Recipe, commit_id, commit_message
from upgraderun_runner.workspace.trees import EXECUTABLE, REGULAR

RECORD_VERSION: Final = 1
_NOT_THERE: Final = "0" * 40


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
    readiness: tuple[str, ...]
    config_hash: Sha256
    time: str
    pair: tuple[str, ...] = bounded(items_max=2)
    files: tuple[ProposalFile, ...] = bounded(items_max=limits.PROPOSAL_FILES_MAX)
    evidence: Mapping[str, str] = bounded(items_max=32)
    images: Mapping[str, str] = bounded(items_max=16)


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
    return f"{uid8(run_uid)}-s{step}"


def proposal_ref(proposal: str) -> str:
    """`refs/upgraderun/proposals/<proposal id>`."""
    return f"refs/upgraderun/proposals/{proposal}"


def seal(record: ProposalRecord, files: tuple[Artifact, ...]) -> FrozenProposal:
    """Digest a record and add it to the artifacts. Raises ValueError above 1 MiB."""
    content = to_bytes(record)
    if len(content) > limits.PROPOSAL_RECORD_BYTES_MAX:
        raise ValueError(f"a proposal record of {len(content)} bytes is too large")
    own = Artifact(sha256_of(content), content)
    return FrozenProposal(record, ProposalDigest(own.sha256), (*files, own))


@dataclass(frozen=True, slots=True)
class ProposalObservation:
    """What recovery sees of a proposal: the intent's commit id, and the world.

    `work_tree` is the candidate tree of `work/`, asked only where the recipe's tree is missing from
    the object store: writing it brings the objects back if it is the same tree.
    """

    expected: CommitId
    ref: CommitId | None
    recomputed: CommitId
    recipe_tree: TreeId
    tree_present: bool
    work_tree: TreeId | None


def decide_proposal(journal: ProposalJournal, seen: ProposalObservation) -> ProposalDecision:
    """The table of upgrade-run.md §13.4. Pure and total."""
    mismatch = ConflictKind.RECIPE_MISMATCH
    if journal is ProposalJournal.DONE:
        return ProposalStands()
    if seen.ref not in {None, seen.expected}:
        moved = ConflictKind.PROPOSAL_REF_MOVED
        return ProposalContradiction(moved, seen.expected, str(seen.ref))
    if seen.recomputed != seen.expected:
        return ProposalContradiction(mismatch, seen.expected, seen.recomputed)
    if not seen.tree_present and seen.work_tree != seen.recipe_tree:
        observed = f"tree {seen.work_tree or 'missing'}"
        return ProposalContradiction(mismatch, f"tree {seen.recipe_tree}", observed)
    return FinishFreeze()


async def tree_is_present(git: Git, tree: TreeId) -> bool:
    """Whether a tree and all it reaches are in the object store."""
    result = await git.run(
        "rev-list", "--objects", "--quiet", "--missing=error", "--no-walk", "--end-of-options", tree
    )
    return result.exit_code == 0


async def freeze(git: Git, recipe: Recipe, fault: FaultPoint = no_fault) -> CommitId:
    """Make commit and ref; repeatable. The intent with this recipe must stand already.

    Raises WorkspaceContradicts `recipe_mismatch` or `proposal_ref_moved`.
    """
    made = await PROPOSAL_COMMIT(fault, git, recipe)
    ref = proposal_ref(recipe.proposal)
    found = await resolve_ref(git, ref)
    if found not in {None, made}:
        raise WorkspaceContradicts(ConflictKind.PROPOSAL_REF_MOVED, made, str(found))
    await PROPOSAL_REF(fault, git, ref, made, found)
    return made


async def _commit(git: Git, recipe: Recipe) -> CommitId:
    return await make_commit(git, recipe)


async def _set_ref(git: Git, ref: str, made: CommitId, found: CommitId | None) -> None:
    if found is None:
        await git.check("update-ref", "--no-deref", ref, made, _NOT_THERE)


PROPOSAL_COMMIT: Final = AsyncEffect("proposal_commit", _commit)
PROPOSAL_REF: Final = AsyncEffect("proposal_ref", _set_ref)


async def make_commit(git: Git, recipe: Recipe) -> CommitId:
    """Let git make the commit, and compare its id with the computed one before and after.

    Raises WorkspaceContradicts `recipe_mismatch`.
    """
    stamp = Stamp(Identity(recipe.author_name, recipe.author_email), recipe.unix_seconds)
    out = await git.check(
        "commit-tree", recipe.tree, "-p", recipe.parent, "-F", "-",
        stdin=commit_message(recipe).encode("utf-8"),
        stamp=stamp,
    )  # fmt: skip
    made = out.decode("ascii").strip()
    if made != commit_id(recipe):
        raise WorkspaceContradicts(ConflictKind.RECIPE_MISMATCH, commit_id(recipe), made)
    return CommitId(made)


async def proposal_files(
    git: Git, diff: TreeDiff, pair: frozenset[str]
) -> tuple[tuple[ProposalFile, ...], tuple[Artifact, ...]]:
    """Files and artifacts of a diff from the base, `pair` with its larger bound.

    Raises TreeRefused for what a proposal may not hold (`change_violations`).
    """
    files: list[ProposalFile] = []
    artifacts: list[Artifact] = []
    if refused := change_violations(diff.files):
        raise TreeRefused(refused)
    for change in diff.files:
        assert change.new_blob is not None
        assert change.new_mode is not None
        content = await _bounded_blob(
            git, change.path, change.new_blob, size_max(change.path, pair)
        )
        digest = sha256_of(content)
        artifacts.append(Artifact(digest, content))
        files.append(
            ProposalFile(change.path, change.new_mode, change.new_blob, len(content), digest)
        )
    return tuple(files), tuple(artifacts)


async def _bounded_blob(git: Git, path: str, blob: str, bytes_max: int) -> bytes:
    try:
        return await git.check("cat-file", "blob", blob, bounds=Bounds(stdout_max=bytes_max))
    except OutputTooLong as error:
        refused = Violation("too_large", shown(path), f"more than {bytes_max} bytes")
        raise TreeRefused((refused,)) from error


def size_max(path: str, pair: frozenset[str]) -> int:
    """How large a file of a proposal may be (security.md §4)."""
    if path in pair:
        return limits.PROPOSAL_PAIR_FILE_BYTES_MAX
    return limits.PROPOSAL_FILE_BYTES_MAX


def change_violations(changes: tuple[FileChange, ...]) -> tuple[Violation, ...]:
    """What no proposal may do (security.md H30): delete, touch links, name odd paths, be too many."""
    found: list[Violation] = []
    if len(changes) > limits.PROPOSAL_FILES_MAX:
        detail = f"{len(changes)} files, at most {limits.PROPOSAL_FILES_MAX}"
        found.append(Violation("too_many_files", ".", detail))
    for change in changes:
        name = shown(change.path)
        if refused := write_violation(change.path):
            found.append(refused)
        if change.new_mode is None:
            found.append(Violation("deleted", name, "a proposal deletes nothing"))
        elif not {change.old_mode, change.new_mode} <= {None, REGULAR, EXECUTABLE}:
            found.append(Violation("mode", name, "only regular files change"))
    return tuple(found[: limits.VIOLATIONS_MAX])
