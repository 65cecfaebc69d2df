"""The report of our pytest plug-in, judged (upgrade-run.md §7.2, uv-facts §5).

Callers: validate and exercise. Pure. Cases, in this order: (A) exit 4 with a broken root conftest on
record: one finding. (B) no trailer, or one that disagrees with the exit status: no verdict. (C) exit 5
with nothing collected: absent. (D) exit 0 or 1 with one final outcome per collected id: a verdict.
(E) anything else: no verdict.
"""

from collections.abc import Mapping
from typing import Any, Final

from upgraderun_runner.ecosystems.base import (
    TESTS_MAX,
    CheckSpec,
    Finding,
    Parse,
    TestOutcome,
)
from upgraderun_runner.ecosystems.python.parse import Parsed, finding, typed_row
from upgraderun_runner.sandbox.commands import CommandResult

REPORT_BYTES_MAX: Final = 256 * 1024 * 1024
ID_MAX: Final = 4096
_FAILING: Final = ("failed", "error")
_OUTCOMES: Final = ("passed", "skipped", "xfailed", "xpassed", *_FAILING)
_FORMS: Final[Mapping[str, Mapping[str, type]]] = {
    "collected": {"id": str},
    "collect_error": {"id": str, "detail": str},
    "conftest_error": {"id": str, "detail": str},
    "outcome": {"id": str, "outcome": str, "detail": str},
    "trailer": {"exit": int, "collected": int, "outcomes": int},
}
_VERDICTS: Final = (0, 1)
_USAGE: Final = 4
_NOTHING_COLLECTED: Final = 5

Row = dict[str, Any]


class _ForeignLineError(ValueError):
    """A line of the report that the plug-in doesn't write."""


def parse_pytest(result: CommandResult, report: bytes | None, *, selected: bool) -> Parsed:
    """Judge one pytest run. `selected`: a repetition of some ids, which may select none."""
    try:
        rows = [_row(line) for line in (report or b"").splitlines()]
    except _ForeignLineError:
        return Parsed((), Parse.FAILED, "the report holds a line that isn't ours")
    conftest = tuple(_collection(row) for row in rows if row["kind"] == "conftest_error")
    if result.exit_code == _USAGE and conftest:
        return Parsed(conftest, Parse.COMPLETE)
    trailers = [row for row in rows if row["kind"] == "trailer"]
    if len(trailers) != 1 or trailers[0] is not rows[-1]:
        problem = f"pytest ended without a report (exit {result.exit_code})"
        return Parsed((), Parse.FAILED, problem)
    if trailers[0]["exit"] != result.exit_code:
        problem = f"pytest reported exit {trailers[0]['exit']} and exited {result.exit_code}"
        return Parsed((), Parse.FAILED, problem)
    return _session(result.exit_code, rows, trailers[0], selected=selected)


def _session(exit_code: int, rows: list[Row], trailer: Row, *, selected: bool) -> Parsed:
    broken = tuple(_collection(row) for row in rows if row["kind"] == "collect_error")
    ids = {row["id"] for row in rows if row["kind"] == "collected"}
    if exit_code == _NOTHING_COLLECTED and not ids and not broken:
        reason = "" if selected else "pytest collected no test"
        return Parsed((), Parse.COMPLETE, absent=reason, exit_agrees=selected)
    if exit_code not in _VERDICTS:
        return Parsed((), Parse.FAILED, f"pytest exited {exit_code}, which is no verdict")
    final = {row["id"]: row for row in rows if row["kind"] == "outcome"}
    counts = (trailer["collected"], trailer["outcomes"])
    if len(ids) > TESTS_MAX:
        return Parsed((), Parse.PARTIAL, f"more than {TESTS_MAX} tests")
    if ids != final.keys() or counts != (len(ids), len(final)):
        missing = len(ids - final.keys())
        return Parsed((), Parse.PARTIAL, f"{missing} of {len(ids)} tests have no final outcome")
    tests = tuple(TestOutcome(node_id, final[node_id]["outcome"]) for node_id in sorted(ids))
    failing = tuple(_failure(final[t.id]) for t in tests if t.outcome in _FAILING)
    return Parsed(broken + failing, Parse.COMPLETE, tests=tests)


def _row(line: bytes) -> Row:
    row = typed_row(line, _FORMS)
    if row is None:
        raise _ForeignLineError
    node_id = row.get("id", "")
    if len(node_id) > ID_MAX or any("\ud800" <= c <= "\udfff" for c in node_id):
        raise _ForeignLineError
    if row["kind"] == "outcome" and row["outcome"] not in _OUTCOMES:
        raise _ForeignLineError
    return row


def _failure(row: Row) -> Finding:
    return finding(key_of(row["id"]), row["detail"], row["id"])


def _collection(row: Row) -> Finding:
    return finding(f"test:{row['id']}:collection", row["detail"], row["id"])


def key_of(node_id: str) -> str:
    """Spell an id as a key: file, then everything after the file, which is never split (§7.3)."""
    file, _, name = node_id.partition("::")
    return f"test:{file}:{name}"


def no_runner(spec: CheckSpec, *, tests_exist: bool) -> str:
    """Say why no test ran, in the words of the proposal's first line (§7.2)."""
    if spec.tool:
        return "pytest collected no test"
    return (
        "tests exist, but no runner is locked, so none was run"
        if tests_exist
        else "the repository has no test"
    )
