"""What is introduced, flaky, unstable or lost (upgrade-run.md §7.2)."""

from support.validations import baseline, check, finding, outcomes
from upgraderun_runner.ecosystems.base import CheckState, LostTest
from upgraderun_runner.ecosystems.python.compare import (
    REPEATED_KEYS_MAX,
    flaky_in_baseline,
    introduced_by,
    is_clean,
    lost_tests,
    sort_introduced,
    worth_repeating,
)

A, B = finding("test:t.py:a"), finding("test:t.py:b")
SHOWS_A, SHOWS_NONE = check("test", A), check("test")
NO_VERDICT = check("test", state=CheckState.ERROR)


class TestIntroduced:
    def test_a_key_that_the_baseline_lacks(self) -> None:
        assert (B,) == introduced_by((check("test", A, B),), baseline(check("test", A)))

    def test_a_higher_count_of_a_key(self) -> None:
        old = baseline(check("lint", finding("lint:a.py:F1", 2), kind="compare"))
        new = check("lint", finding("lint:a.py:F1", 5), kind="compare")

        assert (finding("lint:a.py:F1", 3),) == introduced_by((new,), old)

    def test_a_lower_count_is_none(self) -> None:
        old = baseline(check("lint", finding("lint:a.py:F1", 2)))

        assert () == introduced_by((check("lint", finding("lint:a.py:F1", 1)),), old)

    def test_a_flaky_key_of_the_baseline_counts_for_nothing(self) -> None:
        assert () == introduced_by((check("test", A),), baseline(check("test"), flaky=(A.key,)))


class TestFlaky:
    def test_in_a_baseline_one_pass_is_enough(self) -> None:
        assert (A.key,) == flaky_in_baseline((A,), (SHOWS_A, SHOWS_NONE))

    def test_in_a_baseline_failing_always_is_failing(self) -> None:
        assert () == flaky_in_baseline((A,), (SHOWS_A, SHOWS_A))

    def test_a_repetition_without_verdict_proves_nothing(self) -> None:
        assert () == flaky_in_baseline((A,), (SHOWS_A, NO_VERDICT))

    def test_seen_on_the_base_too(self) -> None:
        found = sort_introduced((A,), (SHOWS_NONE, SHOWS_A), (SHOWS_A, SHOWS_A))

        assert ((), (A.key,), ()) == found

    def test_on_the_candidate_each_time(self) -> None:
        found = sort_introduced((A,), (SHOWS_NONE, SHOWS_NONE), (SHOWS_A, SHOWS_A))

        assert ((A,), (), ()) == found

    def test_on_the_candidate_sometimes(self) -> None:
        found = sort_introduced((A,), (SHOWS_NONE, SHOWS_NONE), (SHOWS_NONE, SHOWS_A))

        assert ((), (), (A.key,)) == found

    def test_a_base_without_verdict_decides_nothing(self) -> None:
        """Otherwise an outage of the base's repetition would turn flaky into introduced."""
        found = sort_introduced((A,), (NO_VERDICT, SHOWS_NONE), (SHOWS_A, SHOWS_A))

        assert ((), (), (A.key,)) == found

    def test_more_than_twenty_are_not_repeated(self) -> None:
        many = tuple(finding(f"test:t.py:{n:02}") for n in range(REPEATED_KEYS_MAX + 1))

        assert () == worth_repeating(many)
        assert many[1:] == worth_repeating(many[1:])

    def test_only_tests_are_repeated(self) -> None:
        assert (A,) == worth_repeating((A, finding("lint:a.py:F1"), finding("import:x:E")))


class TestClean:
    def test_findings_in_compare_checks_are_fine(self) -> None:
        lint = check("lint", finding("lint:a.py:F1"), kind="compare")

        assert is_clean((check("build"), lint), ())

    def test_findings_in_gate_checks_are_not_unless_flaky(self) -> None:
        assert not is_clean((SHOWS_A,), ())
        assert is_clean((SHOWS_A,), (A.key,))

    def test_an_inconclusive_check_is_not(self) -> None:
        assert not is_clean((NO_VERDICT,), ())


class TestLost:
    def test_passed_before_and_not_now(self) -> None:
        before = outcomes(a="passed", b="passed", c="passed", d="passed", e="failed", f="skipped")
        after = outcomes(a="passed", b="skipped", c="xfailed", e="skipped")

        assert (LostTest("b", "skipped"), LostTest("c", "xfailed"), LostTest("d", "gone")) == (
            lost_tests((before,), (after,))
        )

    def test_a_run_without_verdict_loses_nothing(self) -> None:
        assert () == lost_tests((outcomes(a="passed"),), (NO_VERDICT,))
