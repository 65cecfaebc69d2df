"""Texts for the journal and for people: redacted first, cut second (security.md §5).

Callers: everything that puts a message into an entry, a verdict or a report.
"""

from upgraderun_protocol.limits import OUTCOME_DATA_MESSAGE_MAX
from upgraderun_protocol.redact import Redactor, SafeText


def brief(redactor: Redactor, text: str, bytes_max: int = OUTCOME_DATA_MESSAGE_MAX) -> SafeText:
    """One line of at most `bytes_max` bytes: an entry is bounded in bytes, not in characters."""
    line = redactor.redact(" ".join(text.split()), bytes_max)
    while len(line.encode("utf-8")) > bytes_max:
        line = SafeText(line[: len(line) - 1])
    return line


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 finding, 2 findings."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def essence(text: str) -> str:
    """A toolchain's own words from its first error on: progress before it tells nobody anything."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for number, line in enumerate(lines):
        if line.lower().startswith("error"):
            return " ".join(lines[number:])
    return " ".join(lines)
