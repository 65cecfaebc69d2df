"""A step announces its commands before the first of them runs (DESIGN §6, `sb/<step>`)."""

from dataclasses import replace

import pytest

from upgraderun_runner.sandbox.commands import Command, CommandResult, Profile
from upgraderun_runner.sandbox.driver import Isolation
from upgraderun_runner.sandbox.recorder import NotPlannedError, PlannedCommand, StepCommands

RESULT = CommandResult(0, False, False, b"", b"", False, False, 7)


class Driver:
    """Answers every command at once and keeps the order of what happened."""

    isolation = Isolation.NONE

    def __init__(self, log: list[str]) -> None:
        self.log = log

    async def run(self, command_id: str, command: Command) -> CommandResult:
        self.log.append(f"{command_id} {command.argv[0]}")
        return RESULT


def command(name: str) -> Command:
    return Command((name,), Profile.TOOL, "/", (("A", "secret"),), 5)


async def test_the_plan_is_announced_once_and_before_the_first_command() -> None:
    log: list[str] = []

    async def announce(plan: tuple[PlannedCommand, ...]) -> None:
        log.append(f"plan {[p.argv for p in plan]}")

    step = StepCommands(Driver(log), "baseline", announce)
    await step.plan([command("a"), command("b")])
    await step.plan([command("c")])
    await step.run(command("a"))
    await step.run(command("b"))

    assert ["plan [('a',), ('b',)]", "baseline.1 a", "baseline.2 b"] == log
    assert ["baseline.1", "baseline.2"] == [e.command_id for e in step.executed]


async def test_an_executed_command_says_where_it_ran() -> None:
    step = StepCommands(Driver([]), "s1")
    await step.plan([command("a")])
    await step.run(replace(command("a"), workdir="/scratch/here"))

    assert [("a",)] == [e.argv for e in step.executed]
    assert ["/scratch/here"] == [e.workdir for e in step.executed]


async def test_no_command_runs_without_a_plan() -> None:
    log: list[str] = []

    with pytest.raises(NotPlannedError):
        await StepCommands(Driver(log), "s1").run(command("a"))

    assert log == []


async def test_a_failed_announcement_keeps_the_step_unplanned() -> None:
    async def refuse(_plan: tuple[PlannedCommand, ...]) -> None:
        raise ConnectionError

    step = StepCommands(Driver([]), "s1", refuse)
    with pytest.raises(ConnectionError):
        await step.plan([command("a")])

    with pytest.raises(NotPlannedError):
        await step.run(command("a"))
