"""Token bucket: how many requests per second leave this process (DESIGN §6a).

Callers: `kubernetes` only. Status and object writes share one bucket, Lease renewals have theirs.
"""

from upgraderun_operator.adapters.ports import Clock


class RateLimiter:
    """`rate` requests per second with a `burst`; `rate` None lets everything through."""

    def __init__(self, clock: Clock, rate: float | None, burst: int) -> None:
        assert rate is None or (rate > 0 and burst >= 1)
        self._clock = clock
        self._rate = rate
        self._burst = float(burst)
        self._tokens = float(burst)
        self._filled_at = clock.monotonic()

    async def acquire(self) -> None:
        """Wait for a token. Waiters are served in order: each takes its token before it sleeps."""
        if self._rate is None:
            return
        now = self._clock.monotonic()
        gained = (now - self._filled_at) * self._rate
        self._tokens = min(self._burst, self._tokens + gained)
        self._filled_at = now
        self._tokens -= 1
        if self._tokens < 0:
            await self._clock.sleep(-self._tokens / self._rate)
