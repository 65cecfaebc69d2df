"""The loop: decide, record, check, act, record (upgrade-run.md §9.1). The same for every mode.

Caller: the start of a runner, after the prelude. The decision is stored verbatim before anything looks
into it; an outcome travels with the next step's decision and intent in one append.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Protocol

from upgraderun_protocol.canonical import canonical_json
from upgraderun_protocol.entries import EntryState
from upgraderun_protocol.ids import Sha256
from upgraderun_protocol.records import to_json
from upgraderun_runner.agent.agents import Decide
from upgraderun_runner.agent.calls import Call, read_call, tool_name
from upgraderun_runner.agent.ending import End, as_explained, end_of, exhausted
from upgraderun_runner.agent.history import History
from upgraderun_runner.agent.limits import limit_reached
from upgraderun_runner.agent.policy import Abort, Ask, Deny, Facts, Unexercised, Write, rule_on
from upgraderun_runner.agent.view import WRITE_TOOLS, RunView
from upgraderun_runner.client.journal import Journal
from upgraderun_runner.ecosystems.base import AcquisitionFailed, Unsupported
from upgraderun_runner.performing import AsyncEffect
from upgraderun_runner.text import brief, essence
from upgraderun_runner.tools import asking, proposing, registry, writing
from upgraderun_runner.tools.bench import Bench
from upgraderun_runner.tools.granted import grants_of
from upgraderun_runner.tools.schemas import TOOLS
from upgraderun_runner.tools.step import Step, ToolFailed, store_observation


class Control(Protocol):
    """What people want meanwhile."""

    def check(self) -> None:
        """Raise Yielded or Terminal if the next step must not start."""


class Loop:
    """Runs steps until the run has an end."""

    def __init__(self, bench: Bench, decide: Decide, control: Control) -> None:
        self._bench = bench
        self._decide = decide
        self._control = control
        self._history = History(bench.journal)

    async def run(self) -> tuple[End, RunView]:
        """Go on from wherever the journal stands; returns how it ends, everything appended."""
        while True:
            view = await self._history.view()
            end = self._ended(view)
            value = None
            if end is None:
                self._control.check()
                value = self._decide(view)
                if value is None:
                    end = exhausted(view)
            if end is not None:
                await self._bench.journal.flush()
                self._bench.clean_promoted()
                return end, view
            await self._step(view, value)

    def _ended(self, view: RunView) -> End | None:
        end = end_of(view)
        if end is not None:
            return end
        limit = limit_reached(view, self._bench.bundle.limits)
        return None if limit is None else as_explained(limit, view)

    async def _step(self, view: RunView, value: Any) -> None:
        """One decision and what becomes of it."""
        name = tool_name(value)
        step = Step(self._bench.journal, view.next_index, name)
        await self._record(step, value)
        try:
            result = await self._act(step, view, value)
        except ToolFailed as error:
            await self._fail(step, error)
        except AcquisitionFailed as error:
            await self._fail(step, _acquisition(error))
        else:
            observation = await store_observation(
                self._bench.journal,
                {"tool": name, "state": "done", "result": result.observation},
            )
            step.settle(EntryState.DONE, result.data, observation, result.record)
        await step.close()

    async def _record(self, step: Step, value: Any) -> None:
        """Store the decision verbatim; its entry waits for the step's first append (§9.1 (4))."""
        digest = await DECISION(self._bench.fault, self._bench.journal, value)
        step.decide(digest, self._recorded)

    def _recorded(self) -> None:
        DECISION.recorded(self._bench.fault)
        self._bench.clean_promoted()

    async def _act(self, step: Step, view: RunView, value: Any) -> registry.Result:
        """Schema, policy, effect (§9.1 (5) to (8))."""
        call = _checked(value)
        planned, write = await self._projected(view, call)
        ruling = rule_on(call, await self._facts(view, call, write))
        if isinstance(ruling, Deny):
            raise ToolFailed("policy_denied", ruling.reason)
        if isinstance(ruling, Abort):
            raise ToolFailed(ruling.outcome, ruling.message)
        if isinstance(ruling, Ask):
            raise await asking.ask(self._bench, step, view, ruling, planned)
        return await self._execute(step, view, call, planned)

    async def _execute(
        self, step: Step, view: RunView, call: Call, planned: writing.PlannedWrite | None
    ) -> registry.Result:
        seconds = registry.timeout_of(self._bench, call.tool)
        try:
            async with asyncio.timeout(seconds) as clock:
                with self._bench.journal.timed_by(clock):
                    return await registry.execute(self._bench, step, call, view, planned)
        except TimeoutError as error:
            raise ToolFailed("timeout", f"{call.tool} took longer than {seconds} s") from error
        except Unsupported as error:
            raise ToolFailed(
                "unsupported", str(error), {"refusals": to_json(error.refusals)}
            ) from error
        except OSError as error:
            raise ToolFailed("tool_error", f"{call.tool}: {error}") from error

    async def _projected(
        self, view: RunView, call: Call
    ) -> tuple[writing.PlannedWrite | None, Write | None]:
        """What a write would do; asked only where the phase allows writing at all."""
        if call.tool not in WRITE_TOOLS or view.phase not in TOOLS[call.tool].phases:
            return None, None
        planned = await writing.plan_write(self._bench, call.tool, call.arguments)
        return planned, await writing.judge_write(self._bench, planned)

    async def _unexercised(self, view: RunView, call: Call) -> Unexercised | None:
        """What of a proposal no test runs; looked at only where the policy lets people be asked."""
        asks = self._bench.bundle.policy.ask_unexercised
        if call.tool != "prepare_proposal" or view.phase not in TOOLS[call.tool].phases or not asks:
            return None
        return await proposing.unexercised(self._bench, view)

    async def _facts(self, view: RunView, call: Call, write: Write | None) -> Facts:
        candidates = self._bench.candidates.candidates
        grants = await grants_of(self._bench.journal)
        return Facts(
            phase=view.phase,
            phases=TOOLS[call.tool].phases,
            eligible=frozenset((c.name, c.version) for c in candidates if c.eligible),
            validation_cycles=len(view.validations),
            limits=self._bench.bundle.limits,
            scope=self._bench.bundle.policy.scope,
            write=write,
            unexercised=await self._unexercised(view, call),
            granted=frozenset(grants),
            expanded=_is_expanded(view, frozenset(grants)),
        )

    async def _fail(self, step: Step, error: ToolFailed) -> None:
        """A refusal is an observation; the agent decides again (§9.1 (8))."""
        journal, redactor = self._bench.journal, self._bench.redactor
        observation = await store_observation(
            journal,
            {
                "tool": step.tool,
                "state": "failed",
                "reason": error.reason,
                "message": error.message[:8000],
                "result": error.details,
            },
        )
        data = {"reason": error.reason, "message": brief(redactor, error.message)}
        step.settle(EntryState.FAILED, data, observation)


async def _store_decision(journal: Journal, value: Any) -> Sha256:
    return await journal.store(canonical_json(value))


DECISION: Final = AsyncEffect("decision", _store_decision)


def _is_expanded(view: RunView, granted: frozenset[Sha256]) -> bool:
    """Whether a write that people let through was done: from then on the hard scope holds."""
    return any(step.is_done and step.call and step.call.digest in granted for step in view.settled)


def _checked(value: Any) -> Call:
    """Read a decision and check it against its tool's schema. Raises ToolFailed."""
    call = read_call(value)
    if call is None:
        raise ToolFailed("invalid_decision", 'a decision is {"tool": name, "arguments": {...}}')
    spec = TOOLS.get(call.tool)
    if spec is None:
        raise ToolFailed("invalid_decision", f"there is no tool {call.tool[:64]!r}")
    problem = spec.problem(call.arguments)
    if problem is not None:
        raise ToolFailed("invalid_decision", f"{call.tool}: {problem}")
    return call


def _acquisition(error: AcquisitionFailed) -> ToolFailed:
    details: Mapping[str, Any] = {
        "reason": error.reason,
        "host": error.host,
        "text": error.text,
    }
    said = f"{error.host}: {error.reason}: {essence(error.text)}"
    return ToolFailed("acquisition_failed", said, details)
