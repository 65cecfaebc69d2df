"""Records that the runner stores as artifacts and reads again after a restart (upgrade-run.md §1).

Callers: phases, tools, recovery and report. Evidence counts only through the `done` entry that names
it. Every record is canonical JSON; nothing here runs or decides.
"""

from dataclasses import dataclass

from upgraderun_protocol.ids import CommitId, Sha256, TreeId
from upgraderun_runner.ecosystems.base import (
    AcquisitionRecord,
    CandidateList,
    ConstraintEdit,
    CoverageRecord,
    GateViolation,
    LockChange,
    ProjectProfile,
    StagedPair,
    Target,
    ValidationRecord,
)
from upgraderun_runner.sandbox.recorder import ExecutedCommand, PlannedCommand
from upgraderun_runner.workspace.promotion import PromotionPlan

RECORD_VERSION = 1


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """Artifact of an `sb/<step>` intent: what the step is going to run."""

    version: int
    commands: tuple[PlannedCommand, ...]


@dataclass(frozen=True, slots=True)
class ContextRecord:
    """Artifact of phase 3: from here on the run can be resumed on another pod."""

    version: int
    base_commit: CommitId
    base_tree: TreeId
    branch: str
    profile: ProjectProfile
    config_hash: Sha256
    images: tuple[str, ...]
    isolation: str
    protected: tuple[str, ...]
    base_tag: str = ""
    """The nearest tag below the base; looked up where the version comes from the build."""


@dataclass(frozen=True, slots=True)
class AcquireEvidence:
    """Artifact of phase 4."""

    version: int
    record: AcquisitionRecord
    commands: tuple[ExecutedCommand, ...]


@dataclass(frozen=True, slots=True)
class ValidationEvidence:
    """Artifact of phases 5 and 10. `coverage` only where sources beyond the pair changed."""

    version: int
    record: ValidationRecord
    commands: tuple[ExecutedCommand, ...]
    coverage: CoverageRecord | None = None


@dataclass(frozen=True, slots=True)
class CandidatesEvidence:
    """Artifact of phase 6."""

    version: int
    record: CandidateList
    commands: tuple[ExecutedCommand, ...]


@dataclass(frozen=True, slots=True)
class StagedSummary:
    """What a staged pair changes, for the proposal and for people; without the bytes."""

    changes: tuple[LockChange, ...]
    edits: tuple[ConstraintEdit, ...]
    notes: tuple[str, ...]
    violations: tuple[GateViolation, ...]


@dataclass(frozen=True, slots=True)
class PromotionEvidence:
    """Artifact `plan` of a promotion's intent: what recovery needs, and what the change was."""

    version: int
    plan: PromotionPlan
    target: Target
    summary: StagedSummary
    commands: tuple[ExecutedCommand, ...]


def summary_of(staged: StagedPair) -> StagedSummary:
    """Everything of a staged pair but its bytes."""
    return StagedSummary(staged.changes, staged.edits, staged.notes, staged.violations)
