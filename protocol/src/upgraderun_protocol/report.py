"""The report record: what people read of a run with kubectl (DESIGN §3, UpgradeReport).

The runner builds and stores it as an artifact; the operator checks it like a request body,
redacts it and copies it into the `UpgradeReport`, nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from upgraderun_protocol.limits import (
    REPORT_CHECKS_MAX,
    REPORT_FINDINGS_MAX,
    REPORT_NOTE_MAX,
    REPORT_NOTES_MAX,
    REPORT_PATCH_BYTES_MAX,
    REPORT_TAIL_BYTES_MAX,
)
from upgraderun_protocol.records import bounded


@dataclass(frozen=True, slots=True)
class ReportTarget:
    """Which dependency moves from where to where."""

    name: str = bounded(string_max=214)
    from_version: str = bounded(string_max=128)
    to_version: str = bounded(string_max=128)


@dataclass(frozen=True, slots=True)
class ReportCheck:
    """One check on one tree: `state` pass, fail, error, timeout or absent; findings are keys."""

    name: str = bounded(string_max=64)
    state: str = bounded(string_max=16)
    findings: tuple[str, ...] = bounded(string_max=512, items_max=REPORT_FINDINGS_MAX)
    tail: str = bounded(string_max=REPORT_TAIL_BYTES_MAX)


@dataclass(frozen=True, slots=True)
class ReportRecord:
    """`patch` is cut with a mark at 128 KiB; `notes` are sentences: refusals, violations, closure."""

    version: int
    outcome: str = bounded(string_max=64)
    message: str = bounded(string_max=1024)
    target: ReportTarget | None = None
    patch: str = bounded(string_max=REPORT_PATCH_BYTES_MAX, default="")
    checks: tuple[ReportCheck, ...] = bounded(items_max=REPORT_CHECKS_MAX, default=())
    notes: tuple[str, ...] = bounded(
        string_max=REPORT_NOTE_MAX, items_max=REPORT_NOTES_MAX, default=()
    )
    counts: Mapping[str, int] | None = None
