"""What a GitHub-compatible forge says by a limit, and how long to wait (reliability.md §3). Pure.

Callers: the operator's and the runner's HTTP clients of the forge. Headers are any mapping that
finds a name whatever its case, as both clients' are. The source of every rule:
https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
"""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final

UNNAMED_SECONDS: Final = 60
"""Wait after a limit that names no time: the documentation asks for a minute at least."""
SECONDS_MAX: Final = 3600
_DIGITS_MAX: Final = 12


def is_limit(status: int, headers: Mapping[str, str], body: object) -> bool:
    """403 and 429 that are waits, not verdicts; `body` is the decoded JSON.

    A limit shows by `retry-after`, by `x-ratelimit-remaining: 0`, or only by what its documentation
    link names.
    """
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return True
    if status != HTTPStatus.FORBIDDEN:
        return False
    link = body.get("documentation_url") if isinstance(body, dict) else None
    return (
        "Retry-After" in headers
        or headers.get("X-RateLimit-Remaining") == "0"
        or (isinstance(link, str) and "rate-limit" in link)
    )


def named_seconds(headers: Mapping[str, str]) -> int | None:
    """Whole seconds of `retry-after`, an hour at most; None if it names none."""
    named = _whole(headers.get("Retry-After"))
    return None if named is None else min(named, SECONDS_MAX)


def limit_seconds(headers: Mapping[str, str]) -> int:
    """Seconds to wait: `retry-after`, else until `x-ratelimit-reset`, else a minute; an hour at most.

    The reset is compared with the answer's own date: two clocks needn't agree.
    """
    named = named_seconds(headers)
    if named is not None:
        return named
    reset = _whole(headers.get("X-RateLimit-Reset"))
    if headers.get("X-RateLimit-Remaining") != "0" or reset is None:
        return UNNAMED_SECONDS
    try:
        now = parsedate_to_datetime(headers.get("Date", "")).timestamp()
    except (ValueError, TypeError, IndexError):
        return UNNAMED_SECONDS
    return min(max(reset - int(now), 0) + 1, SECONDS_MAX)


def _whole(text: str | None) -> int | None:
    """Read digits, None for anything else. Those beyond twelve are cut: it stays past any bound."""
    return int(text[:_DIGITS_MAX]) if text and text.isascii() and text.isdigit() else None
