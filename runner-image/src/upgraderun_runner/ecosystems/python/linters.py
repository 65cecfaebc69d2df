"""mypy, pyright and ruff: their output as findings without line numbers (§7.3).

Callers: validate. Pure. A tool that speaks another dialect than expected fails the parse.
"""

import json
import os.path
import re
from pathlib import Path
from typing import Any, Final

from upgraderun_runner.ecosystems.base import Finding, Parse
from upgraderun_runner.ecosystems.python.parse import Parsed, finding, fold
from upgraderun_runner.sandbox.commands import CommandResult

_MYPY: Final = re.compile(
    r"^(?P<file>[^:\n]+):(?:\d+:)*\s*error: (?P<message>.*?)(?:\s+\[(?P<code>[\w-]+)\])?$"
)


def parse_mypy(result: CommandResult) -> Parsed:
    """One finding per error line; notes belong to the error above them."""
    lines = result.stdout.decode("utf-8", "replace").splitlines()
    found = []
    for line in lines:
        match = _MYPY.match(line)
        if match:
            code, message = match["code"] or "error", fold(match["message"])
            found.append(finding(f"typecheck:{match['file']}:{code}:{message}", message))
    return Parsed(tuple(found), Parse.COMPLETE)


def parse_ruff(result: CommandResult, project: Path) -> Parsed:
    """One finding per file and rule, counted."""
    rows = _json(result)
    if not isinstance(rows, list):
        return Parsed((), Parse.FAILED, "ruff wrote no list")
    try:
        return Parsed(tuple(_ruff(row, project) for row in rows), Parse.COMPLETE)
    except (KeyError, TypeError, AttributeError):
        return Parsed((), Parse.FAILED, "ruff wrote something else than diagnostics")


def _ruff(row: dict[str, Any], project: Path) -> Finding:
    rule = row["code"] or "syntax"
    return finding(f"lint:{_relative(row['filename'], project)}:{rule}", str(row["message"]))


def parse_pyright(result: CommandResult, project: Path) -> Parsed:
    """One finding per error; warnings don't count."""
    answer = _json(result)
    try:
        rows = [r for r in answer["generalDiagnostics"] if r["severity"] == "error"]
        return Parsed(tuple(_pyright(row, project) for row in rows), Parse.COMPLETE)
    except (KeyError, TypeError):
        return Parsed((), Parse.FAILED, "pyright wrote no diagnostics")


def _pyright(row: dict[str, Any], project: Path) -> Finding:
    file, rule = _relative(row["file"], project), row.get("rule", "error")
    message = fold(str(row["message"]))
    return finding(f"typecheck:{file}:{rule}:{message}", message)


def _json(result: CommandResult) -> Any:
    try:
        return json.loads(result.stdout)
    except ValueError:
        return None


def _relative(file: str, project: Path) -> str:
    return os.path.relpath(file, project)
