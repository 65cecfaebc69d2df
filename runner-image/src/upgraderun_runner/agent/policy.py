"""The policy: may this call happen now? Pure, without any text of a model (upgrade-run.md §9.3).

Caller: the loop, after the decision was recorded and its schema checked. First match decides.
"""

from dataclasses import dataclass

from upgraderun_protocol.bundle import LimitOptions, ScopeOptions
from upgraderun_protocol.canonical import digest_of
from upgraderun_protocol.ids import Sha256
from upgraderun_protocol.questions import QuestionKind
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


@dataclass(frozen=True, slots=True)
class Ask:
    """People decide. `subject` is what their approval is for (upgrade-run.md §11)."""

    kind: QuestionKind
    subject: Sha256
    message: str


Ruling = Allow | Deny | Abort | Ask


@dataclass(frozen=True, slots=True)
class Write:
    """What a write would do: the broken path rule, if any, and the size of the projected diff."""

    violation: str | None
    files: int
    lines: int


@dataclass(frozen=True, slots=True)
class Unexercised:
    """What alone keeps a proposal from being ready: lines of this tree that no test runs."""

    tree: str
    ranges: tuple[str, ...]

    @property
    def subject(self) -> Sha256:
        """Digest of the tree and every range."""
        return digest_of({"tree": self.tree, "ranges": list(self.ranges)})


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything the policy looks at. `phases` are those of the tool; empty for an unlisted one.

    `granted`: subjects that people approved; `expanded`: a granted write was done, so that the hard
    scope alone holds. `unexercised` is None where the policy lets nobody be asked.
    """

    phase: Phase
    phases: frozenset[Phase]
    eligible: frozenset[tuple[str, str]]
    validation_cycles: int
    limits: LimitOptions
    scope: ScopeOptions
    write: Write | None = None
    unexercised: Unexercised | None = None
    granted: frozenset[Sha256] = frozenset()
    expanded: bool = False


def rule_on(call: Call, facts: Facts) -> Ruling:
    """Judge one call."""
    if facts.phase not in facts.phases:
        allowed = ", ".join(sorted(phase.value for phase in facts.phases)) or "no phase"
        return Deny(f"{call.tool} is not for phase {facts.phase.value}; it is for {allowed}")
    if call.tool == "apply_upgrade":
        return _on_upgrade(call, facts)
    if facts.write is not None:
        return _on_write(call, facts, facts.write)
    if call.tool == "run_validation" and facts.validation_cycles >= facts.limits.validation_cycles:
        return Abort(
            "repair_budget_exhausted",
            f"validationCycles: {facts.validation_cycles} of {facts.limits.validation_cycles} "
            "are used",
        )
    if call.tool == "prepare_proposal" and facts.unexercised is not None:
        return _on_unexercised(facts.unexercised, facts)
    return Allow()


def _on_unexercised(found: Unexercised, facts: Facts) -> Ruling:
    if found.subject in facts.granted:
        return Allow()
    first = found.ranges[0]
    more = f" and {len(found.ranges) - 1} more" if len(found.ranges) > 1 else ""
    message = f"no test runs a part of the repair: {first}{more}"
    return Ask(QuestionKind.UNEXERCISED_REPAIR, found.subject, message)


def _on_upgrade(call: Call, facts: Facts) -> Ruling:
    wanted = (str(call.arguments["dependency"]), str(call.arguments["version"]))
    if wanted in facts.eligible:
        return Allow()
    return Deny(
        f"{wanted[0]} {wanted[1]} is not eligible; list_candidates shows every version with its "
        "reasons"
    )


def _on_write(call: Call, facts: Facts, write: Write) -> Ruling:
    scope = facts.scope
    if write.violation is not None:
        return Deny(write.violation)
    projected = f"the change would touch {write.files} files and {write.lines} lines"
    if write.files > scope.hard_files or write.lines > scope.hard_lines:
        return Abort(
            "scope_exceeded",
            f"{projected}; at most {scope.hard_files} files and {scope.hard_lines} lines may change",
        )
    above = write.files > scope.soft_files or write.lines > scope.soft_lines
    if above and not facts.expanded and call.digest not in facts.granted:
        message = (
            f"{projected}; above {scope.soft_files} files or {scope.soft_lines} lines people decide"
        )
        return Ask(QuestionKind.SCOPE_EXPANSION, call.digest, message)
    return Allow()
