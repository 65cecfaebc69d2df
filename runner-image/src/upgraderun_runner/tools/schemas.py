"""Names, phases and argument schemas of the tools (upgrade-run.md §9.2): one closed table.

Callers: the loop checks decisions against it, the policy asks for phases. JSON Schema draft 2020-12.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from jsonschema import Draft202012Validator

from upgraderun_protocol.limits import SUMMARY_MAX, TITLE_MAX
from upgraderun_runner import limits
from upgraderun_runner.agent.ending import CODES
from upgraderun_runner.agent.view import Phase

_ALL: Final = frozenset({Phase.SELECT, Phase.REPAIR})
_SELECT: Final = frozenset({Phase.SELECT})
_REPAIR: Final = frozenset({Phase.REPAIR})
_PATH: Final = {"type": "string", "minLength": 1, "maxLength": limits.STRING_MAX}
_NAME: Final = {"type": "string", "minLength": 1, "maxLength": 214}
_LINE: Final = {"type": "integer", "minimum": 1}


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool: when it may be called, with which arguments, for how long (seconds)."""

    name: str
    phases: frozenset[Phase]
    schema: Mapping[str, Any]
    timeout_seconds: int | None

    def problem(self, arguments: Mapping[str, Any]) -> str | None:
        """Why the arguments don't fit the schema, or None."""
        error = next(Draft202012Validator(dict(self.schema)).iter_errors(dict(arguments)), None)
        if error is None:
            return None
        place = "/".join(str(part) for part in error.absolute_path) or "arguments"
        return f"{place}: {error.message[:300]}"


def _tool(
    name: str,
    phases: frozenset[Phase],
    properties: Mapping[str, Any],
    *,
    required: tuple[str, ...] = (),
    seconds: int | None = limits.TOOL_READ_SECONDS,
    both: tuple[str, str] | None = None,
) -> ToolSpec:
    schema: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": dict(properties),
        "required": list(required),
    }
    if both is not None:
        schema["dependentRequired"] = {both[0]: [both[1]], both[1]: [both[0]]}
    return ToolSpec(name, phases, schema, seconds)


def _text(longest: int, shortest: int = 0) -> dict[str, Any]:
    return {"type": "string", "minLength": shortest, "maxLength": longest}


_SPECS: Final = (
    _tool("get_repository_profile", _ALL, {}),
    _tool("list_candidates", _ALL, {}),
    _tool("read_file", _ALL, {"path": _PATH, "start_line": _LINE}, required=("path",)),
    _tool("list_directory", _ALL, {"path": _PATH}),
    _tool(
        "search_files",
        _ALL,
        {
            "pattern": _text(limits.SEARCH_PATTERN_MAX, 1),
            "path": _PATH,
            "dependency": _NAME,
            "version": _NAME,
        },
        required=("pattern",),
        both=("dependency", "version"),
    ),
    _tool(
        "read_dependency_source",
        _ALL,
        {"dependency": _NAME, "version": _NAME, "path": _PATH, "start_line": _LINE},
        required=("dependency", "version"),
    ),
    _tool("git_diff", _ALL, {}),
    _tool(
        "apply_upgrade",
        _SELECT,
        {"dependency": _NAME, "version": _NAME},
        required=("dependency", "version"),
        seconds=limits.TOOL_MANIFEST_SECONDS,
    ),
    _tool(
        "write_file",
        _REPAIR,
        {"path": _PATH, "content": _text(limits.WRITE_CONTENT_MAX)},
        required=("path", "content"),
    ),
    _tool(
        "edit_file",
        _REPAIR,
        {
            "path": _PATH,
            "old_text": _text(limits.EDIT_TEXT_MAX, 1),
            "new_text": _text(limits.EDIT_TEXT_MAX),
        },
        required=("path", "old_text", "new_text"),
    ),
    _tool("normalize_manifests", _REPAIR, {}, seconds=limits.TOOL_MANIFEST_SECONDS),
    _tool("run_validation", _REPAIR, {}, seconds=None),
    _tool(
        "prepare_proposal",
        _REPAIR,
        {"title": _text(TITLE_MAX, 1), "summary": _text(SUMMARY_MAX, 1)},
        required=("title", "summary"),
        seconds=limits.TOOL_MANIFEST_SECONDS,
    ),
    _tool(
        "report_blocked",
        _ALL,
        {
            "reason": _text(limits.REASON_MAX, 1),
            "code": {"enum": sorted(CODES)},
            "details": _text(limits.DETAILS_MAX),
        },
        required=("reason",),
    ),
)

TOOLS: Final[Mapping[str, ToolSpec]] = MappingProxyType({spec.name: spec for spec in _SPECS})
"""Every tool by name. Publishing is not among them: no agent can ask for it (§9.1)."""
