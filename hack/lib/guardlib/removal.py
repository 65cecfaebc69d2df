"""What a guard is, and what its removal is: values, and the edit itself.

Callers: `guardlib.table`, which is the closed list; `guardlib.trial`; the tidy test. No product module knows
of any of this: a guard is switched off in a copy of the sources, never in the sources.
"""

from dataclasses import dataclass
from pathlib import Path


class NoSuchPlaceError(ValueError):
    """An edit doesn't match exactly one place of its file."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the one place in `file` (below the root) that reads `find`."""

    file: str
    find: str
    put: str

    def applied(self, text: str) -> str:
        """The file's text without the guard. Raises NoSuchPlaceError."""
        found = text.count(self.find)
        if found != 1:
            raise NoSuchPlaceError(f"{self.file} has {found} places like {self.find!r}, not one")
        return text.replace(self.find, self.put)

    def apply(self, root: Path) -> None:
        """Change the file of a copy."""
        file = root / self.file
        file.write_text(self.applied(file.read_text(encoding="utf-8")), encoding="utf-8")


def tests_of(file: str, *names: str) -> tuple[str, ...]:
    """Tests of one file, as pytest names them."""
    return tuple(f"{file}::{name}" for name in names)


@dataclass(frozen=True, slots=True)
class Removal:
    """One place where a guard stands, the edit that takes it away, and the tests that must fail then.

    `without`: what the program does then, in words. `tests`: pytest's names, without cases; every
    one must pass before and fail by an assertion of its own afterwards.
    """

    without: str
    edit: Edit
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Guard:
    """A guard by the name of the list, where it is specified, and the places where it stands."""

    name: str
    section: str
    removals: tuple[Removal, ...]
