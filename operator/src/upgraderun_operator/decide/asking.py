"""Phase 13, first half: the report is written, then people are asked (upgrade-run.md §11).

The report comes first: what an approver reads must stand there before the request that binds it.
Callers: `decide.approval`, `decide.questions` for what a runner asks, `decide.publishing` when a
grant has lapsed.
"""

from typing import Final

from upgraderun_operator.build.bundles import destination_of
from upgraderun_operator.build.events import EventText
from upgraderun_operator.build.requests import (
    Frozen,
    capability_of,
    capability_of_question,
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
from upgraderun_protocol.questions import QuestionRecord
from upgraderun_protocol.report import ReportRecord

_HINT: Final = "read it with `kubectl get upgradereport {name} -n {namespace} -o yaml`"


def record_is_unusable(seen: Observation) -> Decision | None:
    """What is gone or malformed can't be shown, so it can't be approved."""
    asks = (Need.QUESTION,) if seen.state.question is not None else ()
    waiting = unread(seen, Need.FROZEN, Need.RECORD, *asks)
    if waiting is not None:
        return waiting
    if seen.record is ABSENT or seen.question is ABSENT:
        return _invalid(seen, "the artifact of its report is gone from the store")
    for read in (known(seen.record), known(seen.question)):
        if isinstance(read, Malformed):
            return _invalid(seen, read.message)
    return None


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
    number, question = len(seen.state.requests) + 1, seen.state.question
    content, allowed = presentation(seen), capability(seen)
    assert content.presentation_sha256 is not None
    shown = Sha256(content.presentation_sha256)
    digest = digest_of_request(seen.view.uid, seen.nonce, allowed, shown, _config_hash(seen))
    expires = seen.after(seen.resolved.spec.approvals.request_ttl_seconds)
    entry = draft(
        f"req/{number}",
        "request",
        INTENT,
        {
            "ask": allowed.type.value,
            "digest": digest,
            "nonce": seen.nonce,
            "expiresAt": expires,
            **_size(seen),
        },
        {"presentation": shown, **({"question": question} if question is not None else {})},
    )
    ref = seen.view.ref
    message = (
        f"digest {digest} waits for an approval of kind {allowed.type.value} until {expires}; "
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
    """Go from a frozen proposal, or a runner's question, to an open request, step by step."""
    return record_is_unusable(seen) or report_is_written(seen) or request_is_opened(seen)


def capability(seen: Observation) -> Capability:
    """What an approval allows: of this proposal, or of what the runner asks."""
    question = known(seen.question)
    if isinstance(question, QuestionRecord):
        return capability_of_question(question)
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


def _size(seen: Observation) -> dict[str, str | None]:
    """How large the repair is with what the runner asks; a proposal's own entry says it."""
    question = known(seen.question)
    if not isinstance(question, QuestionRecord):
        return {}
    return {"files": str(question.files), "lines": str(question.lines)}


def _config_hash(seen: Observation) -> str:
    context, admission = seen.state.context, seen.state.admission
    assert admission is not None
    return context.config_hash if context is not None else admission.config_hash


def _invalid(seen: Observation, why: str) -> Decision:
    proposal = seen.state.proposal
    if proposal is None:
        return end_run(seen, End("failed", f"what the runner asks can't be shown to people: {why}"))
    message = f"proposal {proposal.digest[:12]} can't be asked about: {why}"
    return end_run(seen, End("proposal_invalidated", message))
