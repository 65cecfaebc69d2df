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
    """Read JSON lines, each `{"tool": ..., "arguments": {...}}`; empty lines are skipped.

    A line that is no JSON stays a text: it is an invalid decision when its turn comes. Raises
    DecisionListError for what isn't UTF-8 or is too long.
    """
    try:
        lines = [line for line in content.decode("utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise DecisionListError("the decision list isn't UTF-8 text") from error
    if len(lines) > DECISIONS_MAX:
        raise DecisionListError(f"{len(lines)} decisions, at most {DECISIONS_MAX} are served")
    return DecisionList(tuple(_line(line) for line in lines))


def _line(line: str) -> Any:
    try:
        return parse_json(line.encode("utf-8"))
    except RecordError:
        return line


def decide(decisions: DecisionList, view: RunView) -> Any | None:
    """Line k, where k counts recorded decisions whose step wasn't interrupted; None: exhausted.

    So an interrupted step is decided again with the same line.
    """
    position = len(view.settled)
    return decisions.lines[position] if position < len(decisions.lines) else None
