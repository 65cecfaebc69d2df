"""The report record: what people read of a run with kubectl, for every end (DESIGN §3). Pure.

Callers: `prepare_proposal` for a frozen commit, the end of a run for everything else. Every text is
redacted here, then cut with a visible mark; the operator copies the record after its own checks.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from upgraderun_protocol.limits import (
    REPORT_CHECKS_MAX,
    REPORT_FINDINGS_MAX,
    REPORT_NOTE_MAX,
    REPORT_NOTES_MAX,
    REPORT_PATCH_BYTES_MAX,
    REPORT_TAIL_BYTES_MAX,
)
from upgraderun_protocol.redact import Redactor
from upgraderun_protocol.report import ReportCheck, ReportRecord, ReportTarget
from upgraderun_runner.ecosystems.base import (
    Candidate,
    CandidateList,
    CheckResult,
    GateViolation,
    LockChange,
    Refusal,
    Target,
    ValidationRecord,
)

REPORT_VERSION: Final = 1
_CUT: Final = "\n[cut here: the patch is longer]\n"
_MESSAGE_MAX: Final = 1024
_FINDING_MAX: Final = 512


def _no_counts() -> Mapping[str, int]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ReportFacts:
    """Everything a report is made of; texts as they came."""

    outcome: str
    message: str
    target: Target | None = None
    patch: str = ""
    patch_is_cut: bool = False
    baseline: ValidationRecord | None = None
    after: ValidationRecord | None = None
    notes: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=_no_counts)


def build_report(facts: ReportFacts, redactor: Redactor) -> ReportRecord:
    """Redact, cut, and keep within every bound of the record."""
    target = facts.target
    return ReportRecord(
        version=REPORT_VERSION,
        outcome=facts.outcome,
        message=redactor.redact(" ".join(facts.message.split()), _MESSAGE_MAX),
        target=None
        if target is None
        else ReportTarget(target.name[:214], target.from_version[:128], target.to_version[:128]),
        patch=_patch(facts, redactor),
        checks=tuple(_checks(facts, redactor))[:REPORT_CHECKS_MAX],
        notes=_notes(facts.notes, redactor),
        counts=facts.counts or None,
    )


def refusal_notes(refusals: Iterable[Refusal]) -> tuple[str, ...]:
    """One sentence per refusal: file, reason, what to do."""
    return tuple(f"{r.file}: {r.reason} ({r.code}); {r.next_step}" for r in refusals)


def violation_notes(violations: Iterable[GateViolation]) -> tuple[str, ...]:
    """One sentence per violation of a gate."""
    return tuple(
        f"{v.code} {v.subject}: expected {v.expected}, observed {v.observed}" for v in violations
    )


def candidate_notes(candidates: CandidateList) -> tuple[str, ...]:
    """One sentence per newer version, the eligible ones first."""
    ordered = sorted(candidates.candidates, key=lambda c: not c.eligible)
    return tuple(
        f"{c.name} {c.current} -> {c.version} ({c.change_class.value}): "
        + ("eligible" if c.eligible else "; ".join(f"{r.code}: {r.detail}" for r in c.reasons))
        for c in ordered
    ) + tuple(candidates.notes)


def why_nothing(candidates: CandidateList) -> str:
    """Why nothing can be picked, of what the run asks for: the one version whole, several counted."""
    if not candidates.candidates:
        return "no direct dependency has a newer version"
    asked = [c for c in candidates.candidates if not any(r.is_wish for r in c.reasons)]
    asked = asked or list(candidates.candidates)
    if len(asked) == 1:
        (only,) = asked
        reasons = "; ".join(f"{r.code}: {r.detail}" for r in only.reasons)
        return f"{only.name} {only.version} isn't eligible: {reasons}"
    counts = ", ".join(f"{code} {count}" for code, count in sorted(counted_reasons(asked).items()))
    return f"none of {len(asked)} newer versions is eligible: {counts}"


def counted_reasons(candidates: Iterable[Candidate]) -> dict[str, int]:
    """How many versions each reason keeps out."""
    return dict(Counter(reason.code for c in candidates for reason in c.reasons))


def closure_notes(changes: tuple[LockChange, ...], target: str) -> tuple[str, ...]:
    """What moves beside the target."""
    return tuple(
        f"{c.name}: {', '.join(c.before) or 'absent'} -> {', '.join(c.after) or 'absent'} ({c.kind})"
        for c in changes
        if c.name != target
    )


def held_notes(changes: tuple[LockChange, ...]) -> tuple[str, ...]:
    """What the nearest closure held back, and what would have been taken (§8.2)."""
    return tuple(
        f"{c.name} is held at {', '.join(c.after)}; the resolver would have taken {c.held_from}"
        for c in changes
        if c.held_from
    )


def untried_notes(untried: tuple[str, ...], target: Target) -> tuple[str, ...]:
    """Whether the checks had the target at all: they install what the tests need (§7.1)."""
    if target.name not in untried:
        return ()
    return (
        f"{target.name} is in no group or extra that the checks install: none of them ran with it",
    )


def validation_notes(baseline: ValidationRecord, after: ValidationRecord) -> tuple[str, ...]:
    """What a reader must know about the tests (§7.2)."""
    notes: list[str] = []
    if not baseline.tests_exist:
        notes.append("the repository has no tests: nothing but the build was proven")
    elif _is_absent(after, "test"):
        notes.append("tests exist but no test runner is locked: none was run")
    notes += [f"new after the upgrade: {finding.key}" for finding in after.introduced]
    notes += [f"not conclusive: {reason}" for reason in after.reasons]
    notes += [f"flaky, counts for nothing: {key}" for key in baseline.flaky]
    notes += [f"flaky, counts for nothing: {key}" for key in after.flaky]
    notes += [f"passed before, {test.outcome} now: {test.id}" for test in after.lost_tests]
    return tuple(dict.fromkeys(notes))


def _is_absent(record: ValidationRecord, name: str) -> bool:
    return all(check.state.value == "absent" for check in record.checks if check.name == name)


def _patch(facts: ReportFacts, redactor: Redactor) -> str:
    """The patch as it is but for secrets; control characters of the source stay visible."""
    text = redactor.redact(facts.patch, len(facts.patch) + 16)
    room = REPORT_PATCH_BYTES_MAX - len(_CUT.encode("utf-8"))
    data = text.encode("utf-8")
    if len(data) <= REPORT_PATCH_BYTES_MAX and not facts.patch_is_cut:
        return text
    kept = data[:room].decode("utf-8", "ignore")
    return kept[: kept.rfind("\n") + 1] + _CUT


def _checks(facts: ReportFacts, redactor: Redactor) -> Iterable[ReportCheck]:
    for name, record in (("baseline", facts.baseline), ("after", facts.after)):
        if record is None:
            continue
        introduced = {finding.key for finding in record.introduced}
        for check in record.checks:
            yield _check(f"{name}/{check.name}", check, introduced, redactor)


def _check(name: str, check: CheckResult, introduced: set[str], redactor: Redactor) -> ReportCheck:
    """Keys of findings, new ones first; the log's end only where something is wrong."""
    keys = [f.key for f in sorted(check.findings, key=lambda f: f.key not in introduced)]
    tail = check.stdout_tail if check.stdout_tail.strip() else check.stderr_tail
    return ReportCheck(
        name=name[:64],
        state=check.state.value,
        findings=tuple(redactor.redact(key, _FINDING_MAX) for key in keys[:REPORT_FINDINGS_MAX]),
        tail="" if check.state.value == "pass" else _tail(tail, redactor),
    )


def _tail(text: str, redactor: Redactor) -> str:
    """The end of a log within the byte bound; its beginning is what gives way."""
    data = redactor.redact(text, len(text) + 16).encode("utf-8")
    return data[-REPORT_TAIL_BYTES_MAX:].decode("utf-8", "ignore")


def _notes(notes: tuple[str, ...], redactor: Redactor) -> tuple[str, ...]:
    shown = tuple(redactor.redact(" ".join(note.split()), REPORT_NOTE_MAX) for note in notes)
    if len(shown) <= REPORT_NOTES_MAX:
        return shown
    left_out = len(shown) - REPORT_NOTES_MAX + 1
    return (*shown[: REPORT_NOTES_MAX - 1], f"and {left_out} more")
