"""The closed table of tools and their argument schemas (upgrade-run.md §9.2)."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from upgraderun_runner.agent.view import Phase
from upgraderun_runner.tools.registry import READERS
from upgraderun_runner.tools.schemas import TOOLS

GOOD: list[tuple[str, dict[str, Any]]] = [
    ("get_repository_profile", {}),
    ("read_file", {"path": "a.py", "start_line": 1}),
    ("list_directory", {}),
    ("search_files", {"pattern": "x", "dependency": "d", "version": "1"}),
    ("read_dependency_source", {"dependency": "d", "version": "1"}),
    ("apply_upgrade", {"dependency": "d", "version": "1"}),
    ("write_file", {"path": "a.py", "content": ""}),
    ("edit_file", {"path": "a.py", "old_text": "a", "new_text": ""}),
    ("prepare_proposal", {"title": "t", "summary": "s"}),
    ("report_blocked", {"reason": "r", "code": "regressed", "details": "d"}),
]
BAD: list[tuple[str, dict[str, Any]]] = [
    ("get_repository_profile", {"more": 1}),
    ("read_file", {}),
    ("read_file", {"path": "a.py", "start_line": 0}),
    ("read_file", {"path": "x" * 4097}),
    ("search_files", {"pattern": "x", "dependency": "d"}),
    ("search_files", {"pattern": "x", "version": "1"}),
    ("search_files", {"pattern": "x" * 513}),
    ("edit_file", {"path": "a.py", "old_text": "", "new_text": "b"}),
    ("edit_file", {"path": "a.py", "old_text": "a", "new_text": "b" * 65_537}),
    ("prepare_proposal", {"title": "", "summary": "s"}),
    ("prepare_proposal", {"title": "t" * 121, "summary": "s"}),
    ("report_blocked", {"reason": "r", "code": "failed"}),
    ("report_blocked", {"reason": "r" * 2001}),
]


@pytest.mark.parametrize(("tool", "arguments"), GOOD)
def test_arguments_within_the_bounds_fit(tool: str, arguments: dict[str, Any]) -> None:
    assert TOOLS[tool].problem(arguments) is None


@pytest.mark.parametrize(("tool", "arguments"), BAD)
def test_arguments_beyond_them_are_named(tool: str, arguments: dict[str, Any]) -> None:
    assert TOOLS[tool].problem(arguments)


def test_every_schema_is_closed_and_valid() -> None:
    for spec in TOOLS.values():
        Draft202012Validator.check_schema(dict(spec.schema))
        assert ("object", False) == (spec.schema["type"], spec.schema["additionalProperties"])


def test_select_applies_and_repair_writes() -> None:
    """§9.2: `apply_upgrade` in select only, everything that changes or judges in repair only."""
    only = {
        phase: {name for name, spec in TOOLS.items() if spec.phases == frozenset({phase})}
        for phase in (Phase.SELECT, Phase.REPAIR)
    }
    assert {"apply_upgrade"} == only[Phase.SELECT]
    assert {
        "write_file",
        "edit_file",
        "normalize_manifests",
        "run_validation",
        "prepare_proposal",
    } == only[Phase.REPAIR]
    assert not any(Phase.PROPOSAL in spec.phases for spec in TOOLS.values())


def test_readers_are_tools_and_no_tool_publishes() -> None:
    assert set(READERS) < set(TOOLS)
    assert not any("push" in name or "publish" in name for name in TOOLS)
