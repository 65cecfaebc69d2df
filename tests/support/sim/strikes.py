"""Which fault points are struck in a history, and the proof that they were (reliability.md §5).

The hook is the one that the processes take: `FaultPoint`. A strike kills the program that passes the
point, or loses its reply. The second of a pair counts from the first on.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from support.sim.loop import PROGRAM, Killed
from support.sim.loop import Program as Process
from upgraderun_protocol.effects import FaultPoint, Position, Program


@dataclass(frozen=True, slots=True, order=True)
class Strike:
    """A point of one program, and the how-manieth pass of it."""

    program: Program
    point: str
    occurrence: int = 1

    @property
    def loses_reply(self) -> bool:
        """Whether the program lives on, without an answer."""
        return self.point.endswith(f".{Position.REPLY_LOST}")

    @property
    def effect(self) -> str:
        """The row of the table of effects."""
        return self.point.rpartition(".")[0]

    def __str__(self) -> str:
        return f"{self.program}:{self.point}@{self.occurrence}"


@dataclass(slots=True)
class Strikes:
    """What is still to be struck, in order, and every point that was passed."""

    plan: list[Strike]
    hit: list[Strike] = field(default_factory=list)
    passed: list[tuple[Program, str]] = field(default_factory=list)
    after: dict[int, int] = field(default_factory=dict)
    on_kill: Callable[[Process], None] = lambda _: None
    _counts: dict[tuple[Program, str], int] = field(default_factory=dict)

    def hook(self, program: Program) -> FaultPoint:
        """The hook of one program."""

        def passes(effect: str, position: Position, /) -> bool | None:
            return self._pass(program, f"{effect}.{position}")

        return passes

    def followed(self, strikes: int) -> tuple[tuple[Program, str], ...]:
        """Points that were passed after so many strikes, each once, in order of appearance."""
        return tuple(dict.fromkeys(self.passed[self.after.get(strikes, 0) :]))

    def _pass(self, program: Program, point: str) -> bool | None:
        process = PROGRAM.get()
        if process is not None:
            process.check()
        self.passed.append((program, point))
        if not self.plan or (self.plan[0].program, self.plan[0].point) != (program, point):
            return None
        key = (program, point)
        self._counts[key] = self._counts.get(key, 0) + 1
        if self._counts[key] != self.plan[0].occurrence:
            return None
        strike = self.plan.pop(0)
        self.hit.append(strike)
        self._counts.clear()
        self.after[len(self.hit)] = len(self.passed)
        if strike.loses_reply:
            return True
        assert process is not None, "a point is passed by a program"
        self.on_kill(process)
        process.kill()
        raise Killed(str(strike))
