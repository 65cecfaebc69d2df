"""Readiness: may this candidate become the one commit? Pure; lists every failure (§10).

Caller: `prepare_proposal`, once before the freeze. It believes records only through their steps and
only for exactly this tree, configuration and images.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from upgraderun_protocol.bundle import ScopeOptions
from upgraderun_protocol.ids import Sha256
from upgraderun_runner.ecosystems.base import CoverageRecord, GateViolation, ValidationRecord


@dataclass(frozen=True, slots=True)
class Failure:
    """One rule that isn't met: a code of the closed list of §10 and what was found."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """What readiness looks at.

    `tree` is the candidate tree of now, `journaled_tree` what the last step left. `sources` are
    changed files outside the pair, `lines` their added and removed lines.
    """

    tree: str
    journaled_tree: str | None
    config_hash: Sha256
    images: tuple[str, ...]
    validation: ValidationRecord | None
    coverage: CoverageRecord | None
    violations: tuple[GateViolation, ...]
    protected: tuple[str, ...]
    sources: tuple[str, ...]
    lines: int
    scope: ScopeOptions


def failures_of(candidate: Candidate) -> tuple[Failure, ...]:
    """Every failure, in the order of §10; empty means ready."""
    return tuple(
        failure
        for rule in (_tree, _validation, _manifest, _protected, _scope, _exercised)
        for failure in rule(candidate)
    )


def _tree(c: Candidate) -> Iterator[Failure]:
    if c.tree != c.journaled_tree:
        yield Failure(
            "candidate_tree_mismatch",
            f"the work tree is {c.tree}, the journal knows {c.journaled_tree or 'no change'}",
        )


def _validation(c: Candidate) -> Iterator[Failure]:
    record = c.validation
    if record is None or record.tree != c.tree:
        yield Failure("validation_not_bound", f"no accepted validation of tree {c.tree}")
        return
    if record.config_hash != c.config_hash or record.images != c.images:
        yield Failure("validation_not_bound", "the validation had another configuration or image")
    if not record.conclusive:
        yield Failure("validation_inconclusive", "; ".join(record.reasons) or "not conclusive")
    for finding in record.introduced:
        yield Failure("validation_regressed", f"introduced {finding.key}")


def _manifest(c: Candidate) -> Iterator[Failure]:
    for violation in c.violations:
        yield Failure(
            "manifest_violation",
            f"{violation.code} {violation.subject}: expected {violation.expected}, "
            f"observed {violation.observed}",
        )


def _protected(c: Candidate) -> Iterator[Failure]:
    for path in c.protected:
        yield Failure("protected_file_changed", path)


def _scope(c: Candidate) -> Iterator[Failure]:
    if len(c.sources) > c.scope.hard_files or c.lines > c.scope.hard_lines:
        yield Failure(
            "scope_exceeded",
            f"{len(c.sources)} files and {c.lines} lines, at most {c.scope.hard_files} and "
            f"{c.scope.hard_lines}",
        )


def _exercised(c: Candidate) -> Iterator[Failure]:
    if not c.sources:
        return
    record = c.coverage
    if record is None or record.tree != c.tree:
        yield Failure("repair_not_exercised", "no coverage was measured for this tree")
        return
    if record.problem:
        yield Failure("repair_not_exercised", record.problem)
    for judgement in record.unexercised:
        yield Failure(
            "repair_not_exercised",
            f"{judgement.file}:{judgement.first_line}-{judgement.last_line}: {judgement.reason}",
        )
