"""The policy: may this call happen now? Pure, without any text of a model (upgrade-run.md §9.3).

Caller: the loop, after the decision was recorded and its schema checked. First match decides.
"""

from dataclasses import dataclass

from upgraderun_protocol.bundle import LimitOptions, ScopeOptions
from upgraderun_runner.agent.calls import Call
from upgraderun_runner.agent.view import Phase


@dataclass(frozen=True, slots=True)
class Allow:
    """It may."""


@dataclass(frozen=True, slots=True)
class Deny:
    """It may not; the agent is told why and decides again."""

    reason: str


@dataclass(frozen=True, slots=True)
class Abort:
    """The run ends with this outcome."""

    outcome: str
    message: str


Ruling = Allow | Deny | Abort


@dataclass(frozen=True, slots=True)
class Write:
    """What a write would do: the broken path rule, if any, and the size of the projected diff."""

    violation: str | None
    files: int
    lines: int


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything the policy looks at. `phases` are those of the tool; empty for an unlisted one."""

    phase: Phase
    phases: frozenset[Phase]
    eligible: frozenset[tuple[str, str]]
    validation_cycles: int
    limits: LimitOptions
    scope: ScopeOptions
    write: Write | None = None


def rule_on(call: Call, facts: Facts) -> Ruling:
    """Judge one call."""
    if facts.phase not in facts.phases:
        allowed = ", ".join(sorted(phase.value for phase in facts.phases)) or "no phase"
        return Deny(f"{call.tool} is not for phase {facts.phase.value}; it is for {allowed}")
    if call.tool == "apply_upgrade":
        return _on_upgrade(call, facts)
    if facts.write is not None:
        return _on_write(facts.write, facts.scope)
    if call.tool == "run_validation" and facts.validation_cycles >= facts.limits.validation_cycles:
        return Abort(
            "repair_budget_exhausted",
            f"validationCycles: {facts.validation_cycles} of {facts.limits.validation_cycles} "
            "are used",
        )
    return Allow()


def _on_upgrade(call: Call, facts: Facts) -> Ruling:
    wanted = (str(call.arguments["dependency"]), str(call.arguments["version"]))
    if wanted in facts.eligible:
        return Allow()
    return Deny(
        f"{wanted[0]} {wanted[1]} is not eligible; list_candidates shows every version with its "
        "reasons"
    )


def _on_write(write: Write, scope: ScopeOptions) -> Ruling:
    if write.violation is not None:
        return Deny(write.violation)
    projected = f"the change would touch {write.files} files and {write.lines} lines"
    if write.files > scope.hard_files or write.lines > scope.hard_lines:
        return Abort(
            "scope_exceeded",
            f"{projected}; at most {scope.hard_files} files and {scope.hard_lines} lines may change",
        )
    if write.files > scope.soft_files or write.lines > scope.soft_lines:
        return Abort(
            "scope_exceeded",
            f"{projected}; above {scope.soft_files} files or {scope.soft_lines} lines a person "
            "would have to agree, and this version doesn't ask: raise the policy's soft scope",
        )
    return Allow()
