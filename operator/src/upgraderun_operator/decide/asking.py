"""Phase 13, first half: the report is written, then people are asked (upgrade-run.md §11).

The report comes first: what an approver reads must stand there before the request that binds it.
Callers: `decide.approval`, `decide.publishing` when a grant has lapsed.
"""

from typing import Final

from upgraderun_operator.build.bundles import destination_of
from upgraderun_operator.build.events import EventText
from upgraderun_operator.build.requests import (
    PUBLICATION,
    Frozen,
    capability_of,
    digest_of_request,
    presentation_of,
)
from upgraderun_operator.decide.decision import Decision, Need
from upgraderun_operator.decide.effects import Append, WriteReport
from upgraderun_operator.decide.make import INTENT, End, append, draft, end_run, quiet, unread
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.planning import base_branch, base_commit, our_branch
from upgraderun_operator.decide.readings import ABSENT, known
from upgraderun_operator.decide.views import Malformed
from upgraderun_operator.journal.writes import Change
from upgraderun_operator.model.report import Capability, ReportContent
from upgraderun_protocol.approvals import PRESENTED
from upgraderun_protocol.canonical import canonical_json, sha256_of
from upgraderun_protocol.ids import Sha256
from upgraderun_protocol.report import ReportRecord

_HINT: Final = "read it with `kubectl get upgradereport {name} -n {namespace} -o yaml`"


def record_is_unusable(seen: Observation) -> Decision | None:
    """A proposal whose report is gone or malformed can't be shown, so it can't be approved."""
    waiting = unread(seen, Need.FROZEN, Need.RECORD)
    if waiting is not None:
        return waiting
    if seen.record is ABSENT:
        return _invalid(seen, "the artifact of its report is gone from the store")
    record = known(seen.record)
    return _invalid(seen, record.message) if isinstance(record, Malformed) else None


def report_is_written(seen: Observation) -> Decision | None:
    """The UpgradeReport shows exactly what the request will bind."""
    waiting = unread(seen, Need.REPORT)
    if waiting is not None:
        return waiting
    content, report = presentation(seen), known(seen.report)
    if report is not None and report.owner_uid != seen.view.uid:
        message = f"an UpgradeReport {seen.view.ref.name} of another owner is in the way"
        return _invalid(seen, message)
    if report is not None and (report.digest, report.outcome) == (
        content.presentation_sha256,
        content.outcome,
    ):
        return None
    return Decision("ReportWritten", "the report shows the proposal", WriteReport(content, report))


def request_is_opened(seen: Observation) -> Decision:
    """The request binds digest, destination and presentation under a fresh nonce."""
    number = len(seen.state.requests) + 1
    content = presentation(seen)
    assert content.presentation_sha256 is not None
    shown = Sha256(content.presentation_sha256)
    digest = digest_of_request(
        seen.view.uid, seen.nonce, capability(seen), shown, _config_hash(seen)
    )
    expires = seen.after(seen.resolved.spec.approvals.request_ttl_seconds)
    entry = draft(
        f"req/{number}",
        "request",
        INTENT,
        {"ask": PUBLICATION, "digest": digest, "nonce": seen.nonce, "expiresAt": expires},
        {"presentation": shown},
    )
    ref = seen.view.ref
    message = (
        f"digest {digest} waits for an approval until {expires}; "
        f"{_HINT.format(name=ref.name, namespace=ref.namespace)}"
    )
    effect = Append(
        Change(drafts=(entry,)),
        quiet(seen),
        blobs=(presented_bytes(content),),
        events=(EventText("ApprovalRequested", message, f"req/{number}"),),
        name="request",
    )
    return append(seen, "ApprovalRequested", message, effect)


def ask(seen: Observation) -> Decision:
    """Go from a frozen proposal to an open request, one step at a time."""
    return record_is_unusable(seen) or report_is_written(seen) or request_is_opened(seen)


def capability(seen: Observation) -> Capability:
    """What an approval of this proposal allows."""
    proposal = seen.state.proposal
    assert proposal is not None
    frozen = Frozen(
        str(proposal.digest), proposal.commit, proposal.tree, base_commit(seen), our_branch(seen)
    )
    destination = destination_of(seen.resolved, base_branch(seen))
    return capability_of(frozen, destination, seen.run.spec.publication)


def presentation(seen: Observation) -> ReportContent:
    """What an approver reads."""
    record = known(seen.record)
    assert isinstance(record, ReportRecord)
    return presentation_of(record, capability(seen))


def presented_bytes(content: ReportContent) -> bytes:
    """Spell what the presentation digest is the digest of, so that it can be kept as an artifact."""
    fields = content.to_json()
    data = canonical_json({name: fields.get(name) for name in PRESENTED})
    assert sha256_of(data) == content.presentation_sha256
    return data


def _config_hash(seen: Observation) -> str:
    context, admission = seen.state.context, seen.state.admission
    assert admission is not None
    return context.config_hash if context is not None else admission.config_hash


def _invalid(seen: Observation, why: str) -> Decision:
    proposal = seen.state.proposal
    assert proposal is not None
    message = f"proposal {proposal.digest[:12]} can't be asked about: {why}"
    return end_run(seen, End("proposal_invalidated", message))
