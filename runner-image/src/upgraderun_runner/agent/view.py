"""What an agent, the policy and the limits see of a run: a pure view of the journal's fold.

Callers: `history` builds it, everything in this package reads it. State is never stored: phase,
target, validation and counters are computed here from entries and the decisions that they name.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from upgraderun_protocol.entries import Entry, EntryState
from upgraderun_protocol.fold import Fold
from upgraderun_protocol.ids import Sha256
from upgraderun_runner.agent.calls import Call
from upgraderun_runner.ecosystems.base import Target

STEP_ID: Final = re.compile(r"s(0|[1-9][0-9]*)(?:/decision)?")
WRITE_TOOLS: Final = frozenset({"write_file", "edit_file"})
NOT_READY: Final = "not_ready"
UNEXERCISED: Final = "repair_not_exercised"


class Phase(StrEnum):
    """Phase of the loop (§9.1): `select` until an upgrade is promoted, `repair` until a proposal."""

    SELECT = "select"
    REPAIR = "repair"
    PROPOSAL = "proposal"


def _empty() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class StepView:
    """One step of the loop. `call` is None for an invalid decision; `state` None: not settled yet.

    `observed` is the decoded observation, loaded only where an agent of ours needs it.
    """

    index: int
    call: Call | None
    state: EntryState | None
    data: Mapping[str, str] = field(default_factory=_empty)
    observation: Sha256 | None = None
    record: Sha256 | None = None
    observed: Mapping[str, Any] | None = None

    @property
    def tool(self) -> str:
        """Name of the tool; empty for an invalid decision."""
        return self.call.tool if self.call else ""

    @property
    def is_done(self) -> bool:
        """Whether it did what it was asked for."""
        return self.state is EntryState.DONE

    @property
    def is_failed(self) -> bool:
        """Whether it was refused or went wrong: an observation for the agent."""
        return self.state is EntryState.FAILED

    @property
    def is_interrupted(self) -> bool:
        """Whether the runner died inside: decided again, counts as a step only (§9.5)."""
        return self.state is EntryState.INTERRUPTED

    @property
    def reason(self) -> str:
        """Why it failed: a word of a closed list."""
        return self.data.get("reason", "")

    @property
    def is_validation(self) -> bool:
        """Whether it is a completed validation: one cycle."""
        return self.tool == "run_validation" and self.is_done and self.record is not None

    @property
    def conclusive(self) -> bool:
        """Of a validation: whether it means anything."""
        return self.data.get("conclusive") == "true"

    @property
    def introduced(self) -> str:
        """Of a validation: "0", or count and digest of the introduced keys."""
        return self.data.get("introduced", "0")


@dataclass(frozen=True, slots=True)
class RunView:
    """The loop's history, in order of steps."""

    steps: tuple[StepView, ...]
    target: Target | None
    proposal_is_frozen: bool

    @property
    def phase(self) -> Phase:
        """Where the loop is."""
        if self.proposal_is_frozen:
            return Phase.PROPOSAL
        return Phase.SELECT if self.target is None else Phase.REPAIR

    @property
    def next_index(self) -> int:
        """Index of the step to decide now."""
        return self.steps[-1].index + 1 if self.steps else 0

    @property
    def settled(self) -> tuple[StepView, ...]:
        """Steps that weren't interrupted."""
        return tuple(step for step in self.steps if not step.is_interrupted)

    @property
    def last(self) -> StepView | None:
        """The last step that wasn't interrupted."""
        settled = self.settled
        return settled[-1] if settled else None

    def tried(self, tool: str) -> bool:
        """Whether a tool was called to its end, well or not."""
        return any(step.tool == tool for step in self.settled)

    @property
    def tree(self) -> str | None:
        """The candidate tree after the last change; None while nothing changed."""
        return next((step.data["tree"] for step in self._latest() if "tree" in step.data), None)

    @property
    def is_normalised(self) -> bool:
        """Whether the pair was normalised since the upgrade was promoted."""
        for step in self._latest():
            if step.is_done and step.tool == "normalize_manifests":
                return True
            if step.is_done and step.tool == "apply_upgrade":
                return False
        return False

    @property
    def validations(self) -> tuple[StepView, ...]:
        """Completed validations, in order."""
        return tuple(step for step in self.steps if step.is_validation)

    @property
    def accepted_validation(self) -> StepView | None:
        """The last completed validation, if it is of the tree as it is now."""
        validations = self.validations
        if not validations or validations[-1].data.get("tree") != self.tree:
            return None
        return validations[-1]

    @property
    def last_refused_proposal(self) -> StepView | None:
        """The last `prepare_proposal` if it was refused and nothing was edited since."""
        for step in self._latest():
            if step.is_done and step.tool in WRITE_TOOLS:
                return None
            if step.tool == "prepare_proposal":
                return step if step.is_failed else None
        return None

    def _latest(self) -> Iterator[StepView]:
        return reversed(self.settled)


def view_of(
    fold: Fold,
    calls: Mapping[int, Call | None],
    observed: Mapping[int, Mapping[str, Any]] = MappingProxyType({}),
) -> RunView:
    """Compute the view. `calls` holds the decision of every step whose `decision` entry stands."""
    steps = tuple(
        _step(fold, index, calls.get(index), observed.get(index)) for index in step_indexes(fold)
    )
    return RunView(steps, promoted_target(fold), fold.last("proposal", EntryState.DONE) is not None)


def step_indexes(fold: Fold) -> tuple[int, ...]:
    """Indexes of all steps, also of those that only have a decision."""
    found = {
        int(match[1])
        for entry in fold
        if entry.kind in {"decision", "step"} and (match := STEP_ID.fullmatch(entry.id))
    }
    return tuple(sorted(found))


def promoted_target(fold: Fold) -> Target | None:
    """What the last upgrade promotion put into the work tree; an interrupted one did nothing."""
    for entry in reversed(fold.of_kind("promotion")):
        if entry.state is EntryState.INTENT and entry.data["promotes"] == "upgrade":
            outcome = fold.outcome(entry.id)
            if outcome is None or outcome.state is EntryState.DONE:
                return Target(entry.data["name"], entry.data["from"], entry.data["to"])
    return None


def _step(
    fold: Fold, index: int, call: Call | None, observed: Mapping[str, Any] | None
) -> StepView:
    outcome: Entry | None = fold.outcome(f"s{index}")
    if outcome is None:
        return StepView(index, call, None)
    return StepView(
        index,
        call,
        outcome.state,
        outcome.data,
        outcome.artifacts.get("observation"),
        outcome.artifacts.get("record"),
        observed,
    )
