"""The deciding function of each mode (upgrade-run.md §2): only this differs between modes.

Caller: the start of the loop. Baseline is the same pipeline as Rules without any edit, and its fixed
choices are recorded as decisions too.
"""

from collections.abc import Callable
from typing import Any

from upgraderun_protocol.bundle import Codemod
from upgraderun_runner.agent import rules, scripted
from upgraderun_runner.agent.view import RunView
from upgraderun_runner.ecosystems.base import Target

Decide = Callable[[RunView], Any | None]
"""From the view to a decision as JSON; None says that the agent has nothing more to say.

Pure: equal views give equal decisions, also in another process. On this the loop relies when it lets a
decision travel with its step's intent. A mode that asks somebody else can't be of this type.
"""


def baseline_agent(ranked: tuple[Target, ...]) -> Decide:
    """Select, apply, normalise, validate, readiness, freeze; no edits."""
    return rules_agent(ranked, (), lambda _path: False)


def rules_agent(
    ranked: tuple[Target, ...], codemods: tuple[Codemod, ...], is_source: Callable[[str], bool]
) -> Decide:
    """The built-in agent."""

    def decide(view: RunView) -> Any:
        return rules.decide(rules.Situation(view, ranked, codemods, is_source)).to_json()

    return decide


def scripted_agent(content: bytes) -> Decide:
    """The recorded list. Raises DecisionListError if the bytes are none."""
    decisions = scripted.read_decisions(content)
    return lambda view: scripted.decide(decisions, view)
