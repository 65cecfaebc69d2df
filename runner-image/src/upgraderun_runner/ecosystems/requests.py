"""What a step asks of an ecosystem: directories, profile and options, one value per question.

Callers: the runner's steps. Directories are absolute; an ecosystem writes into `cache`, `staging` and
`scratch` only, never into a snapshot and never into `work/` (upgrade-run.md §8.2).
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from upgraderun_runner.ecosystems.base import (
    AcquisitionRecord,
    Pair,
    PlatformFacts,
    ProjectProfile,
    Select,
    SelectionOptions,
    Target,
    ValidationRecord,
)


@dataclass(frozen=True, slots=True)
class AcquireRequest:
    """Phase 4, or the acquisition before a post validation.

    `previous` is the run's accepted acquisition: the build kit is never fetched twice (uv-facts §1).
    `scratch` is a new or empty directory. `nonce` is written to a file that the sandbox must read back.
    """

    snapshot: Path
    profile: ProjectProfile
    cache: Path
    scratch: Path
    nonce: str
    previous: AcquisitionRecord | None = None


@dataclass(frozen=True, slots=True)
class CandidatesRequest:
    """Phase 6. `plan_time` is the journaled time, so that a repeat agrees (§5.3)."""

    pair: Pair
    profile: ProjectProfile
    platform: PlatformFacts
    options: SelectionOptions
    plan_time: datetime
    scratch: Path


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """Phase 7: stage one eligible target on the pair of `work/`."""

    pair: Pair
    profile: ProjectProfile
    platform: PlatformFacts
    target: Target
    select: Select
    minimum_age_seconds: int
    plan_time: datetime
    staging: Path
    cache: Path


@dataclass(frozen=True, slots=True)
class NormalizeRequest:
    """Phase 9: normalise the current pair and judge it against the base pair (Gate B)."""

    base: Pair
    pair: Pair
    profile: ProjectProfile
    platform: PlatformFacts
    target: Target
    minimum_age_seconds: int
    plan_time: datetime
    staging: Path
    cache: Path


@dataclass(frozen=True, slots=True)
class ValidationRequest:
    """Phases 5 and 10: all checks of exactly one snapshot.

    With a `baseline`, and then with its snapshot, the record says what is introduced. `base_tag` is the
    base's nearest reachable tag or empty. `scratch` is a new, randomly named directory that was never
    used before; repetitions get numbered directories in it.
    """

    tree: str
    config_hash: str
    snapshot: Path
    profile: ProjectProfile
    acquisition: AcquisitionRecord
    cache: Path
    scratch: Path
    base_tag: str
    check_timeout_seconds: int
    baseline: ValidationRecord | None = None
    base_snapshot: Path | None = None


@dataclass(frozen=True, slots=True)
class CoverageRequest:
    """Phase 10, when sources beyond the pair changed: which changed lines did a test run (§7.4).

    `flaky` are the baseline's keys that count for nothing.
    """

    tree: str
    config_hash: str
    snapshot: Path
    base_snapshot: Path
    changed_paths: tuple[str, ...]
    profile: ProjectProfile
    acquisition: AcquisitionRecord
    cache: Path
    scratch: Path
    base_tag: str
    check_timeout_seconds: int
    flaky: tuple[str, ...] = ()
