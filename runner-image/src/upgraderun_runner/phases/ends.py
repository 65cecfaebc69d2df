"""Why a phase of the prelude ends the run, as facts for its report (upgrade-run.md §3, §4). Pure.

Caller: `phases.prelude`. Each message says what was found and where; the next step is the outcome's.
"""

from collections.abc import Iterable

from upgraderun_runner.agent.report import (
    ReportFacts,
    candidate_notes,
    counted_reasons,
    refusal_notes,
    validation_notes,
    why_nothing,
)
from upgraderun_runner.ecosystems.base import (
    AcquisitionFailed,
    CandidateList,
    CheckState,
    Refusal,
    ValidationRecord,
)
from upgraderun_runner.text import counted, essence
from upgraderun_runner.workspace.clone import Base
from upgraderun_runner.workspace.errors import GitFailed, RemoteFailed


def unsupported(refusals: Iterable[Refusal]) -> ReportFacts:
    """Every refusal is a note; the message is the first one and how many there are."""
    notes = refusal_notes(refusals)
    more = f" (and {len(notes) - 1} more)" if len(notes) > 1 else ""
    return ReportFacts("unsupported", f"{notes[0]}{more}", notes=notes)


def not_fetched(url: str, error: GitFailed | RemoteFailed) -> ReportFacts:
    """The git host that failed, or what of its repository can't be taken."""
    if isinstance(error, GitFailed):
        return ReportFacts("unsupported", f"{url} can't be cloned: {error.text}")
    message = f"the git host of {url} is {error.kind}: {error.text}"
    if error.kind == "moved":
        message = (
            f"{url} was renamed or moved, and redirects aren't followed; name its "
            f"new URL in spec.repository.url and in the policy ({error.text})"
        )
    return ReportFacts("acquisition_failed", message)


def not_acquired(error: AcquisitionFailed, registries: Iterable[str]) -> ReportFacts:
    """The host that failed, or the indexes that were asked, with the toolchain's own words."""
    where = error.host or ", ".join(registries)
    message = f"{where}: {error.reason}: {essence(error.text)}"
    return ReportFacts("acquisition_failed", message, notes=tuple(error.text.splitlines()[:20]))


def baseline_problem(
    base: Base, record: ValidationRecord, *, require_tests: bool
) -> ReportFacts | None:
    """Why the run can't start from this tree, or None (§7.2)."""
    found = _baseline_end(record, require_tests=require_tests)
    if found is None:
        return None
    outcome, words = found
    where = f"branch {base.branch} at {base.commit[:12]}, before any change"
    notes = validation_notes(record, record)
    return ReportFacts(outcome, f"{where}: {words}", baseline=record, notes=notes)


def _baseline_end(record: ValidationRecord, *, require_tests: bool) -> tuple[str, str] | None:
    if not record.conclusive:
        reason = "; ".join(record.reasons) or "a check could not be concluded"
        return "baseline_inconclusive", reason
    if not record.clean:
        failing = [
            f"{check.name}: {finding.key}"
            for check in record.checks
            if check.kind == "gate"
            for finding in check.findings
        ]
        first = failing[0] if failing else "a gate check has findings"
        return "baseline_failing", f"{counted(len(failing), 'finding')}, the first: {first}"
    absent = [c for c in record.checks if c.name == "test" and c.state is CheckState.ABSENT]
    if require_tests and (absent or not record.tests_exist):
        return (
            "baseline_inconclusive",
            "the policy's validation.requireTests wants tests and none was run",
        )
    return None


def nothing_eligible(candidates: CandidateList) -> ReportFacts:
    """`requires_newer_toolchain` if the toolchain alone keeps some version out (§5.1)."""
    outcome = "requires_newer_toolchain" if candidates.toolchain_alone_blocks else "no_candidate"
    return ReportFacts(
        outcome,
        why_nothing(candidates),
        notes=candidate_notes(candidates),
        counts=counted_reasons(candidates.candidates),
    )
