"""How the loop ends, read from the fold: the same answer in every incarnation (upgrade-run.md §4).

Callers: the loop before each decision. Pure; a report is made of it elsewhere.
"""

from dataclasses import dataclass
from typing import Final

from upgraderun_runner.agent.view import NOT_READY, UNEXERCISED, RunView, StepView
from upgraderun_runner.text import counted

CODES: Final = frozenset(
    {
        "admission_refused",
        "normalization_refused",
        "requires_newer_toolchain",
        "regressed",
        "validation_inconclusive",
        "not_ready",
    }
)
"""Codes of `report_blocked` that become the outcome if the journal bears them out (§2)."""

ENDS_RUN: Final = frozenset({"acquisition_failed", "scope_exceeded", "repair_budget_exhausted"})
"""Reasons of a failed step that end the run in every mode (§9.1, §9.3)."""

_LIMIT_OR_BLOCK: Final = frozenset(
    {"limit_exhausted", "loop_detected", "repair_budget_exhausted", "blocked", "not_ready"}
)


@dataclass(frozen=True, slots=True)
class End:
    """An outcome of the table and one sentence of what happened to what."""

    outcome: str
    message: str


def end_of(view: RunView) -> End | None:
    """How the loop has ended, or None while it goes on."""
    if view.proposal_is_frozen:
        return End("proposal_prepared", "the proposal is frozen")
    last = view.last
    if last is None:
        return None
    if last.is_failed and last.reason in ENDS_RUN:
        return End(last.reason, last.data.get("message", f"{last.tool} failed: {last.reason}"))
    if last.is_done and last.tool == "report_blocked":
        return as_explained(_blocked(last, view), view)
    return None


def as_explained(end: End, view: RunView) -> End:
    """Turn a limit or a block into `repair_not_exercised` where that is the real reason (§9.5)."""
    refused = view.last_refused_proposal
    if end.outcome not in _LIMIT_OR_BLOCK or refused is None or refused.reason != UNEXERCISED:
        return end
    reason = refused.data.get("message", "no test runs the repaired lines")
    return End(UNEXERCISED, f"{reason} (the agent's end: {end.outcome})")


def exhausted(view: RunView) -> End:
    """The end of a decision list that didn't lead to a proposal (§2 "Scripted")."""
    count = counted(len(view.settled), "decision")
    message = f"the decision list ended after {count} without a proposal"
    return as_explained(End("ended_without_proposal", message), view)


def _blocked(step: StepView, view: RunView) -> End:
    assert step.call is not None, "a done step had a valid decision"
    code = step.call.arguments.get("code")
    reason = str(step.call.arguments.get("reason", ""))
    if isinstance(code, str) and bears_out(view, code):
        return End(code, reason)
    return End("blocked", f"the agent says: {reason}")


def bears_out(view: RunView, code: str) -> bool:
    """Whether the journal shows what a code claims (§2)."""
    if code in {"admission_refused", "requires_newer_toolchain"}:
        return view.target is None and _failed_with(view, "apply_upgrade", code)
    if code == "normalization_refused":
        return _failed_with(view, "normalize_manifests", code)
    validation = view.accepted_validation
    if code == "regressed":
        return validation is not None and validation.conclusive and validation.introduced != "0"
    if code == "validation_inconclusive":
        return validation is not None and not validation.conclusive
    if code == NOT_READY:
        return view.last_refused_proposal is not None
    return False


def _failed_with(view: RunView, tool: str, reason: str) -> bool:
    return any(s.tool == tool and s.is_failed and s.reason == reason for s in view.settled)
