"""A pytest run is a verdict only with a trailer, an agreeing exit and final outcomes (§7.2)."""

import json

import pytest

from upgraderun_runner.ecosystems.base import CheckSpec, CheckState, Parse
from upgraderun_runner.ecosystems.python.parse import conclude
from upgraderun_runner.ecosystems.python.pytest_report import key_of, no_runner, parse_pytest
from upgraderun_runner.sandbox.commands import CommandResult

SPEC = CheckSpec("test", "gate", "pytest")


def ended(exit_code: int, **changes: bool) -> CommandResult:
    flags = {"timed_out": False, "killed": False, "stdout_truncated": False} | changes
    return CommandResult(
        exit_code,
        flags["timed_out"],
        flags["killed"],
        b"",
        b"",
        flags["stdout_truncated"],
        False,
        5,
    )


def report(exit_code: int, *rows: dict[str, str], collected: int | None = None) -> bytes:
    ids = [row["id"] for row in rows if row["kind"] == "outcome"]
    lines: list[dict[str, object]] = [{"kind": "collected", "id": i} for i in ids]
    lines += [dict(row) for row in rows]
    count = len(ids) if collected is None else collected
    lines.append({"kind": "trailer", "exit": exit_code, "collected": count, "outcomes": len(ids)})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def outcome(node_id: str, value: str) -> dict[str, str]:
    return {"kind": "outcome", "id": node_id, "outcome": value, "detail": f"why {value}"}


def judged(
    result: CommandResult, data: bytes | None, *, selected: bool = False
) -> tuple[CheckState, list[str]]:
    check = conclude(SPEC, result, parse_pytest(result, data, selected=selected))
    return check.state, [finding.key for finding in check.findings]


def test_all_passed() -> None:
    data = report(0, outcome("t.py::a", "passed"), outcome("t.py::b", "skipped"))

    assert (CheckState.PASS, []) == judged(ended(0), data)


def test_failures_and_errors_are_findings_once_per_id() -> None:
    data = report(
        1,
        outcome("t.py::a[x::y/z ]", "failed"),
        outcome("t.py::b", "error"),
        outcome("t.py::c", "xpassed"),
    )

    assert (CheckState.FAIL, ["test:t.py:a[x::y/z ]", "test:t.py:b"]) == judged(ended(1), data)


def test_a_collection_error_is_a_finding_and_the_rest_runs() -> None:
    broken = {"kind": "collect_error", "id": "t2.py", "detail": "ImportError: no x"}

    assert (CheckState.FAIL, ["test:t2.py:collection"]) == judged(
        ended(1), report(1, broken, outcome("t.py::a", "passed"))
    )


def test_a_broken_root_conftest_is_a_finding() -> None:
    """Corpus A2m: exit 4 without any session is the commonest regression."""
    row = {"kind": "conftest_error", "id": "tests/conftest.py", "detail": "Warning: gone"}
    data = json.dumps(row).encode() + b"\n"

    assert (CheckState.FAIL, ["test:tests/conftest.py:collection"]) == judged(ended(4), data)


@pytest.mark.parametrize(
    ("exit_code", "data"),
    [
        (4, b""),
        (4, None),
        (1, None),
        (0, None),
        (0, report(1, outcome("t.py::a", "failed"))),
        (1, report(1, outcome("t.py::a", "passed"))),
        (0, report(0, outcome("t.py::a", "passed"), collected=2)),
        (2, report(2, outcome("t.py::a", "passed"))),
        (3, report(3)),
        (0, report(0, outcome("t.py::a", "passed")) + b"extra\n"),
        (0, b'{"kind": "surprise"}\n' + report(0)),
        (0, report(0) + report(0)),
        (0, report(0, outcome("t.py::a", "splendid"))),
        (0, report(0, {"kind": "collect_error", "id": "x" * 5000, "detail": ""})),
        (139, b""),
    ],
    ids=[
        "usage",
        "usage without report",
        "crash before the session",
        "os._exit(0)",
        "code disagrees",
        "exit 1 without finding",
        "count disagrees",
        "interrupted",
        "internal error",
        "foreign line",
        "foreign record",
        "two trailers",
        "unknown outcome",
        "endless id",
        "segfault",
    ],
)
def test_everything_else_is_no_verdict(exit_code: int, data: bytes | None) -> None:
    state, findings = judged(ended(exit_code), data)

    assert CheckState.ERROR is state
    assert [] == findings or exit_code == 0


def test_a_collected_id_without_final_outcome_makes_it_partial() -> None:
    data = report(0, outcome("t.py::a", "passed"))
    data = b'{"kind": "collected", "id": "t.py::b"}\n' + data

    assert Parse.PARTIAL is parse_pytest(ended(0), data, selected=False).parse


def test_nothing_collected_is_absent() -> None:
    assert (CheckState.ABSENT, []) == judged(ended(5), report(5))


def test_a_repetition_may_select_nothing() -> None:
    assert (CheckState.PASS, []) == judged(ended(5), report(5), selected=True)


def test_a_time_limit_and_a_kill_are_no_verdict_whatever_was_written() -> None:
    data = report(0, outcome("t.py::a", "passed"))

    assert CheckState.TIMEOUT is judged(ended(0, timed_out=True), data)[0]
    assert CheckState.ERROR is judged(ended(137, killed=True), data)[0]
    assert CheckState.ERROR is judged(ended(0, stdout_truncated=True), data)[0]


def test_a_key_keeps_what_follows_the_file_whole() -> None:
    assert "test:a/t.py:T::m[p::q]" == key_of("a/t.py::T::m[p::q]")


def test_why_no_test_ran() -> None:
    without = CheckSpec("test", "gate", "")

    assert "the repository has no test" == no_runner(without, tests_exist=False)
    assert "no runner is locked" in no_runner(without, tests_exist=True)
