"""Time as the engine needs it. `adapters.clock` satisfies it; tests move it by hand."""

from typing import Protocol


class Clock(Protocol):
    """Monotonic time and a way to wait, in seconds."""

    def monotonic(self) -> float:
        """Seconds on a clock that never jumps."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds; cancellable."""
        ...
