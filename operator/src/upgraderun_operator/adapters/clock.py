"""Clock, sleep and random ids: the operator's only source of time and chance (style.md §1, 12).

Callers: `main` makes one and hands it to everything that needs it; tests hand in their own.
"""

import asyncio
import secrets
import time
from datetime import UTC, datetime


class SystemClock:
    """The machine's clocks and its source of randomness."""

    def now(self) -> datetime:
        """Wall clock, UTC: for what people read, never the base of an expiry."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds of a clock that never jumps; only differences mean something."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Let others run for a while."""
        await asyncio.sleep(seconds)

    def new_id(self) -> str:
        """32 hex digits that nobody can guess: names of writes, nonces."""
        return secrets.token_hex(16)

    def jitter(self) -> float:
        """A number in [0, 1) for spreading retries."""
        return secrets.randbelow(1 << 30) / (1 << 30)
