"""The agent that replays a recorded decision list (upgrade-run.md §2 "Scripted").

Caller: the loop. The list is an artifact that the policy names by digest; a run has no field for it.
"""

from dataclasses import dataclass
from typing import Any, Final

from upgraderun_protocol.records import RecordError, parse_json
from upgraderun_runner.agent.view import RunView

DECISIONS_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class DecisionList:
    """The lines as they are written; each is stored verbatim before it is looked into."""

    lines: tuple[Any, ...]


class DecisionListError(ValueError):
    """The bytes are no decision list; the message says what one looks like."""


def read_decisions(content: bytes) -> DecisionList:
    """Read `{"version": 1, "decisions": [{"tool": ..., "arguments": {...}}, ...]}`."""
    try:
        value = parse_json(content)
    except RecordError as error:
        raise DecisionListError(f"the decision list is unreadable: {error}") from error
    if not isinstance(value, dict) or set(value) != {"version", "decisions"}:
        raise DecisionListError('a decision list is {"version": 1, "decisions": [...]}')
    lines = value["decisions"]
    if value["version"] != 1 or not isinstance(lines, list) or len(lines) > DECISIONS_MAX:
        raise DecisionListError(f"version 1 with at most {DECISIONS_MAX} decisions is served")
    return DecisionList(tuple(lines))


def decide(decisions: DecisionList, view: RunView) -> Any | None:
    """Line k, where k counts recorded decisions whose step wasn't interrupted; None: exhausted.

    So an interrupted step is decided again with the same line.
    """
    position = len(view.settled)
    return decisions.lines[position] if position < len(decisions.lines) else None
