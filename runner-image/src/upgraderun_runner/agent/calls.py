"""A decision as a value: which tool, with which arguments (upgrade-run.md §9.1).

Callers: the loop reads decisions through it, agents make them. A decision is stored verbatim before
anything here looks into it; what isn't of this shape is an invalid decision, not an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from upgraderun_protocol.canonical import digest_of
from upgraderun_protocol.ids import Sha256

UNREADABLE: Final = "invalid"
"""Tool name that the journal gets for a decision without a usable one."""
_TOOL_NAME_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call."""

    tool: str
    arguments: Mapping[str, Any]

    @property
    def digest(self) -> Sha256:
        """Equal calls have equal digests."""
        return digest_of({"tool": self.tool, "arguments": self.arguments})

    def to_json(self) -> dict[str, Any]:
        """The form in which an agent of ours decides and a decision list is written."""
        return {"tool": self.tool, "arguments": dict(self.arguments)}


def read_call(value: object) -> Call | None:
    """Read `{"tool": name, "arguments": {...}}`; None for anything else."""
    if not isinstance(value, Mapping) or set(value) != {"tool", "arguments"}:
        return None
    tool, arguments = value["tool"], value["arguments"]
    if not isinstance(tool, str) or not isinstance(arguments, Mapping):
        return None
    return Call(tool, arguments)


def tool_name(value: object) -> str:
    """What the journal calls a decision before it is looked into: its tool's name, cut."""
    tool = value.get("tool") if isinstance(value, Mapping) else None
    if not isinstance(tool, str) or not tool.isascii() or not tool.isprintable() or not tool:
        return UNREADABLE
    return tool[:_TOOL_NAME_MAX]
