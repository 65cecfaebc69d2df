"""Phase 10 for repairs: run the tests once more with coverage, judge the changed lines (§7.4).

Callers: `PythonEcosystem`. coverage.py comes from the image and its rc file from us, so the repository's
own settings (omit, pragmas) hide nothing. Tested code can forge its results: this is a floor, no proof.
"""

import fnmatch
import json
import os.path
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from upgraderun_runner.ecosystems.base import (
    CheckResult,
    CheckSpec,
    CheckState,
    CoverageRecord,
    LineJudgement,
)
from upgraderun_runner.ecosystems.python.checkrun import CheckRun, read_report
from upgraderun_runner.ecosystems.python.judge import FileCoverage, coverage_of, judge_file
from upgraderun_runner.ecosystems.python.parse import conclude
from upgraderun_runner.ecosystems.python.toolchain import PythonToolchain
from upgraderun_runner.ecosystems.requests import CoverageRequest
from upgraderun_runner.sandbox.commands import Command
from upgraderun_runner.sandbox.recorder import StepCommands

COVERAGE_BYTES_MAX: Final = 64 * 1024 * 1024
_TEST_FILES: Final = ("test_*.py", "*_test.py", "conftest.py")
_RC: Final = """\
[run]
branch = true
parallel = true
data_file = {data}
source = {source}
concurrency = thread,multiprocessing
relative_files = true
patch = subprocess
[report]
exclude_lines = a^
"""
"""`a^` never matches: a pragma must not hide a repair. `patch` sees workers and subprocesses."""


async def measure(
    commands: StepCommands, toolchain: PythonToolchain, request: CoverageRequest
) -> CoverageRecord:
    """Judge every changed line of source that isn't a test. Pair files are the gates' business."""
    paths = tuple(path for path in request.changed_paths if _is_judged(path, request))
    files: Mapping[str, FileCoverage] = {}
    problem = _impossible(request, toolchain) if paths else ""
    if paths and not problem:
        files, problem = await _Measurement(commands, toolchain, request).run()
    else:
        await commands.plan([])
    return CoverageRecord(
        tree=request.tree,
        config_hash=request.config_hash,
        judgements=tuple(j for path in paths for j in _judged(path, request, files, problem)),
        problem=problem,
        duration_ms=sum(command.duration_ms for command in commands.executed),
    )


def _impossible(request: CoverageRequest, toolchain: PythonToolchain) -> str:
    if not toolchain.coverage_dir:
        return "the image holds no coverage.py"
    if not any(spec.tool == "pytest" for spec in request.profile.checks):
        return "no test runner is locked"
    return ""


def _is_judged(path: str, request: CoverageRequest) -> bool:
    pair = (request.profile.manifest_path, request.profile.lock_path)
    pure = PurePosixPath(path)
    is_test = any(fnmatch.fnmatchcase(pure.name, pattern) for pattern in _TEST_FILES)
    return path not in pair and not is_test and "tests" not in pure.parts[:-1]


class _Measurement:
    """The commands of one coverage run, in a room of its own."""

    def __init__(
        self, commands: StepCommands, toolchain: PythonToolchain, request: CoverageRequest
    ) -> None:
        self._commands = commands
        self._request = request
        root = request.scratch / "run-coverage"
        self._run = CheckRun(commands, toolchain, request, request.snapshot, root)
        self._rc = root / "coveragerc"
        self._json = root / "coverage.json"

    async def run(self) -> tuple[Mapping[str, FileCoverage], str]:
        run = self._run
        combine, report = self._reporting()
        tests = run.room.pytest(run.config_text(), coverage=str(self._rc))
        await self._commands.plan([*run.environment_commands(), tests, combine, report])
        run.room.create()
        try:
            spec = CheckSpec("test", "gate", "pytest")
            failed, _ = await run.environment(spec)
            if failed is not None:
                return {}, f"the environment couldn't be built: {failed.reason}"
            self._write_rc()
            result = await self._commands.run(tests)
            checked = conclude(spec, result, run.parsed_tests(result, selected=False))
            problem = _unusable(checked, self._request.flaky)
            if problem:
                return {}, problem
            for command in (combine, report):
                done = await self._commands.run(command)
                if done.exit_code != 0:
                    return {}, "coverage.py left no data"
            return self._parsed()
        finally:
            run.close()
            await run.closed()

    def _reporting(self) -> tuple[Command, Command]:
        room, rc = self._run.room, f"--rcfile={self._rc}"
        return (
            room.coverage("combine", rc, "--quiet"),
            room.coverage("json", rc, "--quiet", "-o", str(self._json)),
        )

    def _write_rc(self) -> None:
        data = self._run.room.root / "coverage-data" / "data"
        data.parent.mkdir()
        text = _RC.format(data=data, source=self._run.room.source)
        self._rc.write_text(text, encoding="utf-8")

    def _parsed(self) -> tuple[Mapping[str, FileCoverage], str]:
        data = read_report(self._json, COVERAGE_BYTES_MAX)
        if data is None:
            return {}, "coverage.py left no report, or one that is too large"
        try:
            answer = json.loads(data)
            if answer["meta"]["branch_coverage"] is not True:
                return {}, "coverage.py measured no branches"
            rows = {self._in_tree(name): coverage_of(row) for name, row in answer["files"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return {}, f"coverage.py's report is malformed: {error}"
        return rows, ""

    def _in_tree(self, name: str) -> str:
        """Spell a file as the tree does: coverage.py's names are relative to the project."""
        return os.path.normpath(Path(self._request.profile.directory, name))


def _unusable(checked: CheckResult, flaky: tuple[str, ...]) -> str:
    if not checked.conclusive:
        return f"the tests gave no verdict under coverage: {checked.reason}"
    failing = [item.key for item in checked.findings if item.key not in flaky]
    if failing:
        return f"tests fail under coverage: {failing[0]}"
    return "pytest collected no test" if checked.state is CheckState.ABSENT else ""


def _judged(
    path: str, request: CoverageRequest, files: Mapping[str, FileCoverage], problem: str
) -> tuple[LineJudgement, ...]:
    if problem:
        return (LineJudgement(path, 1, 1, False, problem),)
    if not path.endswith(".py"):
        return (LineJudgement(path, 1, 1, False, "not a Python source file"),)
    before, after = _text(request.base_snapshot / path), _text(request.snapshot / path)
    if after is None:
        return (LineJudgement(path, 1, 1, False, "the file was removed"),)
    return judge_file(path, before or "", after, files.get(path))


def _text(path: Path) -> str | None:
    """Read a source; None if it isn't there, is a link, or isn't UTF-8."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return None
