"""`UpgradeReport`: what people read of a run with kubectl (DESIGN §3). Written by the operator only.

Its content is an artifact that the runner names, checked and redacted, plus what the pending
request binds. Callers: `objects`, `perform` (writes it), the API conversion below.
"""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from upgraderun_operator.model.approval import ApprovalKind
from upgraderun_operator.model.base import (
    ApiModel,
    CommitText,
    Count,
    Sha256Text,
)
from upgraderun_operator.model.conditions import LiveReason
from upgraderun_operator.model.run_status import Target
from upgraderun_protocol.approvals import presentation_digest
from upgraderun_protocol.limits import (
    MESSAGE_MAX,
    REPORT_CHECKS_MAX,
    REPORT_FINDINGS_MAX,
    REPORT_NOTE_MAX,
    REPORT_NOTES_MAX,
    REPORT_PATCH_BYTES_MAX,
    REPORT_TAIL_BYTES_MAX,
)
from upgraderun_protocol.outcomes import AWAITING_APPROVAL, OUTCOMES
from upgraderun_protocol.questions import RANGE_MAX, RANGES_MAX
from upgraderun_protocol.report import ReportRecord

FINDING_MAX: Final = 512


class CheckState(StrEnum):
    """How a check ended (upgrade-run.md §7.2)."""

    PASS = "Pass"  # noqa: S105 -- a verdict, not a password
    FAIL = "Fail"
    ERROR = "Error"
    TIMEOUT = "Timeout"
    ABSENT = "Absent"


class Check(ApiModel):
    """One check of the last validation."""

    name: Annotated[str, Field(min_length=1, max_length=64)]
    """Name of the check."""

    state: CheckState
    """Pass, Fail, Error, Timeout or Absent."""

    findings: Annotated[
        tuple[Annotated[str, Field(max_length=FINDING_MAX)], ...],
        Field(max_length=REPORT_FINDINGS_MAX),
    ] = ()
    """Keys of its findings."""

    tail: Annotated[str, Field(max_length=REPORT_TAIL_BYTES_MAX)] = ""
    """End of its output."""


class ReportDestination(ApiModel):
    """Where the proposal goes."""

    host: Annotated[str, Field(min_length=1, max_length=253)]
    """Host of the forge."""

    repository: Annotated[str, Field(min_length=1, max_length=512)]
    """Repository, as `owner/name`."""

    base_branch: Annotated[str, Field(min_length=1, max_length=255)]
    """Branch that the pull request is opened against."""

    branch: Annotated[str, Field(min_length=1, max_length=255)]
    """Our branch."""


class ScopeExpansion(ApiModel):
    """A write above the soft scope, and the bounds that hold after its approval."""

    step: Annotated[str, Field(max_length=16)]
    """Step of the loop that asks."""

    tool: Annotated[str, Field(max_length=64)]
    """Tool that would write."""

    call_sha256: Sha256Text
    """SHA-256 of the call: tool and arguments."""

    files: Count
    """Source files that the repair may change then, in all."""

    lines: Count
    """Lines that it may add and remove then, in all."""


class UnexercisedRepair(ApiModel):
    """Repaired lines that no test runs, in exactly one tree."""

    step: Annotated[str, Field(max_length=16)]
    """Step of the loop that asks."""

    tree: CommitText
    """The tree that would be proposed."""

    subject_sha256: Sha256Text
    """SHA-256 of the tree and of every range."""

    ranges: Annotated[
        tuple[Annotated[str, Field(max_length=RANGE_MAX)], ...], Field(max_length=RANGES_MAX)
    ] = ()
    """Where, and why it counts as not run."""


class Capability(ApiModel):
    """What the pending request binds: an approval allows exactly this.

    Of a Publication every field down to `reviewers`; of the other kinds the one field of that name.
    """

    type: ApprovalKind
    """Kind of the request."""

    proposal_digest: Sha256Text | None = None
    """SHA-256 of the proposal record."""

    commit: CommitText | None = None
    """The one commit."""

    tree: CommitText | None = None
    """Its tree."""

    base: CommitText | None = None
    """Its one parent."""

    destination: ReportDestination | None = None
    """Where it goes."""

    draft: bool | None = None
    """Whether the pull request is a draft."""

    labels: Annotated[tuple[Annotated[str, Field(max_length=50)], ...], Field(max_length=20)] = ()
    """Labels of the pull request."""

    reviewers: Annotated[
        tuple[Annotated[str, Field(max_length=39)], ...], Field(max_length=15)
    ] = ()
    """Reviewers of the pull request."""

    scope_expansion: ScopeExpansion | None = None
    """A write above the soft scope."""

    unexercised_repair: UnexercisedRepair | None = None
    """Repaired lines that no test runs."""


class ReportContent(ApiModel):
    """The fields of a report; `presentationSha256` binds target, capability, patch and checks."""

    outcome: Annotated[str, Field(min_length=1, max_length=64)]
    """What the runner says of its end, one word of docs/reasons.md."""

    message: Annotated[str, Field(max_length=MESSAGE_MAX)]
    """The same in a sentence."""

    target: Target | None = None
    """The upgrade."""

    capability: Capability | None = None
    """What the pending request binds."""

    patch: Annotated[str, Field(max_length=REPORT_PATCH_BYTES_MAX)] = ""
    """The change as a patch, cut with a mark at 128 KiB."""

    checks: Annotated[tuple[Check, ...], Field(max_length=REPORT_CHECKS_MAX)] = ()
    """Checks of the last validation."""

    notes: Annotated[
        tuple[Annotated[str, Field(max_length=REPORT_NOTE_MAX)], ...],
        Field(max_length=REPORT_NOTES_MAX),
    ] = ()
    """Refusals, violations, what else moved; one sentence each."""

    counts: Annotated[dict[str, Count], Field(max_length=64)] | None = None
    """Numbers, such as versions per reason of exclusion."""

    presentation_sha256: Sha256Text | None = None
    """Digest of target, capability, patch and checks; `status.pendingApproval` names the same."""


def content_of(record: ReportRecord, capability: Capability | None) -> ReportContent:
    """Turn a checked and redacted record into the fields of the report, digest included.

    Raises pydantic's ValidationError for a state or outcome that no version ever had.
    """
    target = record.target
    content = ReportContent(
        outcome=_word(record.outcome),
        message=record.message,
        target=target
        and Target(
            name=target.name, from_version=target.from_version, to_version=target.to_version
        ),
        capability=capability,
        patch=record.patch,
        checks=tuple(
            Check(
                name=check.name,
                state=CheckState(check.state.capitalize()),
                findings=check.findings,
                tail=check.tail,
            )
            for check in record.checks
        ),
        notes=record.notes,
        counts=dict(record.counts) if record.counts is not None else None,
    )
    digest = presentation_digest(content.to_json())
    return content.model_copy(update={"presentation_sha256": digest})


def _word(outcome: str) -> str:
    if outcome == AWAITING_APPROVAL:
        return LiveReason.AWAITING_APPROVAL.value
    return OUTCOMES[outcome].reason if outcome in OUTCOMES else outcome
