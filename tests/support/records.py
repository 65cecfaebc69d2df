"""Valid evidence records for unit tests; a test names only what matters to it."""

from support.runviews import SCOPE, TREE
from upgraderun_protocol.ids import Sha256
from upgraderun_runner.agent.readiness import Candidate
from upgraderun_runner.ecosystems.base import (
    CheckResult,
    CheckState,
    CoverageRecord,
    Finding,
    LineJudgement,
    Parse,
    ValidationRecord,
)


def check(name: str, conclusive: bool = True, *findings: str, tail: str = "") -> CheckResult:
    """One check; with findings it fails."""
    return CheckResult(
        name=name,
        kind="gate",
        state=CheckState.FAIL if findings else CheckState.PASS,
        parse=Parse.COMPLETE,
        conclusive=conclusive,
        exit_code=1 if findings else 0,
        duration_ms=1,
        findings=tuple(Finding(key, 1, "") for key in findings),
        reason="" if conclusive else "took too long",
        stdout_tail=tail,
        stderr_tail="",
    )


VALIDATION = ValidationRecord(
    tree=TREE,
    config_hash="e" * 64,
    images=("python@sha256:1",),
    isolation="network-namespace",
    toolchain=("uv 0.13.9",),
    checks=(check("build"), check("test")),
    conclusive=True,
    clean=True,
    introduced=(),
    flaky=(),
    unstable=(),
    lost_tests=(),
    tests_exist=True,
    duration_ms=10,
)
COVERAGE = CoverageRecord(
    tree=TREE,
    config_hash="e" * 64,
    judgements=(LineJudgement("app.py", 1, 2, True, ""),),
    problem="",
    duration_ms=1,
)
READY = Candidate(
    tree=TREE,
    journaled_tree=TREE,
    config_hash=Sha256(VALIDATION.config_hash),
    images=VALIDATION.images,
    validation=VALIDATION,
    coverage=None,
    violations=(),
    protected=(),
    sources=(),
    lines=0,
    scope=SCOPE,
)
"""A tree that nothing keeps from being proposed."""
