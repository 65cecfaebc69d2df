"""The sandbox commands of one step: planned first, numbered, kept for the outcome (DESIGN §6).

Callers: the runner's steps make one `StepCommands` per step and hand it to an ecosystem. The planned
list becomes the artifact of the `sb/<step>` intent, so nothing may run before it is announced.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from upgraderun_runner.sandbox.commands import Command, CommandResult
from upgraderun_runner.sandbox.driver import Isolation, Sandbox


@dataclass(frozen=True, slots=True)
class PlannedCommand:
    """A command as the intent's artifact shows it: no environment, that is the same everywhere."""

    argv: tuple[str, ...]
    profile: str
    workdir: str
    timeout_seconds: int


@dataclass(frozen=True, slots=True)
class ExecutedCommand:
    """A command as the outcome's artifact shows it: enough to run it again in the same place."""

    command_id: str
    argv: tuple[str, ...]
    profile: str
    workdir: str
    exit_code: int
    timed_out: bool
    killed: bool
    duration_ms: int


class NotPlannedError(RuntimeError):
    """A step ran a command before it announced its plan: a bug, never a state of the world."""


async def _announce_nothing(_plan: tuple[PlannedCommand, ...]) -> None:
    """Serve callers whose step has no journal, such as tests of an ecosystem."""


class StepCommands:
    """Runs the commands of one step through a driver and remembers them.

    `on_plan` is awaited with the planned list before the first command starts: the runner appends the
    `sb/<step>` intent there. The plan is the straight way through the step; further rounds that depend
    on results run under the same intent and stand in `executed`.
    """

    def __init__(
        self,
        driver: Sandbox,
        step: str,
        on_plan: Callable[[tuple[PlannedCommand, ...]], Awaitable[None]] = _announce_nothing,
    ) -> None:
        self._driver = driver
        self._step = step
        self._on_plan = on_plan
        self._planned = False
        self._executed: list[ExecutedCommand] = []

    @property
    def isolation(self) -> Isolation:
        """How strongly `execute` commands are isolated."""
        return self._driver.isolation

    @property
    def executed(self) -> tuple[ExecutedCommand, ...]:
        """Every command that ended, in order."""
        return tuple(self._executed)

    async def plan(self, commands: Sequence[Command]) -> None:
        """Announce the straight way through the step; later calls of the same step change nothing."""
        if self._planned:
            return
        await self._on_plan(tuple(_planned(command) for command in commands))
        self._planned = True

    async def run(self, command: Command) -> CommandResult:
        """Run the next command under the id `<step>.<n>`, n from 1."""
        if not self._planned:
            raise NotPlannedError(f"step {self._step} ran {command.argv[0]} before its plan")
        command_id = f"{self._step}.{len(self._executed) + 1}"
        result = await self._driver.run(command_id, command)
        self._executed.append(_executed(command_id, command, result))
        return result


def _planned(command: Command) -> PlannedCommand:
    return PlannedCommand(
        command.argv, command.profile.value, command.workdir, command.timeout_seconds
    )


def _executed(command_id: str, command: Command, result: CommandResult) -> ExecutedCommand:
    return ExecutedCommand(
        command_id=command_id,
        argv=command.argv,
        profile=command.profile.value,
        workdir=command.workdir,
        exit_code=result.exit_code,
        timed_out=result.timed_out,
        killed=result.killed,
        duration_ms=result.duration_ms,
    )
