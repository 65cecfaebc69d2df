"""Coverage of the changed lines (upgrade-run.md §7.4)."""

from upgraderun_runner.ecosystems.base import CoverageRecord
from upgraderun_runner.ecosystems.python.toolchain import PythonToolchain
from upgraderun_runner.ecosystems.requests import CoverageRequest
from upgraderun_runner.sandbox.recorder import StepCommands


async def measure(
    commands: StepCommands, toolchain: PythonToolchain, request: CoverageRequest
) -> CoverageRecord:
    """Judge every changed line."""
    raise NotImplementedError
