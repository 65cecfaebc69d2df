"""How long to wait before the next try: pure arithmetic (runner-protocol.md §2.2)."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

WINDOW_FIRST_MS: Final = 500
WINDOW_MAX_MS: Final = 10_000
RETRY_AFTER_MAX_MS: Final = 60_000
RETRY_AFTER_DEFAULT_MS: Final = 1_000
LIMITED_RETRIES: Final = 8


def delay_ms(transient_retries: int, jitter: float) -> int:
    """Wait before retry n + 1: half the window for sure, the other half by jitter in [0, 1).

    window(n) = min(10 s, 0.5 s · 2ⁿ). Example: n = 3, jitter 0.5 → window 4,000, wait 3,000 ms.
    """
    assert transient_retries >= 0
    assert 0 <= jitter < 1
    window = min(WINDOW_MAX_MS, WINDOW_FIRST_MS << min(transient_retries, 16))
    return window // 2 + int(jitter * (window / 2))


def retry_after_ms(header: str | None, now: datetime) -> int | None:
    """Read `Retry-After`: digits are seconds, an IMF date counts from now, else 1 s; at most 60 s.

    None where the header is absent: the caller knows whether that means 1 s (429) or nothing.
    """
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:9]) * 1000, RETRY_AFTER_MAX_MS)
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError):
        return RETRY_AFTER_DEFAULT_MS
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    wait = int((at - now).total_seconds() * 1000)
    return min(max(0, wait), RETRY_AFTER_MAX_MS)


def next_wait_ms(
    *, transient_retries: int, jitter: float, retry_after: int | None, remaining_ms: int
) -> int | None:
    """Decide the wait before another transient try, or None to give up.

    One retry is guaranteed even past the deadline; a wait is clipped to what remains so that the
    last try comes as the budget ends. `Retry-After` lengthens, never shortens.
    """
    if remaining_ms <= 0 and transient_retries > 0:
        return None
    wait = max(delay_ms(transient_retries, jitter), retry_after or 0)
    return min(wait, remaining_ms if remaining_ms > 0 else WINDOW_MAX_MS)
