"""What an upgrade forces to move, and the bounds that keep it near (upgrade-run.md §8.2, §5.3).

Callers: staging. Pure: from two models to the next bounds to try. The resolver takes the *highest*
version of what it must move; a bound `-P 'name<next class'` makes it the nearest that fits.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from packaging.version import Version

from upgraderun_runner.ecosystems.base import ChangeClass, LockModel, Target
from upgraderun_runner.ecosystems.python.gates import entering
from upgraderun_runner.ecosystems.python.versions import (
    bounds_between,
    classify,
    parse_version,
)

CLOSURE_ROUNDS_MAX: Final = 5
YOUNG_ROUNDS_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Mover:
    """A name that the target forces to move, with the largest class that it reached."""

    name: str
    before: Version
    after: Version
    change_class: ChangeClass

    @property
    def bounds(self) -> tuple[str, ...]:
        """Exclusive bounds that would bring it nearer, tightest first."""
        return bounds_between(self.before, self.after)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Exclusive upper bounds per name; several add up."""

    by_name: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def with_bounds(self, more: Iterable[tuple[str, str]]) -> "Bounds":
        """Add bounds."""
        merged = {name: list(values) for name, values in self.by_name}
        for name, value in more:
            values = merged.setdefault(name, [])
            if value not in values:
                values.append(value)
        return Bounds(tuple((name, tuple(values)) for name, values in sorted(merged.items())))

    @property
    def upgrades(self) -> tuple[str, ...]:
        """The bounds as values of `-P`."""
        return tuple(f"{name}<{value}" for name, values in self.by_name for value in values)


def movers(before: LockModel, after: LockModel, target: Target) -> tuple[Mover, ...]:
    """List forced movers whose class is larger than patch, smallest class first, then by name.

    A newcomer has no version to stay near, and of a forked name a bound would move every fork, so
    neither is bounded; the proposal shows both.
    """
    highest: dict[str, Version] = {}
    for entry in entering(before, after):
        version = parse_version(entry.version)
        if version is not None and entry.name != target.name:
            highest[entry.name] = max(version, highest.get(entry.name, version))
    found = []
    for name, version in highest.items():
        olds = [parse_version(entry.version) for entry in before.named(name)]
        if len(olds) != 1 or olds[0] is None or version < olds[0]:
            continue
        change_class = classify(olds[0], version)
        if change_class is not ChangeClass.PATCH:
            found.append(Mover(name, olds[0], version, change_class))
    return tuple(sorted(found, key=lambda mover: (mover.change_class.rank, mover.name)))


def forked_movers(before: LockModel, after: LockModel, target: Target) -> tuple[str, ...]:
    """Name the movers that were locked in several versions and so aren't held."""
    names = {entry.name for entry in entering(before, after)} - {target.name}
    return tuple(sorted(name for name in names if len(before.named(name)) > 1))


class NearestClosure:
    """Decides which bounds to try next; told what each try gave (≤ 5 tries).

    First all movers together, after a refusal each alone, smallest class first. Of a mover's possible
    bounds the middle one is tried, so that a few tries suffice for a long way. A bound that resolved is
    kept; one that was refused alone rules out the tighter ones.
    """

    def __init__(self, kept: Bounds) -> None:
        self.kept = kept
        self.rounds = 0
        self._refused: dict[str, Version] = {}
        self._alone = False
        self._tried: tuple[tuple[str, str], ...] = ()

    def next(self, found: tuple[Mover, ...]) -> Bounds | None:
        """Give the bounds of the next try, or None when nothing is left to try."""
        if self.rounds >= CLOSURE_ROUNDS_MAX:
            return None
        open_bounds = [(m.name, bound) for m in found if (bound := self._bound(m)) is not None]
        if not open_bounds:
            return None
        self._tried = tuple(open_bounds[:1] if self._alone else open_bounds)
        self.rounds += 1
        return self.kept.with_bounds(self._tried)

    def _bound(self, mover: Mover) -> str | None:
        refused = self._refused.get(mover.name)
        left = [b for b in mover.bounds if refused is None or Version(b) > refused]
        return left[len(left) // 2] if left else None

    def resolved(self) -> None:
        """The last try resolved: keep its bounds."""
        self.kept = self.kept.with_bounds(self._tried)

    def refused(self) -> None:
        """The last try didn't resolve: alone it never will, together one of them may."""
        if len(self._tried) == 1:
            name, bound = self._tried[0]
            self._refused[name] = Version(bound)
        self._alone = True
