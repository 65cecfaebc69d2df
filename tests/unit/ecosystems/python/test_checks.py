"""Build, type and lint results become findings without line numbers (upgrade-run.md §7.1, §7.3)."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from upgraderun_runner.ecosystems.base import CheckSpec, CheckState
from upgraderun_runner.ecosystems.python.building import judge_imports, judge_uv
from upgraderun_runner.ecosystems.python.linters import parse_mypy, parse_pyright, parse_ruff
from upgraderun_runner.ecosystems.python.parse import Parsed, conclude
from upgraderun_runner.sandbox.commands import CommandResult

BUILD = CheckSpec("build", "gate", "uv")
LINT = CheckSpec("lint", "compare", "ruff")
PROJECT = Path("/room/src")


def ended(
    exit_code: int, out: object = b"", err: str = "", *, killed: bool = False
) -> CommandResult:
    data = out if isinstance(out, bytes) else json.dumps(out).encode()
    return CommandResult(exit_code, False, killed, data, err.encode(), False, False, 5)


def lines(*rows: Mapping[str, object]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def concluded(
    spec: CheckSpec, result: CommandResult, parsed: Parsed
) -> tuple[CheckState, list[str]]:
    check = conclude(spec, result, parsed)
    return check.state, [f"{finding.key} x{finding.count}" for finding in check.findings]


class TestBuild:
    def imports(self, result: CommandResult) -> tuple[CheckState, list[str]]:
        check = judge_imports(BUILD, result)
        return check.state, [finding.key for finding in check.findings]

    def test_good_imports_pass(self) -> None:
        row = {"kind": "import", "module": "demo", "exception": "", "message": ""}
        trailer = {"kind": "trailer", "compiled": 3, "imported": 1}

        assert (CheckState.PASS, []) == self.imports(ended(0, lines(row, trailer)))

    def test_what_does_not_compile_or_import_is_a_finding(self) -> None:
        rows = lines(
            {"kind": "compile", "file": "demo/a.py", "message": "invalid  syntax"},
            {"kind": "import", "module": "demo", "exception": "ImportError", "message": "no x"},
            {"kind": "trailer", "compiled": 1, "imported": 1},
        )

        assert (
            CheckState.FAIL,
            ["build:demo/a.py:invalid syntax", "import:demo:ImportError"],
        ) == self.imports(ended(1, rows))

    @pytest.mark.parametrize(
        "out",
        [
            b"",
            b"hello\n",
            lines({"kind": "import", "module": "x", "exception": "", "message": ""}),
            lines({"kind": "trailer", "compiled": 0, "imported": 2}),
            lines({"kind": "trailer", "compiled": 0, "imported": 0}) + b"noise\n",
        ],
    )
    def test_a_report_that_is_not_whole_is_no_verdict(self, out: bytes) -> None:
        assert (CheckState.ERROR, []) == self.imports(ended(0, out))

    def test_a_back_end_that_fails_speaks_against_the_tree(self) -> None:
        text = (
            "error: Failed to build `demo @ file:///room/src`\n"
            "  cause: The build backend returned an error\n"
            "  cause: Call to `hatchling.build.build_editable` failed (exit status: 1)\n\n"
            "[stderr]\nTraceback (most recent call last):\n"
            '  File "/room/x.py", line 3, in <module>\nValueError: no  such file\n'
        )

        check = judge_uv(BUILD, ended(1, err=text))

        assert check is not None
        assert (CheckState.FAIL, ["build:manifest:ValueError: no such file"]) == (
            check.state,
            [finding.key for finding in check.findings],
        )

    def test_a_stale_lock_speaks_against_the_tree(self) -> None:
        check = judge_uv(
            BUILD, ended(1, err="error: The lockfile at `uv.lock` needs to be updated")
        )

        assert check is not None
        assert CheckState.FAIL is check.state

    def test_an_incomplete_cache_is_ours(self) -> None:
        check = judge_uv(BUILD, ended(1, err="error: aa was not found in the cache"))

        assert check is not None
        assert (CheckState.ERROR, ()) == (check.state, check.findings)

    def test_success_goes_on(self) -> None:
        assert judge_uv(BUILD, ended(0)) is None

    def test_a_kill_does_not_go_on(self) -> None:
        check = judge_uv(BUILD, ended(137, killed=True))

        assert check is not None
        assert CheckState.ERROR is check.state


class TestMypy:
    OUT = (
        b"src/a.py:3: error: Name  'x' is not defined  [name-defined]\n"
        b"src/a.py:9:5: error: Name 'x' is not defined  [name-defined]\n"
        b"src/a.py:9: note: See https://x\n"
        b"b.py: error: Source file found twice\n"
    )

    def test_errors_are_counted_by_file_rule_and_message(self) -> None:
        result = ended(1, self.OUT)

        assert (
            CheckState.FAIL,
            [
                "typecheck:b.py:error:Source file found twice x1",
                "typecheck:src/a.py:name-defined:Name 'x' is not defined x2",
            ],
        ) == concluded(LINT, result, parse_mypy(result))

    def test_a_crash_without_errors_is_no_verdict(self) -> None:
        result = ended(2, b"", "mypy: can't read file")

        assert (CheckState.ERROR, []) == concluded(LINT, result, parse_mypy(result))


class TestRuff:
    ROW: Mapping[str, object] = {
        "filename": "/room/src/a/b.py",
        "code": "F401",
        "message": "unused",
    }

    def test_rules_are_counted_per_file(self) -> None:
        result = ended(1, [dict(self.ROW), dict(self.ROW), {**self.ROW, "code": None}])

        assert (CheckState.FAIL, ["lint:a/b.py:F401 x2", "lint:a/b.py:syntax x1"]) == concluded(
            LINT, result, parse_ruff(result, PROJECT)
        )

    @pytest.mark.parametrize("out", [b"no json", b"{}", b"[1]", b"[{}]"])
    def test_another_dialect_is_no_verdict(self, out: bytes) -> None:
        result = ended(0, out)

        assert (CheckState.ERROR, []) == concluded(LINT, result, parse_ruff(result, PROJECT))


class TestPyright:
    def test_errors_count_and_warnings_do_not(self) -> None:
        row = {"file": "/room/src/a.py", "severity": "error", "message": "bad\n  type", "rule": "r"}
        result = ended(1, {"generalDiagnostics": [row, {**row, "severity": "warning"}]})

        assert (CheckState.FAIL, ["typecheck:a.py:r:bad type x1"]) == concluded(
            LINT, result, parse_pyright(result, PROJECT)
        )

    @pytest.mark.parametrize("out", [b"", b"[]", b'{"generalDiagnostics": [{}]}'])
    def test_another_dialect_is_no_verdict(self, out: bytes) -> None:
        result = ended(0, out)

        assert (CheckState.ERROR, []) == concluded(LINT, result, parse_pyright(result, PROJECT))


def test_tails_are_bounded_text() -> None:
    check = conclude(BUILD, ended(0, b"\xff\x00" * 5000), judge_parsed())

    assert 4096 == len(check.stdout_tail)
    assert "\x00" not in check.stdout_tail


def judge_parsed() -> Parsed:
    return parse_mypy(ended(0))
