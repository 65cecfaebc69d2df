"""The UpgradeReport: from the runner's record, checked, redacted, bounded (DESIGN §3). Pure.

A record is taken like a request body (security.md H14): parsed strictly, every text redacted first
and cut second, the whole at most 256 KiB. Callers: `observe` cleans, `decide` builds the content.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from upgraderun_operator.build.owner import owner_reference
from upgraderun_operator.model.names import API_VERSION, REPORT_KIND, RUN_LABEL, RUN_UID_LABEL
from upgraderun_operator.model.report import CheckState, ReportContent
from upgraderun_protocol.bundle import RunRef
from upgraderun_protocol.canonical import canonical_json
from upgraderun_protocol.limits import (
    KIB,
    MESSAGE_MAX,
    REPORT_BYTES_MAX,
    REPORT_NOTE_MAX,
    REPORT_PATCH_BYTES_MAX,
    REPORT_TAIL_BYTES_MAX,
)
from upgraderun_protocol.outcomes import AWAITING_APPROVAL, OUTCOMES
from upgraderun_protocol.records import RecordError, from_bytes, to_bytes
from upgraderun_protocol.redact import Redactor
from upgraderun_protocol.report import ReportCheck, ReportRecord, ReportTarget

REPORT_VERSION: Final = 1
COUNTS_MAX: Final = 64
COUNT_KEY_MAX: Final = 64
_CUT: Final = "\n[cut]\n"
_CONTENT_BYTES_MAX: Final = REPORT_BYTES_MAX - 16 * KIB
"""Leaves room for metadata, capability and the spelling of the object."""

_STATES: Final = frozenset(state.value.lower() for state in CheckState)


def clean_record(data: bytes, redactor: Redactor) -> ReportRecord:
    """Read, redact and bound a stored record. Raises RecordError if it is none of ours."""
    record = from_bytes(ReportRecord, data)
    if record.version != REPORT_VERSION:
        raise RecordError(f"$.version: {record.version} is unknown, expected {REPORT_VERSION}")
    if record.outcome not in {*OUTCOMES, AWAITING_APPROVAL}:
        raise RecordError(f"$.outcome: {record.outcome[:64]!r} is no outcome")
    _refuse_counts(record)
    unknown = {check.state for check in record.checks} - _STATES
    if unknown:
        raise RecordError(f"$.checks: state {min(unknown)[:16]!r} is none of a check")
    return _bounded(_redacted(record, redactor))


def _refuse_counts(record: ReportRecord) -> None:
    counts = record.counts or {}
    odd = any(
        len(key) > COUNT_KEY_MAX or not key.isascii() or number < 0
        for key, number in counts.items()
    )
    if len(counts) > COUNTS_MAX or odd:
        raise RecordError(f"$.counts: at most {COUNTS_MAX} numbers with short names")


def empty_record(outcome: str, message: str) -> ReportRecord:
    """Make the record of a run whose runner left none."""
    return ReportRecord(version=REPORT_VERSION, outcome=outcome, message=message[:MESSAGE_MAX])


def with_outcome(record: ReportRecord, outcome: str, message: str) -> ReportRecord:
    """Put the run's end in the place of what the runner said of its own."""
    return replace(record, outcome=outcome, message=message[:MESSAGE_MAX])


def report_manifest(run: RunRef, content: ReportContent) -> Mapping[str, Any]:
    """Write the object: same name as its run, owned by it."""
    return {
        "apiVersion": API_VERSION,
        "kind": REPORT_KIND,
        "metadata": {
            "name": run.name,
            "namespace": run.namespace,
            "labels": {RUN_LABEL: run.name[:63].rstrip("-."), RUN_UID_LABEL: run.uid},
            "ownerReferences": [owner_reference(run)],
        },
        **content.to_json(),
    }


def _redacted(record: ReportRecord, redactor: Redactor) -> ReportRecord:
    def text(value: str, longest: int) -> str:
        return str(redactor.redact(value, longest))

    target = record.target
    return replace(
        record,
        message=text(record.message, MESSAGE_MAX),
        target=target
        and ReportTarget(
            text(target.name, 214), text(target.from_version, 128), text(target.to_version, 128)
        ),
        patch=text(record.patch, REPORT_PATCH_BYTES_MAX),
        checks=tuple(
            ReportCheck(
                name=text(check.name, 64),
                state=check.state,
                findings=tuple(text(finding, 512) for finding in check.findings),
                tail=text(check.tail, REPORT_TAIL_BYTES_MAX),
            )
            for check in record.checks
        ),
        notes=tuple(text(note, REPORT_NOTE_MAX) for note in record.notes),
    )


def _bounded(record: ReportRecord) -> ReportRecord:
    """Cut until the whole fits: tails first, then findings, then notes; the patch is bounded already."""
    record = replace(record, patch=_cut_bytes(record.patch, REPORT_PATCH_BYTES_MAX))
    for shrink in (_short_tails, _few_findings, _few_notes):
        if _size(record) <= _CONTENT_BYTES_MAX:
            return record
        record = shrink(record)
    assert _size(record) <= _CONTENT_BYTES_MAX, "the parts of a report are bounded one by one"
    return record


def _size(record: ReportRecord) -> int:
    return len(to_bytes(record))


def _short_tails(record: ReportRecord) -> ReportRecord:
    return _each_check(record, lambda check: replace(check, tail=_cut_bytes(check.tail, KIB)))


def _few_findings(record: ReportRecord) -> ReportRecord:
    return _each_check(
        record,
        lambda check: replace(
            check, findings=tuple(_cut_bytes(key, 256) for key in check.findings[:10])
        ),
    )


def _few_notes(record: ReportRecord) -> ReportRecord:
    return replace(record, notes=record.notes[:16])


def _each_check(record: ReportRecord, change: Callable[[ReportCheck], ReportCheck]) -> ReportRecord:
    return replace(record, checks=tuple(change(check) for check in record.checks))


def _cut_bytes(text: str, longest: int) -> str:
    """Cut to so many bytes of canonical JSON, with a mark; whole characters only."""
    if _json_bytes(text) <= longest:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if _json_bytes(text[:middle] + _CUT) <= longest:
            low = middle
        else:
            high = middle - 1
    return text[:low] + _CUT


def _json_bytes(text: str) -> int:
    return len(canonical_json(text)) - 2
