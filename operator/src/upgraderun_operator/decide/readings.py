"""What one look at the world can say: a value, absent, unreadable, or not looked at.

Callers: `observe` makes them, `decide` reads them. *Unreadable* is never a verdict (DESIGN §2,
principle 5); *not read* means that nothing in the run's state needed it in this pass.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")


class Marker(Enum):
    """Answers without content."""

    ABSENT = "absent"
    NOT_READ = "not read"


ABSENT: Final = Marker.ABSENT
"""A live read says that it isn't there."""

NOT_READ: Final = Marker.NOT_READ
"""Nobody looked in this pass."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Nothing is known: no answer, or none that tells. `where` names the part of the world.

    `limited`: it answered, and wants to be left alone for `retry_after` seconds.
    """

    where: str
    cause: str
    retry_after: float | None = None
    limited: bool = False


Reading: TypeAlias = T | Marker | Unreadable


def known(reading: Reading[T]) -> T | None:
    """Give the value of a reading, None for everything else."""
    return None if isinstance(reading, Marker | Unreadable) else reading
