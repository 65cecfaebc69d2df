"""Budgets of the loop, tested before each step (upgrade-run.md §9.5). Pure.

Caller: the loop. An interrupted step counts as a step, not as a failure or a cycle.
"""

from collections import Counter

from upgraderun_protocol.bundle import LimitOptions
from upgraderun_runner.agent.ending import End
from upgraderun_runner.agent.view import RunView


def limit_reached(view: RunView, limits: LimitOptions) -> End | None:
    """The first budget that is spent, or None."""
    return (
        _steps(view, limits)
        or _failures(view, limits)
        or _repeated(view, limits)
        or _unchanged(view, limits)
    )


def _steps(view: RunView, limits: LimitOptions) -> End | None:
    if len(view.steps) < limits.steps:
        return None
    return End("limit_exhausted", f"steps: {len(view.steps)} of {limits.steps} are used")


def _failures(view: RunView, limits: LimitOptions) -> End | None:
    row = 0
    for step in reversed(view.settled):
        if not step.is_failed:
            break
        row += 1
    if row < limits.consecutive_failures:
        return None
    last = view.settled[-1]
    return End(
        "limit_exhausted",
        f"consecutiveFailures: {row} steps in a row failed; the last, {last.tool or 'no tool'}, "
        f"with {last.reason}",
    )


def _repeated(view: RunView, limits: LimitOptions) -> End | None:
    seen: Counter[tuple[str, str]] = Counter()
    for step in view.settled:
        if step.call is None or step.observation is None:
            continue
        key = (step.call.digest, step.observation)
        seen[key] += 1
        if seen[key] >= limits.repeated_calls:
            return End(
                "loop_detected",
                f"{step.tool} was called {seen[key]} times with the same arguments and the same "
                "observation",
            )
    return None


def _unchanged(view: RunView, limits: LimitOptions) -> End | None:
    last = view.validations[-limits.unchanged_validations :]
    sets = {step.introduced for step in last}
    if len(last) < limits.unchanged_validations or len(sets) > 1 or sets == {"0"}:
        return None
    return End(
        "repair_budget_exhausted",
        f"unchangedValidations: the last {len(last)} validations introduced the same findings",
    )
