"""Every fault point that `patch-safe` passes, struck alone and in ordered pairs; and what must hold then.

Callers: the tests of tests/sim and `hack/crash-pairs`. The pairs are found by playing: after a first
strike, each point that is passed later is struck second at its next pass. A point that isn't passed any
more has no pair with it, and is counted as that.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from support.crash import KILLS, may_repeat
from support.sim.strikes import Strike
from support.sim.world import History, play
from upgraderun_protocol.effects import Program, points_of
from upgraderun_protocol.entries import EntryState

Point = tuple[Program, str]
NOT_PASSED: Final[Mapping[str, str]] = {
    "file_write": "`patch-safe` repairs nothing",
    "outcome": "its end is the publisher's verdict, not the leader's",
    "clone_token": "its credentials are mounted",
    "push_token": "its credentials are mounted",
}
"""Effects that the scenario hasn't, and why."""
ANOTHER: Final[Mapping[Program, frozenset[str]]] = {
    Program.OPERATOR: frozenset(),
    Program.RUNNER: frozenset({"attempt", "incarnation", "end"}),
    Program.PUBLISHER: frozenset({"delivery", "incarnation", "end"}),
}
"""What one more pod writes by all means."""
MAKES_PODS: Final = frozenset({"ADDED pods", "DELETED pods", "MODIFIED pods"})
TELLS: Final = frozenset({"ADDED events", "MODIFIED upgraderuns"})
"""What a repetition may add: a write of the journal, and an Event about it."""
REPORTS: Final = frozenset({"MODIFIED upgradereports"})


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """The history that every other one is compared with."""

    history: History

    @property
    def points(self) -> tuple[Strike, ...]:
        """Every point that is passed, at the pass that the crash matrix strikes."""
        return tuple(
            Strike(program, point, KILLS[program][point].occurrence)
            for program in Program
            for point in points_of(program)
            if (program, point) in self.history.passed
        )

    @property
    def not_passed(self) -> Mapping[Point, str]:
        """Points that this scenario never passes, with the reason."""
        return {
            (program, point): NOT_PASSED[point.rpartition(".")[0]]
            for program in Program
            for point in points_of(program)
            if (program, point) not in self.history.passed
        }

    def problems(self, struck: History, strikes: tuple[Strike, ...]) -> list[str]:
        """What a disturbed history did otherwise, but for what its effects declare."""
        found = [] if struck.hit == strikes else [f"hit {[str(one) for one in struck.hit]}"]
        for name in struck.end.__dataclass_fields__:
            mine, theirs = getattr(struck.end, name), getattr(self.history.end, name)
            if mine != theirs:
                found.append(f"{name}: {mine} instead of {theirs}")
        if struck.quiet:
            found.append(f"it doesn't stay as it is: {dict(struck.quiet)}")
        return found + self._entries(struck, strikes) + self._writes(struck, strikes)

    def _entries(self, struck: History, strikes: tuple[Strike, ...]) -> list[str]:
        """Entries that are missing, or repeated without a declaration."""
        here, there = _counted(struck), _counted(self.history)
        found = []
        for name, count in (there - here).items():
            cut = here[f"{name.split()[0]} {EntryState.INTERRUPTED}"]
            if count > cut:
                found.append(f"missing: {name} {count}")
        allowed = frozenset().union(*(_may_write(strike) for strike in strikes))
        more = dict(here - there)
        undeclared = {name: n for name, n in more.items() if name.split()[0] not in allowed}
        return found + ([f"repeated without a declaration: {undeclared}"] if undeclared else [])

    def _writes(self, struck: History, strikes: tuple[Strike, ...]) -> list[str]:
        """Objects made or deleted more often, or less often, than in the undisturbed history."""
        here, there = Counter(struck.written), Counter(self.history.written)
        kills = sum(not s.loses_reply and s.program is not Program.OPERATOR for s in strikes)
        less = {name: n for name, n in (there - here).items() if name not in TELLS | MAKES_PODS}
        more = {name: n for name, n in (here - there).items() if name not in TELLS | REPORTS}
        for name in ("ADDED pods", "DELETED pods"):
            if here[name] - there[name] <= kills:
                more.pop(name, None)
        more.pop("MODIFIED pods", None)
        return [f"writes: less {less}, more {more}"] if less or more else []


def undisturbed() -> Undisturbed:
    """Play it once."""
    return Undisturbed(play())


def seconds_of(single: History) -> tuple[Strike, ...]:
    """Every point that is passed after a first strike, each at its next pass."""
    return tuple(Strike(program, point) for program, point in single.followed)


def _counted(history: History) -> Counter[str]:
    return Counter(f"{entry.kind} {entry.state.value}" for entry in history.entries)


def _may_write(strike: Strike) -> frozenset[str]:
    """Kinds of entries that a strike may add: the row's declaration, and another pod where one died."""
    own = frozenset() if strike.loses_reply else ANOTHER[strike.program]
    return may_repeat(strike.effect) | own
