"""What an effect is here, and the only way to it: between its fault points (reliability.md §5).

Callers: a module with an effect makes one value of it around a private function and calls that value;
`effects` binds each to its row and to what looks for it. The function is named nowhere else, so that
nothing reaches it in another way.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, ParamSpec, TypeVar

from upgraderun_protocol.effects import FaultPoint, Position

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Effect(Generic[P, T]):
    """An effect on files or git of this machine. `name` is its row in the table of effects."""

    name: str
    act: Callable[P, T]

    def __call__(self, fault: FaultPoint, *args: P.args, **kwargs: P.kwargs) -> T:
        """Perform it."""
        fault(self.name, Position.BEFORE)
        result = self.act(*args, **kwargs)
        fault(self.name, Position.APPLIED)
        return result

    def recorded(self, fault: FaultPoint) -> None:
        """Say that its record stands."""
        fault(self.name, Position.RECORDED)


@dataclass(frozen=True, slots=True)
class AsyncEffect(Generic[P, T]):
    """An effect that is awaited. `lost`: what the caller hears where the answer doesn't come."""

    name: str
    act: Callable[P, Awaitable[T]]
    lost: Callable[[], T] | None = None

    async def __call__(self, fault: FaultPoint, *args: P.args, **kwargs: P.kwargs) -> T:
        """Perform it."""
        fault(self.name, Position.BEFORE)
        result = await self.act(*args, **kwargs)
        if self.lost is not None and fault(self.name, Position.REPLY_LOST):
            return self.lost()
        fault(self.name, Position.APPLIED)
        return result

    def recorded(self, fault: FaultPoint) -> None:
        """Say that its record stands."""
        fault(self.name, Position.RECORDED)
