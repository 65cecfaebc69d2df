"""Protocols between adapters, so that each can be built and tested alone."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Time and chance, as `clock.SystemClock` gives them."""

    def now(self) -> datetime:
        """Wall clock, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds of a clock that never jumps."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let others run for a while."""
        ...

    def new_id(self) -> str:
        """32 random hex digits."""
        ...
