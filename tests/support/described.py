"""What `kubectl describe` shows of a run: conditions and Events, with what differs each time masked.

Callers: tests of whole ends on a real API server.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from support.desk import Play
from upgraderun_operator.resources import EVENTS

_SILENT: Final = frozenset({"NotYet", "NotReached", "NotWanted", "NotSuspended", "Moving"})
_MASKS: Final = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<uid>"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "<time>"),
    (re.compile(r"https?://localhost:\d+"), "https://forge.example"),
    (re.compile(r"reconcile-\d+"), "team"),
    (re.compile(r"team/lib-\d+"), "team/lib"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<digest>"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "<digest>"),
    (re.compile(r"-[0-9a-f]{8}\b"), "-<uid8>"),
)


async def described(play: Play, title: str) -> str:
    """Conditions that say something, and all Events in the order in which they were told."""
    status = await play.status()
    events = [one for one in await play.listed(EVENTS) if one["regarding"]["uid"] == play.uid]
    lines = (
        f"## {title}",
        f"Outcome: {status.get('outcome')}   Phase: {status.get('phase')}",
        "Conditions:",
        *_conditions(status["conditions"]),
        "Events:",
        *_told(sorted(events, key=lambda one: str(one["eventTime"]))),
    )
    return masked("\n".join(lines)) + "\n"


def masked(text: str) -> str:
    """Replace what is another one in each run of the tests."""
    for pattern, word in _MASKS:
        text = pattern.sub(word, text)
    return text


def _conditions(conditions: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for one in conditions:
        if one["reason"] not in _SILENT and one["message"]:
            yield f"  {one['type']}={one['status']}  {one['reason']}: {one['message']}"


def _told(events: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for one in events:
        yield f"  {one['type']:<7}  {one['reason']}: {one['note']}"
