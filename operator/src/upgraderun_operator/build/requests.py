"""What people are asked before a push, and the digests that bind it (upgrade-run.md §11). Pure."""

from dataclasses import dataclass
from typing import Final

from upgraderun_operator.model.approval import ApprovalKind
from upgraderun_operator.model.report import (
    Capability,
    ReportContent,
    ReportDestination,
    content_of,
)
from upgraderun_operator.model.run_spec import Publication
from upgraderun_protocol.approvals import request_digest
from upgraderun_protocol.bundle import Destination
from upgraderun_protocol.ids import CommitId, RequestDigest, RunUid, Sha256, TreeId
from upgraderun_protocol.report import ReportRecord

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


def presentation_of(record: ReportRecord, capability: Capability) -> ReportContent:
    """Make what an approver reads: the cleaned record and the capability, with its digest."""
    return content_of(record, capability)


def digest_of_request(
    run_uid: RunUid, nonce: str, capability: Capability, presentation: Sha256, config_hash: str
) -> RequestDigest:
    """Digest that an approval must name."""
    return request_digest(
        kind=PUBLICATION,
        run_uid=run_uid,
        nonce=nonce,
        capability=capability.to_json(),
        presentation=presentation,
        config_hash=config_hash,
    )
