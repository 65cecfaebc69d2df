"""Rate of calls per pod: 20 per second, burst 40 (runner-protocol.md §1.4, check 8)."""

from collections import OrderedDict
from typing import Final

from upgraderun_operator.api.errors import ApiError
from upgraderun_operator.api.ports import Clock
from upgraderun_protocol.ids import PodUid
from upgraderun_protocol.limits import API_BURST, API_RATE_PER_SECOND
from upgraderun_protocol.messages import ErrorCode

PODS_MAX: Final = 4096


class RateLimit:
    """A token bucket per pod UID; the least recently seen pods are forgotten."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: OrderedDict[PodUid, tuple[float, float]] = OrderedDict()

    def spend(self, pod: PodUid) -> None:
        """Take one token. Raises ApiError `rate_limited` when the bucket is empty."""
        now = self._clock.monotonic()
        tokens, since = self._buckets.pop(pod, (float(API_BURST), now))
        tokens = min(float(API_BURST), tokens + (now - since) * API_RATE_PER_SECOND)
        if tokens < 1:
            self._buckets[pod] = (tokens, now)
            raise ApiError(ErrorCode.RATE_LIMITED, f"more than {API_RATE_PER_SECOND} calls/s", 1)
        self._buckets[pod] = (tokens - 1, now)
        while len(self._buckets) > PODS_MAX:
            self._buckets.popitem(last=False)
