"""Waits between tries, and the table of endpoints (runner-protocol.md §1.7, §2.2)."""

from datetime import UTC, datetime

import pytest

from upgraderun_protocol.endpoints import (
    CONSERVATIVE,
    ENDPOINTS,
    EndpointPolicy,
    endpoint_key,
    policy_for,
)
from upgraderun_protocol.retry import delay_ms, next_wait_ms, retry_after_ms

NOW = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
ALMOST_ONE = 1 - 2**-53


class TestDelay:
    """window(n) = min(10 s, 0.5 s · 2ⁿ); half for sure, half by jitter (RP4)."""

    @pytest.mark.parametrize(
        ("tries", "low"),
        [(0, 250), (1, 500), (2, 1000), (3, 2000), (4, 4000), (5, 5000), (8, 5000)],
    )
    def test_lies_in_the_upper_half_of_its_window(self, tries: int, low: int) -> None:
        assert delay_ms(tries, 0) == low
        assert low * 2 - 2 <= delay_ms(tries, ALMOST_ONE) <= low * 2

    def test_huge_counts_stay_at_the_cap(self) -> None:
        assert delay_ms(10_000, 0) == 5000

    @pytest.mark.parametrize(("tries", "jitter"), [(-1, 0.0), (0, 1.0), (0, -0.1)])
    def test_odd_arguments_are_bugs(self, tries: int, jitter: float) -> None:
        with pytest.raises(AssertionError):
            delay_ms(tries, jitter)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("0", 0),
        ("1", 1000),
        (" 7 ", 7000),
        ("600", 60_000),
        ("9" * 40, 60_000),
        ("-1", 1000),
        ("odd", 1000),
        ("", 1000),
        ("²", 1000),
        ("Mon, 30 Nov 2026 08:00:05 GMT", 5000),
        ("Mon, 30 Nov 2026 07:00:00 GMT", 0),
        ("Mon, 30 Nov 2026 09:00:00 GMT", 60_000),
        ("Mon, 30 Nov 2026 08:00:05 -0000", 5000),
    ],
)
def test_retry_after(header: str | None, expected: int | None) -> None:
    assert retry_after_ms(header, NOW) == expected


class TestNextWait:
    """One retry is guaranteed; the last try comes as the budget ends."""

    def wait(self, tries: int, remaining: int, retry_after: int | None = None) -> int | None:
        return next_wait_ms(
            transient_retries=tries, jitter=0, retry_after=retry_after, remaining_ms=remaining
        )

    def test_the_first_retry_comes_even_past_the_deadline(self) -> None:
        assert self.wait(0, -5) == 250

    def test_the_second_does_not(self) -> None:
        assert self.wait(1, 0) is None

    def test_a_wait_is_clipped_to_what_remains(self) -> None:
        assert self.wait(3, 700) == 700

    def test_retry_after_lengthens_and_never_shortens(self) -> None:
        assert self.wait(0, 60_000, 3000) == 3000
        assert self.wait(3, 60_000, 1) == 2000
        assert self.wait(0, 0, 60_000) == 10_000


class TestEndpoints:
    """Anything unknown, renamed or odd is conservative."""

    @pytest.mark.parametrize(
        ("method", "path", "key"),
        [
            ("post", "hello", ("POST", "hello")),
            ("PUT", "artifacts/3f1c", ("PUT", "artifacts")),
            ("GET", "/journal/?after=3#x", ("GET", "journal")),
            ("GET", "__class__", ("GET", "__class__")),
            ("GET", "", ("GET", "")),
        ],
    )
    def test_a_call_names_its_row(self, method: str, path: str, key: tuple[str, str]) -> None:
        assert endpoint_key(method, path) == key
        assert policy_for(method, path) == ENDPOINTS.get(key, CONSERVATIVE)

    def test_rows_are_frozen_and_explained(self) -> None:
        for policy in (*ENDPOINTS.values(), CONSERVATIVE):
            assert policy.why
            assert policy.budget_seconds > 0
        with pytest.raises(AttributeError):
            CONSERVATIVE.replay_safe = True  # type: ignore[misc]  # that is the test
        with pytest.raises(TypeError):
            ENDPOINTS[("GET", "x")] = EndpointPolicy(True, 1, "x")  # type: ignore[index]  # as above

    def test_the_conservative_row_is_never_sent_twice(self) -> None:
        assert not CONSERVATIVE.replay_safe
