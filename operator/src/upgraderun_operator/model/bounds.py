"""Numbers that users may move: default, floor and hard cap of each (upgrade-run.md, introduction).

Callers: the spec models (bounds in the CRDs) and `policy.resolve`. The fixed numbers of the product
stand in the `limits` modules of each distribution.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Bound:
    """A number with the range in which a policy may move it."""

    default: int
    floor: int
    cap: int

    def __post_init__(self) -> None:
        """A default outside its own range would be a typing error here."""
        if not self.floor <= self.default <= self.cap:
            raise ValueError(f"default {self.default} is outside {self.floor}..{self.cap}")


_HOUR: Final = 3600
_DAY: Final = 24 * _HOUR

RUN_LIMITS: Final[Mapping[str, Bound]] = MappingProxyType(
    {
        "steps": Bound(50, 1, 500),
        "consecutive_failures": Bound(3, 1, 20),
        "repeated_calls": Bound(3, 1, 20),
        "validation_cycles": Bound(8, 1, 50),
        "unchanged_validations": Bound(3, 1, 20),
        "lost_attempts": Bound(10, 1, 50),
        "consecutive_lost_attempts": Bound(3, 1, 10),
    }
)
"""upgrade-run.md §9.5, column Rules and Scripted; each within its cap."""

ACTIVE_DEADLINE_SECONDS: Final = Bound(21_600, 60, 7 * _DAY)
RELEASE_AGE_SECONDS: Final = Bound(72 * _HOUR, 0, 365 * _DAY)
CHECK_TIMEOUT_SECONDS: Final = Bound(600, 10, 2 * _HOUR)
SOFT_FILES: Final = Bound(10, 0, 200)
SOFT_LINES: Final = Bound(200, 0, 5000)
HARD_FILES: Final = Bound(20, 0, 200)
HARD_LINES: Final = Bound(400, 0, 5000)
REQUEST_TTL_SECONDS: Final = Bound(168 * _HOUR, 60, 30 * _DAY)
GRANT_TTL_SECONDS: Final = Bound(24 * _HOUR, 60, 30 * _DAY)
LOSS_GRACE_SECONDS: Final = Bound(90, 10, _HOUR)
