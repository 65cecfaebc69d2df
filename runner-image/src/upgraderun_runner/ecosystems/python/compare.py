"""What a validation introduced, and what repetitions say of unstable tests (upgrade-run.md §7.2).

Callers: validate. Pure. The rule for keys that fail: in a baseline one pass in two repetitions makes a key
flaky; after an upgrade a key that the base shows too is flaky, one that the candidate shows each time is
introduced, and one that it shows sometimes makes the validation inconclusive.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from upgraderun_runner.ecosystems.base import (
    CheckResult,
    CheckState,
    Finding,
    LostTest,
    ValidationRecord,
)

REPETITIONS: Final = 2
REPEATED_KEYS_MAX: Final = 20
"""Above this no repetition is made and every key counts."""


def counts_of(checks: Iterable[CheckResult]) -> Mapping[str, int]:
    """Count each key over all checks."""
    counts: dict[str, int] = {}
    for check in checks:
        for item in check.findings:
            counts[item.key] = counts.get(item.key, 0) + item.count
    return counts


def introduced_by(
    checks: tuple[CheckResult, ...], baseline: ValidationRecord
) -> tuple[Finding, ...]:
    """List findings that the baseline lacks or has less often; its flaky keys count for nothing."""
    before = counts_of(baseline.checks)
    found = []
    for check in checks:
        for item in check.findings:
            surplus = item.count - before.get(item.key, 0)
            if surplus > 0 and item.key not in baseline.flaky:
                found.append(Finding(item.key, surplus, item.detail, item.subject))
    return tuple(sorted(found, key=lambda item: item.key))


def worth_repeating(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Pick the test keys to run again: none if there are too many to be chance."""
    tests = tuple(item for item in findings if item.key.startswith("test:"))
    return tests if len(tests) <= REPEATED_KEYS_MAX else ()


def flaky_in_baseline(
    failing: tuple[Finding, ...], repetitions: tuple[CheckResult, ...]
) -> tuple[str, ...]:
    """Name the keys that passed at least once; a repetition without verdict proves nothing."""
    return tuple(
        item.key
        for item in failing
        if any(run.conclusive and not _shows(run, item.key) for run in repetitions)
    )


def sort_introduced(
    suspects: tuple[Finding, ...],
    on_base: tuple[CheckResult, ...],
    on_candidate: tuple[CheckResult, ...],
) -> tuple[tuple[Finding, ...], tuple[str, ...], tuple[str, ...]]:
    """Split suspects into introduced findings, flaky keys and unstable keys.

    Without a verdict on the base nothing can be called introduced: the key is unstable.
    """
    introduced, flaky, unstable = [], [], []
    for item in suspects:
        if any(_shows(run, item.key) for run in on_base):
            flaky.append(item.key)
        elif all(run.conclusive for run in on_base) and all(
            _shows(run, item.key) for run in on_candidate
        ):
            introduced.append(item)
        else:
            unstable.append(item.key)
    return tuple(introduced), tuple(flaky), tuple(unstable)


def _shows(run: CheckResult, key: str) -> bool:
    return any(item.key == key for item in run.findings)


def is_clean(checks: Iterable[CheckResult], flaky: Iterable[str]) -> bool:
    """Whether every check is conclusive and no gate check has a finding that counts (§7.2)."""
    ignored = set(flaky)
    return all(
        check.conclusive
        and (check.kind != "gate" or all(item.key in ignored for item in check.findings))
        for check in checks
    )


def lost_tests(
    baseline: tuple[CheckResult, ...], checks: tuple[CheckResult, ...]
) -> tuple[LostTest, ...]:
    """List tests that passed before and are skipped, expected to fail or gone now."""
    now = {t.id: t.outcome for c in checks for t in c.tests}
    if not any(c.tests or c.state is CheckState.ABSENT for c in checks if c.name == "test"):
        return ()
    found = []
    for check in baseline:
        for test in check.tests:
            outcome = now.get(test.id, "gone")
            if test.outcome == "passed" and outcome in ("skipped", "xfailed", "gone"):
                found.append(LostTest(test.id, outcome))
    return tuple(found)
