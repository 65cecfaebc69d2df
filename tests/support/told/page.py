"""The golden file of what people read: every story under the heading of its table."""

import textwrap
from collections.abc import Iterator
from typing import Final

from support.told import conflicts, ends, waits, work
from support.told.telling import Told
from upgraderun_operator.journal.conditions import conflict_reason
from upgraderun_operator.model.conditions import StalledReason, WaitReason
from upgraderun_protocol.outcomes import OUTCOMES, ConflictKind

_HEAD: Final = """\
What people read at every end, wait, stall and conflict. Generated from the code by `make generate`.
An end is told as an Event and, cut to its room, in the condition Succeeded; a wait or stall in
`status.wait` and in an Event; a conflict as the end of its run, or in the condition Conflict.
"""


def stories() -> tuple[Told, ...]:
    """Everything that is told, in the order in which the code tells it."""
    return (*ends.told(), *work.told(), *waits.told(), *conflicts.told())


def tables() -> dict[str, tuple[str, ...]]:
    """The closed tables of reasons, in their order. A conflict goes by its kind's own spelling."""
    return {
        "Outcomes": tuple(row.reason for row in OUTCOMES.values()),
        "Waits": tuple(reason.value for reason in WaitReason),
        "Stalled": tuple(reason.value for reason in StalledReason),
        "Conflicts": tuple(conflict_reason(kind.value) for kind in ConflictKind),
    }


def page() -> str:
    """Render the golden file."""
    return "\n".join((_HEAD, *_lines(stories())))


def _lines(told: tuple[Told, ...]) -> Iterator[str]:
    for heading, reasons in tables().items():
        yield f"== {heading} ==\n"
        for reason in reasons:
            yield reason
            kinds = [story.name for story in told if story.reason == reason and story.conflict]
            if kinds:
                yield _wrapped(f"see {', '.join(kinds)}")
            yield from (_wrapped(story.text) for story in told if story.name == reason)
            yield ""


def _wrapped(text: str) -> str:
    return textwrap.fill(
        text,
        100,
        initial_indent="  - ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
