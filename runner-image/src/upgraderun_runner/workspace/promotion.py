"""Promotion of a gated pair into `work/` (upgrade-run.md §8.6) and its recovery (§13.3).

    w1 w2   hashes found in `work/`        b1 b2 before        a1 a2 after
    row 0   outcome journaled       nothing
    row 1   no intent               delete staging, aborted
    row 2   w = a1 a2               done
    row 3   w = b1 b2               interrupted, aborted
    row 4   w = a1 b2, copy of a2   write M2, done
    row 5   w = a1 b2, no copy      conflict staging_lost
    row 6   anything else           conflict promotion_contradicted

Callers: `apply_upgrade` and `normalize_manifests` (write), the start of an incarnation (recover).
The caller appends the entries; nothing here knows the journal.
"""

import shutil
from dataclasses import dataclass
from enum import Enum, StrEnum
from pathlib import Path
from typing import Final, Literal

from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.effects import FaultPoint, no_fault
from upgraderun_protocol.ids import Sha256
from upgraderun_protocol.outcomes import ConflictKind
from upgraderun_runner.performing import Effect
from upgraderun_runner.workspace import limits
from upgraderun_runner.workspace.errors import PathRefused, WorkspaceContradicts
from upgraderun_runner.workspace.files import ABSENT, hash_file, read_file, replace_file
from upgraderun_runner.workspace.layout import Layout

_RETAINED_MANIFEST: Final = "after/manifest"
_RETAINED_LOCK: Final = "after/lock"


class Promotes(StrEnum):
    """What a promotion carries."""

    UPGRADE = "upgrade"
    NORMALIZE = "normalize"


def short(digest: str) -> str:
    """Enough of a hash to compare by eye."""
    return digest[:16]


@dataclass(frozen=True, slots=True)
class PairHashes:
    """SHA-256 of manifest (M1) and lock (M2), or "absent"."""

    manifest: str
    lock: str

    @property
    def short(self) -> str:
        """Both hashes cut to what an entry's data holds; the plan artifact has them whole."""
        return f"manifest {short(self.manifest)}, lock {short(self.lock)}"


@dataclass(frozen=True, slots=True)
class PromotionPlan:
    """The artifact `plan` of a promotion's intent: everything that recovery needs.

    Paths are relative to `work/`; `staging` is the directory's name below `staging/`. The after
    images are artifacts of the same hashes as `after`.
    """

    promotes: Promotes
    manifest_path: str
    lock_path: str
    before: PairHashes
    after: PairHashes
    staging: str


class PromotionJournal(Enum):
    """What the journal says of a promotion."""

    NO_INTENT = "no_intent"
    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Nothing:
    """Row 0: the outcome stands."""


@dataclass(frozen=True, slots=True)
class Abort:
    """Rows 1 and 3: delete staging; `append` says whether `interrupted` has to be appended."""

    row: Literal[1, 3]
    append: bool


@dataclass(frozen=True, slots=True)
class Finish:
    """Rows 2 and 4: promoted; `write_lock` says whether M2 is still to be written."""

    row: Literal[2, 4]
    write_lock: bool


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Rows 5 and 6: append a conflict with these texts; touch nothing."""

    row: Literal[5, 6]
    kind: ConflictKind
    expected: str
    observed: str


PromotionDecision = Nothing | Abort | Finish | Contradiction


def decide_promotion(
    journal: PromotionJournal,
    plan: PromotionPlan | None,
    observed: PairHashes | None,
    *,
    lock_copy: bool,
) -> PromotionDecision:
    """The rows of upgrade-run.md §13.3, in order. Pure and total.

    `lock_copy` says whether a copy of M2 (staging or artifact) hashes to `after.lock`. Plan and
    hashes may be None only where no promotion is open: there they aren't looked at.
    """
    if journal is PromotionJournal.CLOSED:
        return Nothing()
    if journal is PromotionJournal.NO_INTENT:
        return Abort(row=1, append=False)
    assert plan is not None
    assert observed is not None
    if observed == plan.after:
        return Finish(row=2, write_lock=False)
    if observed == plan.before:
        return Abort(row=3, append=True)
    expected = f"before {plan.before.short} or after {plan.after.short}"
    if observed == PairHashes(plan.after.manifest, plan.before.lock):
        if lock_copy:
            return Finish(row=4, write_lock=True)
        missing = f"lock {short(plan.after.lock)} in staging or store"
        return Contradiction(5, ConflictKind.STAGING_LOST, missing, "no copy with that hash")
    return Contradiction(6, ConflictKind.PROMOTION_CONTRADICTED, expected, observed.short)


def observe_pair(layout: Layout, plan: PromotionPlan) -> PairHashes:
    """Hash the pair in `work/`. A link or directory in its place counts as a third content."""
    return PairHashes(
        _hash_or_kind(layout.work, plan.manifest_path), _hash_or_kind(layout.work, plan.lock_path)
    )


def _hash_or_kind(root: Path, path: str) -> str:
    try:
        return hash_file(root, path) or ABSENT
    except PathRefused as refused:
        return refused.violation.code


def retain_pair(
    layout: Layout,
    plan: PromotionPlan,
    manifest: bytes,
    lock: bytes,
    fault: FaultPoint = no_fault,
) -> None:
    """Keep both after-images below staging, before the intent: recovery reads the lock's."""
    STAGING(fault, layout, plan, manifest, lock)


def _retain_pair(layout: Layout, plan: PromotionPlan, manifest: bytes, lock: bytes) -> None:
    staging = layout.staging_root / plan.staging
    staging.mkdir(parents=True, exist_ok=True)
    replace_file(staging, _RETAINED_MANIFEST, manifest)
    replace_file(staging, _RETAINED_LOCK, lock)


def retained_lock(layout: Layout, plan: PromotionPlan) -> bytes | None:
    """The retained M2 if it is there and hashes to `after.lock`."""
    staging = layout.staging_root / plan.staging
    try:
        content = read_file(staging, _RETAINED_LOCK, limits.PROPOSAL_PAIR_FILE_BYTES_MAX)
    except (PathRefused, FileNotFoundError):
        return None
    return content if content is not None and sha256_of(content) == plan.after.lock else None


def write_pair(
    layout: Layout,
    plan: PromotionPlan,
    manifest: bytes,
    lock: bytes,
    fault: FaultPoint = no_fault,
) -> None:
    """Steps 3 and 4 of §8.6: M1, then M2, each atomically. The intent must stand already.

    Raises WorkspaceContradicts if the content isn't what the plan names or `work/` isn't at
    `before`. An unchanged file isn't written.
    """
    observed = observe_pair(layout, plan)
    if observed != plan.before:
        kind = ConflictKind.PROMOTION_CONTRADICTED
        raise WorkspaceContradicts(kind, plan.before.short, observed.short)
    _require(sha256_of(manifest), plan.after.manifest)
    PROMOTION_FIRST(fault, layout, plan, manifest)
    write_lock(layout, plan, lock, fault)


def write_lock(
    layout: Layout, plan: PromotionPlan, lock: bytes, fault: FaultPoint = no_fault
) -> None:
    """Write M2: the second half, also row 4."""
    _require(sha256_of(lock), plan.after.lock)
    PROMOTION_SECOND(fault, layout, plan, lock)


def _write_manifest(layout: Layout, plan: PromotionPlan, manifest: bytes) -> None:
    if plan.after.manifest != plan.before.manifest:
        replace_file(layout.work, plan.manifest_path, manifest)


def _write_lock(layout: Layout, plan: PromotionPlan, lock: bytes) -> None:
    if plan.after.lock != plan.before.lock:
        replace_file(layout.work, plan.lock_path, lock)


def _require(found: str, expected: str) -> None:
    if found != expected:
        raise WorkspaceContradicts(ConflictKind.STAGING_LOST, short(expected), short(found))


def delete_staging(layout: Layout, staging: str, fault: FaultPoint = no_fault) -> None:
    """Step 6: remove a staging directory; absent is fine."""
    STAGING_DELETE(fault, layout, staging)


def _delete_staging(layout: Layout, staging: str) -> None:
    directory = layout.staging_root / staging
    if directory.exists():
        shutil.rmtree(directory)


def image_digests(plan: PromotionPlan) -> tuple[Sha256, ...]:
    """Artifacts that must be stored before the intent is appended (step 1 of §8.6)."""
    return tuple(Sha256(d) for d in (plan.after.manifest, plan.after.lock) if d != ABSENT)


STAGING: Final = Effect("staging", _retain_pair)
PROMOTION_FIRST: Final = Effect("promotion_first", _write_manifest)
PROMOTION_SECOND: Final = Effect("promotion_second", _write_lock)
STAGING_DELETE: Final = Effect("staging_delete", _delete_staging)
