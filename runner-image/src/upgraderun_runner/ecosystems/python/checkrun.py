"""One pass through the checks of one snapshot, in one room (upgrade-run.md §7.1, uv-facts §8).

Callers: validate, exercise. The room is removed at the end; what remains is left to the sweep. A tree whose
environment can't be built fails `build`, and its other checks are absent: there is nothing to run them in.
"""

import asyncio
import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from upgraderun_runner.ecosystems.base import CheckResult, CheckSpec, Parse
from upgraderun_runner.ecosystems.python.building import judge_imports, judge_uv
from upgraderun_runner.ecosystems.python.linters import parse_mypy, parse_pyright, parse_ruff
from upgraderun_runner.ecosystems.python.manifest import parse_manifest
from upgraderun_runner.ecosystems.python.parse import Parsed, absent, conclude
from upgraderun_runner.ecosystems.python.pytest_report import (
    REPORT_BYTES_MAX,
    no_runner,
    parse_pytest,
)
from upgraderun_runner.ecosystems.python.room import CheckRoom
from upgraderun_runner.ecosystems.python.toolchain import PythonToolchain
from upgraderun_runner.ecosystems.requests import CoverageRequest, ValidationRequest
from upgraderun_runner.sandbox.commands import Command, CommandResult
from upgraderun_runner.sandbox.recorder import StepCommands

_CONFIG_FILES: Final = ("pyproject.toml", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg")
_CONFIG_BYTES_MAX: Final = 1024 * 1024
_TEST_PATTERNS: Final = ("test_*.py", "*_test.py")


class CheckRun:
    """Runs checks of `snapshot` in a new room at `root`."""

    def __init__(
        self,
        commands: StepCommands,
        toolchain: PythonToolchain,
        request: ValidationRequest | CoverageRequest,
        snapshot: Path,
        root: Path,
    ) -> None:
        self._commands = commands
        self._request = request
        self._profile = request.profile
        self._snapshot = snapshot
        self._project = snapshot / request.profile.directory
        self._removal: asyncio.Task[None] | None = None
        fitting = [b for b in toolchain.uv if b.version == request.profile.lock_tool_version]
        self.room = CheckRoom(
            root=root,
            toolchain=toolchain,
            profile=request.profile,
            uv=(fitting[0] if fitting else toolchain.newest).path,
            seconds=request.check_timeout_seconds,
        )

    def planned(self) -> list[Command]:
        """The straight way through all checks."""
        commands = self.environment_commands()
        if not self._profile.virtual:
            commands += [self.room.wheel(), self.room.build_check()]
        runners = (self._command(spec) for spec in self._profile.checks)
        return commands + [command for command in runners if command is not None]

    def environment_commands(self) -> list[Command]:
        """Make the copies, prove the lock, install."""
        prepare = self.room.prepare(self._snapshot, self._request.cache, self._request.base_tag)
        return [prepare, self.room.lock_check(), self.room.sync()]

    async def all_checks(self) -> tuple[CheckResult, ...]:
        """Run every check."""
        build, *others = self._profile.checks
        self.room.create()
        try:
            failed, synced = await self.environment(build)
            if failed is not None:
                reason = "not run: the environment couldn't be built"
                return (failed, *(absent(spec, reason) for spec in others))
            return (await self._built(build, synced), *[await self._check(s) for s in others])
        finally:
            self.close()

    async def tests_again(self, subjects: tuple[str, ...]) -> CheckResult:
        """Run only these test ids, in a fresh room."""
        spec = next(spec for spec in self._profile.checks if spec.name == "test")
        self.room.create()
        try:
            failed, _ = await self.environment(spec)
            if failed is not None:
                return failed
            self.room.only.write_text(json.dumps(subjects), encoding="utf-8")
            command = self.room.pytest(self.config_text(), only=True)
            result = await self._commands.run(command)
            return conclude(spec, result, self.parsed_tests(result, selected=True))
        finally:
            self.close()

    async def environment(self, spec: CheckSpec) -> tuple[CheckResult | None, CommandResult]:
        """Make the environment under test; a failure is judged as `spec`."""
        prepare, check, sync = self.environment_commands()
        result = await self._commands.run(prepare)
        if result.exit_code != 0:
            problem = Parsed((), Parse.FAILED, "the writable copy couldn't be made")
            return conclude(spec, result, problem), result
        for command in (check, sync):
            result = await self._commands.run(command)
            failed = judge_uv(spec, result)
            if failed is not None:
                return failed, result
        return None, result

    def close(self) -> None:
        """Start to remove the room; `closed` waits for it."""
        self._removal = asyncio.create_task(asyncio.to_thread(remove_tree, self.room.root))

    async def closed(self) -> None:
        """Wait until the room is removed, as far as its permissions allow."""
        if self._removal is not None:
            await self._removal

    async def _built(self, spec: CheckSpec, synced: CommandResult) -> CheckResult:
        if self._profile.virtual:
            return conclude(spec, synced, Parsed((), Parse.COMPLETE))
        failed = judge_uv(spec, await self._commands.run(self.room.wheel()))
        if failed is not None:
            return failed
        return judge_imports(spec, await self._commands.run(self.room.build_check()))

    def _command(self, spec: CheckSpec) -> Command | None:
        if spec.tool == "mypy":
            return self.room.mypy(self._mypy_targets())
        if spec.tool == "pyright":
            return self.room.pyright()
        if spec.tool == "ruff":
            return self.room.ruff()
        return self.room.pytest(self.config_text()) if spec.tool == "pytest" else None

    async def _check(self, spec: CheckSpec) -> CheckResult:
        command = self._command(spec)
        if command is None:
            return absent(spec, no_runner(spec, tests_exist=tests_exist(self._snapshot)))
        result = await self._commands.run(command)
        return conclude(spec, result, self._parsed(spec, result))

    def _parsed(self, spec: CheckSpec, result: CommandResult) -> Parsed:
        if spec.tool == "mypy":
            return parse_mypy(result)
        if spec.tool == "pyright":
            return parse_pyright(result, self.room.project)
        if spec.tool == "ruff":
            return parse_ruff(result, self.room.project)
        return self.parsed_tests(result, selected=False)

    def parsed_tests(self, result: CommandResult, *, selected: bool) -> Parsed:
        """Judge the report that the plug-in left in the room."""
        report = read_report(self.room.report, REPORT_BYTES_MAX)
        return parse_pytest(result, report, selected=selected)

    def config_text(self) -> str:
        """Everything that may hold pytest options, to see which plug-ins are switched off."""
        texts = []
        for name in _CONFIG_FILES:
            path = self._project / name
            if path.is_file() and path.stat().st_size <= _CONFIG_BYTES_MAX:
                texts.append(path.read_text(encoding="utf-8", errors="replace"))
        return "\n".join(texts)

    def _mypy_targets(self) -> tuple[str, ...]:
        """Nothing if the configuration names the files, else the sources."""
        settings: Any = parse_manifest((self._project / "pyproject.toml").read_bytes()).tool
        mypy = settings.get("mypy", {})
        if any(key in mypy for key in ("files", "packages", "modules")):
            return ()
        for name in ("mypy.ini", ".mypy.ini"):
            path = self._project / name
            if path.is_file() and "files" in path.read_text(encoding="utf-8", errors="replace"):
                return ()
        return ("src",) if (self._project / "src").is_dir() else (".",)


def tests_exist(snapshot: Path) -> bool:
    """Whether a tree holds files that look like tests."""
    return any(next(snapshot.rglob(pattern), None) is not None for pattern in _TEST_PATTERNS)


def read_report(path: Path, limit: int) -> bytes | None:
    """Read a file that untrusted code wrote: no links, regular files only, bounded."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(limit)
    finally:
        os.close(descriptor)


def remove_tree(root: Path) -> None:
    """Remove a room as far as its permissions allow: tests leave directories without any."""
    shutil.rmtree(root, onerror=_open_and_retry)


def _open_and_retry(function: Callable[..., object], path: str, _error: object) -> None:
    """Give back write permission and try once more; what stays is the sweep's."""
    try:
        Path(path).parent.chmod(stat.S_IRWXU)
        if not Path(path).is_symlink():
            Path(path).chmod(stat.S_IRWXU)
        if function in (os.scandir, os.open, os.lstat):
            shutil.rmtree(path, ignore_errors=True)
        else:
            function(path)
    except (OSError, TypeError):
        return
