"""From a check's streams to its state, its findings and whether it may be believed (§7.2).

Callers: validate, exercise. Pure. Everything read here was written by untrusted code: it may lie, and
all that a lie reaches is its own verdict. A line that isn't ours makes the parse fail.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from upgraderun_runner.ecosystems.base import (
    CheckResult,
    CheckSpec,
    CheckState,
    Finding,
    Parse,
    TestOutcome,
)
from upgraderun_runner.sandbox.commands import CommandResult

TAIL_BYTES: Final = 4096
KEY_MAX: Final = 512
DETAIL_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a parser understood.

    `absent` says why there was nothing to check. `exit_agrees`: a non-zero exit status is right even
    without findings, such as that of a repetition that selects nothing.
    """

    findings: tuple[Finding, ...]
    parse: Parse
    problem: str = ""
    tests: tuple[TestOutcome, ...] = ()
    absent: str = ""
    exit_agrees: bool = False


def fold(text: str) -> str:
    """Fold white space and bound a part of a key."""
    return " ".join(text.split())[:KEY_MAX]


def finding(key: str, detail: str = "", subject: str = "") -> Finding:
    """Make a finding that was seen once."""
    return Finding(key[:KEY_MAX], 1, fold(detail)[:DETAIL_MAX], subject)


def counted(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Join equal keys and sort."""
    first: dict[str, Finding] = {}
    counts: Counter[str] = Counter()
    for item in findings:
        first.setdefault(item.key, item)
        counts[item.key] += item.count
    return tuple(
        Finding(key, counts[key], first[key].detail, first[key].subject) for key in sorted(first)
    )


def conclude(spec: CheckSpec, result: CommandResult, parsed: Parsed) -> CheckResult:
    """Apply the rule of §7.2: a verdict needs a whole run, a whole parse and an agreeing exit."""
    state, reason = _state(result, parsed)
    return CheckResult(
        name=spec.name,
        kind=spec.kind,
        state=state,
        parse=parsed.parse,
        conclusive=state in (CheckState.PASS, CheckState.FAIL, CheckState.ABSENT),
        exit_code=result.exit_code,
        duration_ms=result.duration_ms,
        findings=counted(parsed.findings),
        reason=reason,
        stdout_tail=tail(result.stdout),
        stderr_tail=tail(result.stderr),
        tests=parsed.tests,
    )


def typed_row(line: bytes, forms: Mapping[str, Mapping[str, type]]) -> dict[str, Any] | None:
    """Read one JSON line of a known kind with exactly its fields; None for anything else."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    fields = forms.get(str(row.get("kind"))) if isinstance(row, dict) else None
    if fields is None or row.keys() != fields.keys() | {"kind"}:
        return None
    if not all(type(row[name]) is kind for name, kind in fields.items()):
        return None
    return dict(row)


def tail(data: bytes) -> str:
    """The last 4 KiB as text that JSON can hold."""
    return data[-TAIL_BYTES:].decode("utf-8", "replace").replace("\x00", "\ufffd")


def _state(result: CommandResult, parsed: Parsed) -> tuple[CheckState, str]:
    if result.timed_out:
        return CheckState.TIMEOUT, "it took longer than the limit"
    if result.killed:
        return CheckState.ERROR, "it was killed from outside, perhaps for memory"
    if result.stdout_truncated or result.stderr_truncated:
        return CheckState.ERROR, "it wrote more than the limit"
    if parsed.parse is not Parse.COMPLETE:
        return CheckState.ERROR, parsed.problem or "its output isn't whole"
    if parsed.absent:
        return CheckState.ABSENT, parsed.absent
    if parsed.findings and result.exit_code != 0:
        return CheckState.FAIL, ""
    if not parsed.findings and (result.exit_code == 0 or parsed.exit_agrees):
        return CheckState.PASS, ""
    return CheckState.ERROR, f"exit status {result.exit_code} with {len(parsed.findings)} findings"


def absent(spec: CheckSpec, reason: str) -> CheckResult:
    """A check that wasn't run, with the reason."""
    return CheckResult(
        name=spec.name,
        kind=spec.kind,
        state=CheckState.ABSENT,
        parse=Parse.COMPLETE,
        conclusive=True,
        exit_code=0,
        duration_ms=0,
        findings=(),
        reason=reason,
        stdout_tail="",
        stderr_tail="",
    )
