"""What people are asked, and the digests that bind it (upgrade-run.md §11). Pure.

Before a push, and in the middle of a runner's work, whose question is taken like a request body.
"""

from dataclasses import dataclass, replace
from typing import Final

from upgraderun_operator.model.approval import ApprovalKind
from upgraderun_operator.model.report import (
    Capability,
    ReportContent,
    ReportDestination,
    ScopeExpansion,
    UnexercisedRepair,
    content_of,
)
from upgraderun_operator.model.run_spec import Publication
from upgraderun_protocol.approvals import request_digest
from upgraderun_protocol.bundle import Destination
from upgraderun_protocol.canonical import is_git_id, is_sha256
from upgraderun_protocol.ids import CommitId, RequestDigest, RunUid, Sha256, TreeId
from upgraderun_protocol.questions import QUESTION_VERSION, RANGE_MAX, QuestionKind, QuestionRecord
from upgraderun_protocol.records import RecordError, from_bytes
from upgraderun_protocol.redact import Redactor
from upgraderun_protocol.report import ReportRecord

SIZE_MAX: Final = 9_999
"""Files or lines of a question: above every policy's hard scope, and short enough for an entry."""
PUBLICATION: Final = ApprovalKind.PUBLICATION.value


@dataclass(frozen=True, slots=True)
class Frozen:
    """The proposal as far as a request binds it."""

    digest: str
    commit: CommitId
    tree: TreeId
    base: CommitId
    branch: str


def capability_of(frozen: Frozen, destination: Destination, publication: Publication) -> Capability:
    """Say what an approval would allow: exactly this commit on exactly this branch."""
    return Capability(
        type=ApprovalKind.PUBLICATION,
        proposal_digest=frozen.digest,
        commit=frozen.commit,
        tree=frozen.tree,
        base=frozen.base,
        destination=ReportDestination(
            host=destination.host,
            repository=destination.repository,
            base_branch=destination.base_branch,
            branch=frozen.branch,
        ),
        draft=publication.draft,
        labels=publication.labels,
        reviewers=publication.reviewers,
    )


def clean_question(data: bytes, redactor: Redactor) -> QuestionRecord:
    """Read and redact a runner's question. Raises RecordError if it is none of ours."""
    record = from_bytes(QuestionRecord, data)
    if record.version != QUESTION_VERSION or record.kind not in frozenset(QuestionKind):
        raise RecordError(f"$: no question of kind {record.kind!r}, version {record.version}")
    if not is_sha256(record.subject) or (record.tree and not is_git_id(record.tree)):
        raise RecordError("$: subject and tree are lower-case hex digests")
    sizes = (record.files, record.lines, record.files_max, record.lines_max)
    if not 0 <= min(sizes) <= max(sizes) <= SIZE_MAX:
        raise RecordError(f"$: sizes are 0..{SIZE_MAX}")
    if (record.kind == QuestionKind.UNEXERCISED_REPAIR) != bool(record.tree):
        raise RecordError("$.tree: named for a repair that no test runs, and only there")
    ranges = tuple(str(redactor.redact(text, RANGE_MAX)) for text in record.ranges)
    return replace(record, ranges=ranges)


def capability_of_question(question: QuestionRecord) -> Capability:
    """Say what an approval would allow: exactly this call, or exactly this tree."""
    if question.kind == QuestionKind.SCOPE_EXPANSION:
        return Capability(
            type=ApprovalKind.SCOPE_EXPANSION,
            scope_expansion=ScopeExpansion(
                step=question.step,
                tool=question.tool,
                call_sha256=question.subject,
                files=question.files_max,
                lines=question.lines_max,
            ),
        )
    return Capability(
        type=ApprovalKind.UNEXERCISED_REPAIR,
        unexercised_repair=UnexercisedRepair(
            step=question.step,
            tree=question.tree,
            subject_sha256=question.subject,
            ranges=question.ranges,
        ),
    )


def presentation_of(record: ReportRecord, capability: Capability) -> ReportContent:
    """Make what an approver reads: the cleaned record and the capability, with its digest."""
    return content_of(record, capability)


def digest_of_request(
    run_uid: RunUid, nonce: str, capability: Capability, presentation: Sha256, config_hash: str
) -> RequestDigest:
    """Digest that an approval must name."""
    return request_digest(
        kind=capability.type.value,
        run_uid=run_uid,
        nonce=nonce,
        capability=capability.to_json(),
        presentation=presentation,
        config_hash=config_hash,
    )
