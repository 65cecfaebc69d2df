"""What a forge says by a limit (reliability.md §3), as both of its clients read it."""

import httpx
import pytest
from multidict import CIMultiDict

from upgraderun_protocol.forge_limits import is_limit, limit_seconds, named_seconds

DATE = "Mon, 30 Nov 2026 08:00:00 GMT"
EIGHT = 1796025600
LINK = {"documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"}


@pytest.mark.parametrize(
    ("status", "headers", "body", "expected"),
    [
        (429, {}, None, True),
        (403, {"retry-after": "5"}, None, True),
        (403, {"x-ratelimit-remaining": "0"}, {}, True),
        (403, {}, LINK, True),
        (403, {"x-ratelimit-remaining": "7"}, {"documentation_url": 4}, False),
        (403, {}, [], False),
        (503, {"retry-after": "5"}, LINK, False),
    ],
)
def test_a_wait_is_told_from_a_verdict(
    status: int, headers: dict[str, str], body: object, expected: bool
) -> None:
    assert expected == is_limit(status, httpx.Headers(headers), body)
    assert expected == is_limit(status, CIMultiDict(headers), body)


@pytest.mark.parametrize(
    ("headers", "named", "seconds"),
    [
        ({}, None, 60),
        ({"retry-after": "5"}, 5, 5),
        ({"retry-after": "9" * 5000}, 3600, 3600),
        ({"retry-after": "soon"}, None, 60),
        ({"retry-after": "-5"}, None, 60),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{EIGHT + 30}"}, None, 31),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{EIGHT - 30}"}, None, 1),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "9" * 5000}, None, 3600),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "noon"}, None, 60),
        ({"x-ratelimit-remaining": "1", "x-ratelimit-reset": f"{EIGHT + 30}"}, None, 60),
    ],
)
def test_how_long_a_limit_lasts(headers: dict[str, str], named: int | None, seconds: int) -> None:
    for read in (httpx.Headers({**headers, "date": DATE}), CIMultiDict({**headers, "date": DATE})):
        assert named == named_seconds(read)
        assert seconds == limit_seconds(read)


def test_a_reset_without_a_date_to_compare_it_with_is_a_minute() -> None:
    primary = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{EIGHT + 30}"}

    assert 60 == limit_seconds(httpx.Headers(primary))
    assert 60 == limit_seconds(httpx.Headers({**primary, "date": "noon"}))


def test_digits_of_other_scripts_are_no_digits() -> None:
    assert named_seconds(CIMultiDict({"retry-after": "²"})) is None
