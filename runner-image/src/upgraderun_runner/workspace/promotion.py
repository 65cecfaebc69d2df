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

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from upgraderun_protocol.ids import Sha256
from upgraderun_protocol.outcomes import ConflictKind

from upgraderun_runner.workspace.faults import FaultPoint, no_fault
from upgraderun_runner.workspace.layout import Layout


@dataclass(frozen=True, slots=True)
class PairHashes:
    """SHA-256 of manifest (M1) and lock (M2), or "absent"."""

    manifest: str
    lock: str


@dataclass(frozen=True, slots=True)
class PromotionPlan:
    """The artifact `plan` of a promotion's intent: everything that recovery needs.

    Paths are relative to `work/`; `staging` is the directory's name below `staging/`. The after
    images are artifacts of the same hashes as `after`.
    """

    promotes: Literal["upgrade", "normalize"]
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
    observed: PairHashes,
    *,
    lock_copy: bool,
) -> PromotionDecision:
    """The rows of upgrade-run.md §13.3, in order. Pure and total.

    `lock_copy` says whether a copy of M2 (staging or artifact) hashes to `after.lock`. With an
    intent `plan` is given; without one it may be None.
    """
    raise NotImplementedError


def observe_pair(layout: Layout, plan: PromotionPlan) -> PairHashes:
    """Hash the pair in `work/`. A link or directory in its place counts as a third content."""
    raise NotImplementedError


def staged_lock(layout: Layout, plan: PromotionPlan) -> bytes | None:
    """The staged M2 if it is there and hashes to `after.lock`."""
    raise NotImplementedError


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
    raise NotImplementedError


def write_lock(
    layout: Layout, plan: PromotionPlan, lock: bytes, fault: FaultPoint = no_fault
) -> None:
    """Row 4: finish M2."""
    raise NotImplementedError


def delete_staging(layout: Layout, staging: str, fault: FaultPoint = no_fault) -> None:
    """Step 6: remove a staging directory; absent is fine."""
    raise NotImplementedError


def image_digests(plan: PromotionPlan) -> tuple[Sha256, ...]:
    """Artifacts that must be stored before the intent is appended (step 1 of §8.6)."""
    raise NotImplementedError
