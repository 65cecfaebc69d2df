"""Phases 5 and 10: all checks of exactly one snapshot, repeated where tests seem unstable (§7).

Callers: `PythonEcosystem`. Each run of the checks has its own room: a writable copy with a synthetic git,
a private copy of the cache, a new environment. Nothing that `execute` wrote is read again, but for the
check's own report.
"""

from pathlib import Path

from upgraderun_runner.ecosystems.base import (
    AcquisitionFailed,
    CheckResult,
    Finding,
    ValidationRecord,
)
from upgraderun_runner.ecosystems.python.acquire import cache_digest
from upgraderun_runner.ecosystems.python.checkrun import CheckRun, tests_exist
from upgraderun_runner.ecosystems.python.compare import (
    REPETITIONS,
    flaky_in_baseline,
    introduced_by,
    is_clean,
    lost_tests,
    sort_introduced,
    worth_repeating,
)
from upgraderun_runner.ecosystems.python.toolchain import PythonToolchain
from upgraderun_runner.ecosystems.requests import ValidationRequest
from upgraderun_runner.sandbox.recorder import StepCommands


async def validate(
    commands: StepCommands, toolchain: PythonToolchain, request: ValidationRequest
) -> ValidationRecord:
    """Run the checks, repeat what is unclear, say what is introduced.

    Raises AcquisitionFailed if the cache isn't what was acquired: something wrote to it.
    """
    if await cache_digest(request.cache) != request.acquisition.cache_digest:
        raise AcquisitionFailed("cache_changed", "", "the cache isn't the one that was acquired")
    validation = _Validation(commands, toolchain, request)
    try:
        return await validation.run()
    finally:
        await validation.closed()


class _Validation:
    """One validation; rooms are numbered in the order in which they are used."""

    def __init__(
        self, commands: StepCommands, toolchain: PythonToolchain, request: ValidationRequest
    ) -> None:
        self._commands = commands
        self._toolchain = toolchain
        self._request = request
        self._runs: list[CheckRun] = []

    async def run(self) -> ValidationRecord:
        request = self._request
        first = self._run_of(request.snapshot)
        await self._commands.plan(first.planned())
        checks = await first.all_checks()
        introduced: tuple[Finding, ...] = ()
        unstable: tuple[str, ...] = ()
        if request.baseline is None:
            flaky = await self._flaky_baseline(checks)
        else:
            flaky = request.baseline.flaky
            suspects = introduced_by(checks, request.baseline)
            introduced, more, unstable = await self._sorted(suspects)
            flaky = (*flaky, *more)
        baseline = request.baseline.checks if request.baseline else ()
        return ValidationRecord(
            tree=request.tree,
            config_hash=request.config_hash,
            images=(request.profile.image.image,),
            isolation=self._commands.isolation.value,
            toolchain=(
                f"python {request.acquisition.platform.version}",
                request.acquisition.lock_tool,
                *request.acquisition.kit,
            ),
            checks=checks,
            conclusive=all(check.conclusive for check in checks) and not unstable,
            clean=is_clean(checks, flaky) and not unstable,
            introduced=introduced,
            flaky=flaky,
            unstable=unstable,
            lost_tests=lost_tests(baseline, checks),
            tests_exist=tests_exist(request.snapshot),
            duration_ms=sum(command.duration_ms for command in self._commands.executed),
        )

    async def _flaky_baseline(self, checks: tuple[CheckResult, ...]) -> tuple[str, ...]:
        failing = worth_repeating(item for check in checks for item in check.findings)
        if not failing:
            return ()
        return flaky_in_baseline(failing, await self._repeat(self._request.snapshot, failing))

    async def _sorted(
        self, suspects: tuple[Finding, ...]
    ) -> tuple[tuple[Finding, ...], tuple[str, ...], tuple[str, ...]]:
        repeated = worth_repeating(suspects)
        base = self._request.base_snapshot
        if not repeated or base is None:
            return suspects, (), ()
        certain = tuple(item for item in suspects if item not in repeated)
        on_base = await self._repeat(base, repeated)
        on_candidate = await self._repeat(self._request.snapshot, repeated)
        introduced, flaky, unstable = sort_introduced(repeated, on_base, on_candidate)
        return tuple(sorted((*certain, *introduced), key=_by_key)), flaky, unstable

    async def _repeat(
        self, snapshot: Path, findings: tuple[Finding, ...]
    ) -> tuple[CheckResult, ...]:
        subjects = tuple(item.subject for item in findings)
        return tuple(
            [await self._run_of(snapshot).tests_again(subjects) for _ in range(REPETITIONS)]
        )

    def _run_of(self, snapshot: Path) -> CheckRun:
        root = self._request.scratch / f"run-{len(self._runs) + 1}"
        run = CheckRun(self._commands, self._toolchain, self._request, snapshot, root)
        self._runs.append(run)
        return run

    async def closed(self) -> None:
        """Wait for the removal of every room; it goes on while the next one works."""
        for run in self._runs:
            await run.closed()


def _by_key(item: Finding) -> str:
    return item.key
