"""The `build` check: the environment from the lock, the project's wheel, compile, import (§7.1).

Callers: validate. Pure: from the results of its commands to one check result.
"""

from collections.abc import Mapping
from typing import Any, Final

from upgraderun_runner.ecosystems.base import CheckResult, CheckSpec, Finding, Parse
from upgraderun_runner.ecosystems.python.parse import Parsed, conclude, finding, fold, typed_row
from upgraderun_runner.ecosystems.python.uverrors import UvFailure, classify_failure
from upgraderun_runner.sandbox.commands import CommandResult

_FORMS: Final[Mapping[str, Mapping[str, type]]] = {
    "compile": {"file": str, "message": str},
    "import": {"module": str, "exception": str, "message": str},
    "trailer": {"compiled": int, "imported": int},
}
_REFUSALS: Final = (UvFailure.STALE, UvFailure.BUILD)
"""What speaks against the tree; every other failure of uv here is ours."""


def judge_uv(spec: CheckSpec, result: CommandResult) -> CheckResult | None:
    """Judge one uv command of the check; None if it succeeded and the check goes on."""
    if result.exit_code == 0 and result.whole:
        return None
    failure, _ = classify_failure(result)
    if failure in _REFUSALS:
        key = f"build:manifest:{_message(failure, result)}"
        return conclude(spec, result, Parsed((finding(key, _text(result)),), Parse.COMPLETE))
    return conclude(spec, result, Parsed((), Parse.COMPLETE))


def _message(failure: UvFailure, result: CommandResult) -> str:
    if failure is UvFailure.STALE:
        return "the lock doesn't follow from the manifest"
    lines = [line.strip() for line in _text(result).splitlines() if line.strip()]
    raised = [line for line in lines if _is_exception(line)]
    return fold(raised[-1] if raised else "the build back end failed")


def _is_exception(line: str) -> bool:
    name, colon, _ = line.partition(":")
    return bool(colon) and name.replace(".", "").isidentifier() and name[-5:] == "Error"


def _text(result: CommandResult) -> str:
    return result.stderr.decode("utf-8", "replace")


def judge_imports(spec: CheckSpec, result: CommandResult) -> CheckResult:
    """Judge the compile and import step by its records; the trailer's counts must agree."""
    rows = [typed_row(line, _FORMS) for line in result.stdout.splitlines()]
    good = [row for row in rows if row is not None]
    if len(good) != len(rows) or not good or good[-1]["kind"] != "trailer":
        return conclude(spec, result, Parsed((), Parse.FAILED, "the import step left no report"))
    imports = [row for row in good if row["kind"] == "import"]
    if good[-1]["imported"] != len(imports):
        return conclude(spec, result, Parsed((), Parse.PARTIAL, "an import has no result"))
    found = tuple(_finding(row) for row in good if row["kind"] == "compile" or row.get("exception"))
    return conclude(spec, result, Parsed(found, Parse.COMPLETE))


def _finding(row: dict[str, Any]) -> Finding:
    if row["kind"] == "compile":
        return finding(f"build:{row['file']}:{fold(row['message'])}", row["message"])
    return finding(f"import:{row['module']}:{row['exception']}", row["message"])
