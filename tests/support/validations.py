"""Validation records with valid defaults: a test names only what matters to it."""

from upgraderun_runner.ecosystems.base import (
    CheckResult,
    CheckState,
    Finding,
    Parse,
    TestOutcome,
    ValidationRecord,
)


def finding(key: str, count: int = 1) -> Finding:
    """A finding; its subject is the key's test id."""
    return Finding(key, count, "", key.removeprefix("test:").replace(":", "::", 1))


def check(
    name: str, *findings: Finding, kind: str = "gate", state: CheckState | None = None
) -> CheckResult:
    """A check that failed if it has findings."""
    ended = state or (CheckState.FAIL if findings else CheckState.PASS)
    return CheckResult(
        name=name,
        kind=kind,
        state=ended,
        parse=Parse.COMPLETE if ended is not CheckState.ERROR else Parse.FAILED,
        conclusive=ended in (CheckState.PASS, CheckState.FAIL, CheckState.ABSENT),
        exit_code=1 if findings else 0,
        duration_ms=1,
        findings=findings,
        reason="",
        stdout_tail="",
        stderr_tail="",
    )


def outcomes(**values: str) -> CheckResult:
    """A test check with outcomes by id."""
    done = check("test")
    rows = tuple(TestOutcome(node_id, outcome) for node_id, outcome in values.items())
    return CheckResult(
        name=done.name,
        kind=done.kind,
        state=done.state,
        parse=done.parse,
        conclusive=done.conclusive,
        exit_code=0,
        duration_ms=1,
        findings=(),
        reason="",
        stdout_tail="",
        stderr_tail="",
        tests=rows,
    )


def baseline(*checks: CheckResult, flaky: tuple[str, ...] = ()) -> ValidationRecord:
    """An accepted baseline."""
    return ValidationRecord(
        tree="t",
        config_hash="c",
        images=(),
        isolation="none",
        toolchain=(),
        checks=checks,
        conclusive=True,
        clean=True,
        introduced=(),
        flaky=flaky,
        unstable=(),
        tests_exist=True,
        duration_ms=1,
    )
