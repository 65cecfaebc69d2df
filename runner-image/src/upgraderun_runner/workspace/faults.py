"""Seams for kill tests (reliability.md §5): every performer of an effect takes a `FaultPoint`.

Callers: performers in `workspace` and `forge`. The module that kills is not part of the product;
`main` passes `no_fault` unless a test image hands in another one.
"""

from typing import Literal, Protocol

Position = Literal["before", "applied", "recorded"]


class FaultPoint(Protocol):
    """Called as `fault("promotion_first", "applied")`; the names stand in upgrade-run.md §14."""

    def __call__(self, effect: str, position: Position) -> None:
        """Return, or never return."""


def no_fault(effect: str, position: Position) -> None:
    """Do nothing: the default of every performer."""
