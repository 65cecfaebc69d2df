"""Conditions of a run, computed from its state, facts and spec (DESIGN §3). For people only.

One function per condition gives what holds now; `conditions` writes them as stored, keeping the
time of the last change of `status`. Callers: `journal.projection`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from upgraderun_operator.journal.run import RunView
from upgraderun_operator.journal.state import Lifecycle
from upgraderun_operator.model.conditions import (
    STALLS,
    WAITS,
    ConditionStatus,
    ConditionType,
    LiveReason,
)
from upgraderun_operator.model.conflicts import CONFLICTS, next_step_of
from upgraderun_protocol.ends import RequestDecision
from upgraderun_protocol.limits import MESSAGE_MAX
from upgraderun_protocol.outcomes import OUTCOMES, ConflictKind

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one condition says now."""

    status: ConditionStatus
    reason: str
    message: str = ""


_PROGRESS: Final = {
    Lifecycle.QUEUED: (LiveReason.QUEUED, "waits for admission; a runner pod comes next"),
    Lifecycle.PROVISIONING: (LiveReason.PROGRESSING, "the runner pod is being started"),
    Lifecycle.RUNNING: (LiveReason.PROGRESSING, "the runner works"),
    Lifecycle.PUBLISHING: (LiveReason.PROGRESSING, "branch and pull request are being made"),
    Lifecycle.SUSPENDED: (LiveReason.SUSPENDED, "set spec.suspend to false to go on"),
    Lifecycle.FINALIZING: (LiveReason.FINALIZING, "pods and claims are being removed"),
}


def conditions(
    view: RunView, previous: Sequence[Mapping[str, Any]], now: str
) -> list[dict[str, Any]]:
    """All conditions in their order. `view` is the run as it will be written."""
    known = {str(item.get("type")): item for item in previous}
    return [
        _stored(kind, verdict, known.get(kind.value, {}), view.generation, now)
        for kind, verdict in _verdicts(view)
    ]


def _stored(
    kind: ConditionType, verdict: Verdict, before: Mapping[str, Any], generation: int, now: str
) -> dict[str, Any]:
    unchanged = before.get("status") == verdict.status.value
    return {
        "type": kind.value,
        "status": verdict.status.value,
        "reason": str(verdict.reason),
        "message": verdict.message[:MESSAGE_MAX],
        "lastTransitionTime": before.get("lastTransitionTime", now) if unchanged else now,
        "observedGeneration": generation,
    }


_ISOLATION: Final = MappingProxyType(
    {
        "network-namespace": "repository code runs inside the runner pod, beside its clone token; "
        "checks have no network",
        "none": "repository code runs inside the runner pod, beside its clone token; "
        "checks have the pod's network, since the kernel lets the runner make no namespace",
    }
)
"""What sandbox Inline means for a run, by the isolation that its runner found (security.md H7)."""


def _verdicts(view: RunView) -> list[tuple[ConditionType, Verdict]]:
    found = [
        (ConditionType.SUCCEEDED, _succeeded(view)),
        (ConditionType.RECONCILING, _reconciling(view)),
        (ConditionType.BASELINE_VALIDATED, _baseline(view)),
        (ConditionType.UPGRADE_SELECTED, _selected(view)),
        (ConditionType.VALIDATED, _validated(view)),
        (ConditionType.PROPOSAL_FROZEN, _frozen(view)),
        (ConditionType.APPROVED, _approved(view)),
        (ConditionType.PUBLISHED, _published(view)),
        (ConditionType.SUSPENDED, _suspended(view)),
        (ConditionType.STALLED, _stalled(view)),
        (ConditionType.CONFLICT, _conflict(view)),
    ]
    context = view.state.context
    if context is not None and context.isolation is not None:
        message = _ISOLATION.get(context.isolation, context.isolation)
        found.append(
            (ConditionType.NOT_ISOLATED, Verdict(TRUE, LiveReason.INLINE_SANDBOX, message))
        )
    return found


def _succeeded(view: RunView) -> Verdict:
    outcome = view.state.outcome
    lifecycle = view.state.lifecycle(suspended=view.wants_suspend)
    if outcome is not None:
        row = OUTCOMES[outcome.name]
        message = f"{outcome.message or row.reason}; {_next_step(view)}"
        if lifecycle is Lifecycle.FINALIZING:
            return Verdict(UNKNOWN, LiveReason.FINALIZING, f"{row.reason}: {message}")
        return Verdict(TRUE if row.succeeded else FALSE, row.reason, message)
    wait = view.facts.wait
    if wait is not None and wait.reason in WAITS:
        return Verdict(UNKNOWN, wait.reason, wait.message)
    if lifecycle is Lifecycle.AWAITING_APPROVAL:
        return Verdict(UNKNOWN, LiveReason.AWAITING_APPROVAL, _question(view))
    reason, message = _PROGRESS[lifecycle]
    return Verdict(UNKNOWN, reason, message)


def _next_step(view: RunView) -> str:
    """What a person does after the end; a contradiction knows it best."""
    outcome, conflict = view.state.outcome, view.state.conflict
    assert outcome is not None, "asked once the run has ended"
    return next_step_of(outcome.name, None if conflict is None else conflict.kind)


def _reconciling(view: RunView) -> Verdict:
    """What kstatus reads: True is "in progress", and it never stands beside a true `Stalled`."""
    summary, stalled = _succeeded(view), _stalled(view)
    if stalled.status is TRUE:
        return Verdict(FALSE, stalled.reason)
    if summary.status is UNKNOWN:
        return Verdict(TRUE, summary.reason, summary.message)
    return Verdict(FALSE, summary.reason)


def _question(view: RunView) -> str:
    request = view.state.pending_request
    if request is None and view.state.question is not None:
        return "the runner asks before it goes on; the request for approval comes next"
    if request is None:
        return "the commit is frozen; the request for approval comes next"
    return (
        f"approve or reject digest {request.digest} before {request.expires_at}; "
        "the patch stands in the UpgradeReport of the same name"
    )


def _missing(view: RunView) -> Verdict:
    """What a milestone says that wasn't reached."""
    if view.state.outcome is None:
        return Verdict(UNKNOWN, LiveReason.NOT_YET)
    return Verdict(FALSE, LiveReason.NOT_REACHED)


def _baseline(view: RunView) -> Verdict:
    state = view.state
    if state.baseline is not None:
        return Verdict(TRUE, LiveReason.BASELINE_PASSED, f"tree {state.baseline.tree}")
    if state.outcome is not None and state.outcome.name.startswith("baseline_"):
        return Verdict(FALSE, OUTCOMES[state.outcome.name].reason, state.outcome.message)
    return _missing(view)


def _selected(view: RunView) -> Verdict:
    target = view.state.target
    if target is None or (view.state.promoted is None and view.state.proposal is None):
        return _missing(view)
    words = f"{target.name} from {target.from_version} to {target.to_version}"
    return Verdict(TRUE, LiveReason.TARGET_CHOSEN, words)


def _validated(view: RunView) -> Verdict:
    validation = view.state.validation
    if validation is None:
        return _missing(view)
    if validation.clean:
        return Verdict(TRUE, LiveReason.TREE_PASSED, f"step {validation.step}")
    reason = LiveReason.NOT_YET if view.state.outcome is None else LiveReason.NOT_REACHED
    return Verdict(FALSE, reason, f"{validation.step} found failures that the baseline hasn't")


def _frozen(view: RunView) -> Verdict:
    proposal = view.state.proposal
    if proposal is None:
        return _missing(view)
    return Verdict(TRUE, LiveReason.COMMIT_FROZEN, f"commit {proposal.commit}")


def _approved(view: RunView) -> Verdict:
    if not view.wants_publication:
        return Verdict(FALSE, LiveReason.NOT_WANTED)
    request = view.state.request
    if request is None or (request.answer is None and view.state.outcome is not None):
        return _missing(view)
    answer = request.answer
    if answer is None:
        return Verdict(UNKNOWN, LiveReason.AWAITING_APPROVAL, f"digest {request.digest}")
    if answer.decision == RequestDecision.APPROVED and request.question is not None:
        return _missing(view)
    if answer.decision == RequestDecision.APPROVED:
        return Verdict(TRUE, LiveReason.APPROVAL_COUNTED, f"by {answer.by or 'unnamed'}")
    if answer.decision == RequestDecision.VOID:
        return Verdict(UNKNOWN, LiveReason.AWAITING_APPROVAL, "the grant is void; asked anew")
    reason = OUTCOMES[f"approval_{answer.decision}"].reason
    comment = f": {answer.message}" if answer.message else ""
    return Verdict(FALSE, reason, f"by {answer.by or 'nobody'}{comment}")


def _published(view: RunView) -> Verdict:
    opened = view.state.opened
    if opened is not None:
        if view.wants_cancel:
            message = f"{opened.url}: published before the cancel; close it there"
            return Verdict(TRUE, LiveReason.CANCEL_TOO_LATE, message)
        return Verdict(TRUE, LiveReason.PULL_REQUEST_OPEN, opened.url or "")
    return _missing(view) if view.wants_publication else Verdict(FALSE, LiveReason.NOT_WANTED)


def _suspended(view: RunView) -> Verdict:
    if not view.wants_suspend or view.state.outcome is not None:
        return Verdict(FALSE, LiveReason.NOT_SUSPENDED)
    if view.state.writer is not None:
        return Verdict(FALSE, LiveReason.NOT_SUSPENDED, "stops after the step in hand")
    return Verdict(TRUE, LiveReason.SUSPENDED, "set spec.suspend to false to go on")


def _stalled(view: RunView) -> Verdict:
    """A person is needed: to go on, or because the run ended without success."""
    wait, outcome = view.facts.wait, view.state.outcome
    if wait is not None and wait.reason in STALLS and outcome is None:
        return Verdict(TRUE, wait.reason, wait.message)
    if outcome is not None and _succeeded(view).status is FALSE:
        row = OUTCOMES[outcome.name]
        return Verdict(TRUE, row.reason, f"{row.reason}: {_next_step(view)}")
    return Verdict(FALSE, LiveReason.MOVING)


def _conflict(view: RunView) -> Verdict:
    conflict = view.state.conflict
    if conflict is None:
        return Verdict(FALSE, LiveReason.CONSISTENT)
    row = CONFLICTS[ConflictKind(conflict.kind)]
    message = (
        f"{row.meaning}: expected {conflict.expected}; observed {conflict.observed}; "
        f"nothing was touched; {row.next_step}"
    )
    return Verdict(TRUE, conflict_reason(conflict.kind), message)


def conflict_reason(kind: str) -> str:
    """Spell a conflict kind as status does: `foreign_pod` is `ForeignPod`."""
    return "".join(word.capitalize() for word in kind.split("_"))
