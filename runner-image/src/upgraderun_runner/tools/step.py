"""One step of the loop while it runs: decision, intent, commands, outcome (upgrade-run.md §9.1).

Callers: the loop makes one per decision and hands it to the tool. Decision and intent stand before any
effect; an outcome is deferred so that it travels with the next step's (DESIGN §6).
"""

from collections.abc import Callable, Mapping
from typing import Any

from upgraderun_protocol.canonical import canonical_json
from upgraderun_protocol.entries import Draft, EntryState
from upgraderun_protocol.ids import EntryId, Sha256
from upgraderun_protocol.records import to_bytes, to_json
from upgraderun_runner.client.journal import Journal
from upgraderun_runner.evidence import RECORD_VERSION, PlanRecord
from upgraderun_runner.sandbox.driver import Sandbox
from upgraderun_runner.sandbox.recorder import PlannedCommand, StepCommands


class ToolFailed(Exception):  # noqa: N818 - an observation for the agent, not a mistake of ours
    """A tool refuses or can't do what it was asked: step `failed`, the agent decides again.

    `reason` is a word of a closed list, `message` one sentence, `details` the whole observation.
    """

    def __init__(self, reason: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message
        self.details = dict(details or {})


class Step:
    """Step `s<i>`; `tool` is the name under which the journal knows it."""

    def __init__(self, journal: Journal, index: int, tool: str) -> None:
        self._journal = journal
        self._intent: Draft | None = None
        self._begun = False
        self.index = index
        self.tool = tool
        self.id = EntryId(f"s{index}")

    def decide(self, decision: Sha256, recorded: Callable[[], None]) -> None:
        """Word the decision, stored before; it is appended with the intent, before any effect.

        One append for both, though §9.1 has the decision recorded first: every mode's agent is a pure
        function of the journal, so a decision that a kill loses is decided again, equal, and nothing
        had come of it. A mode that asks a model must append here: its answer can't be had again.
        """
        data, artifacts = {"tool": self.tool}, {"decision": decision}
        entry = EntryId(f"{self.id}/decision")
        draft = Draft(entry, "decision", EntryState.DONE, data, artifacts)
        self._journal.defer(draft, recorded=recorded)

    def intend(self, **data: str) -> None:
        """Word the intent; it is appended before the first effect, or with the outcome at last."""
        self._intent = Draft(self.id, "step", EntryState.INTENT, {"tool": self.tool, **data})

    async def begin(self, *more: Draft) -> None:
        """Append decision and intent now, with further intents of the same effect."""
        await self._journal.append(*self._take_intent(), *more)
        self._begun = True

    async def close(self) -> None:
        """Append a step that had no effect, whole, so that a kill never loses two decisions."""
        if not self._begun:
            await self._journal.flush()

    def commands(self, sandbox: Sandbox) -> StepCommands:
        """Commands of this step; the first plan is appended together with the step's intent."""
        return StepCommands(sandbox, self.id, self._announce)

    async def _announce(self, plan: tuple[PlannedCommand, ...]) -> None:
        await self.begin(await commands_intent(self._journal, self.id, plan))

    def settle(
        self,
        state: EntryState,
        data: Mapping[str, str],
        observation: Sha256,
        record: Sha256 | None = None,
    ) -> None:
        """Defer the outcome, and the intent where nothing needed it before."""
        artifacts = {"observation": observation}
        if record is not None:
            artifacts["record"] = record
        outcome = Draft(self.id, "step", state, {"tool": self.tool, **data}, artifacts)
        self._journal.defer(*self._take_intent(), outcome)

    def _take_intent(self) -> tuple[Draft, ...]:
        intent, self._intent = self._intent, None
        return () if intent is None else (intent,)


async def commands_intent(journal: Journal, step: str, plan: tuple[PlannedCommand, ...]) -> Draft:
    """Store a planned list and word the `sb/<step>` intent that names it."""
    digest = await journal.store(to_bytes(PlanRecord(RECORD_VERSION, plan)))
    return Draft(
        EntryId(f"sb/{step}"),
        "commands",
        EntryState.INTENT,
        {"step": step, "count": str(len(plan))},
        {"commands": digest},
    )


async def store_observation(journal: Journal, value: Mapping[str, Any]) -> Sha256:
    """Store what the agent sees: the same bytes that the audit shows (§9.1)."""
    return await journal.store(canonical_json(to_json(value)))
