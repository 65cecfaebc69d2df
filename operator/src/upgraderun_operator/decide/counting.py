"""Which approvals count, and why another doesn't (upgrade-run.md §11, security.md H25). Pure.

Callers: `decide.approval`, `decide.publishing`. Both read the approvals live in the pass that
appends a push intent.
"""

from dataclasses import dataclass

from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.readings import known
from upgraderun_operator.decide.views import ApprovalView
from upgraderun_operator.journal.records import Request
from upgraderun_operator.model.policy_spec import SelfApproval


@dataclass(frozen=True, slots=True)
class Ignored:
    """An approval that doesn't count; `why` says what to do about it."""

    approval: ApprovalView
    why: str


@dataclass(frozen=True, slots=True)
class Count:
    """`rejects` and `approves` are in order of creation; one reject that counts ends the run."""

    rejects: tuple[ApprovalView, ...]
    approves: tuple[ApprovalView, ...]
    ignored: tuple[Ignored, ...]


def count(seen: Observation, request: Request) -> Count:
    """Judge every approval of this run against one request.

    What answered an earlier question of the runner is history.
    """
    rejects: list[ApprovalView] = []
    approves: list[ApprovalView] = []
    ignored: list[Ignored] = []
    earlier = {
        asked.digest
        for asked in seen.state.requests
        if asked.question is not None and asked.id != request.id
    }
    mine = (
        one
        for one in known(seen.approvals) or ()
        if one.run_uid == seen.view.uid and one.digest not in earlier
    )
    for approval in sorted(mine, key=lambda one: (one.created_at, one.name)):
        why = objection(seen, request, approval)
        if why is not None:
            ignored.append(Ignored(approval, why))
        else:
            (approves if approval.approves else rejects).append(approval)
    return Count(tuple(rejects), tuple(approves), tuple(ignored))


def objection(seen: Observation, request: Request, approval: ApprovalView) -> str | None:
    """Say why an approval doesn't count, or None. The first reason is enough."""
    if approval.kind != request.ask:
        return f"it is of kind {approval.kind}, the run asks for kind {request.ask}"
    digest = request.digest
    if approval.digest != digest:
        return (
            f"it names digest {approval.digest[:12]}, the run waits for {digest[:12]}; "
            "approve that digest or reject it"
        )
    return _not_an_approver(seen, approval) or _approves_own_run(seen, approval)


def _not_an_approver(seen: Observation, approval: ApprovalView) -> str | None:
    """The frozen list holds, and the live one too: a prohibition added later counts (§3)."""
    lists = [seen.resolved.spec.approvals.approvers]
    live = known(seen.policy)
    if live is not None:
        lists.append(live.spec.approvals.approvers)
    if all(not names or approval.approver in names for names in lists):
        return None
    return f"{approval.approver} isn't in approvals.approvers of policy {seen.resolved.name}"


def _approves_own_run(seen: Observation, approval: ApprovalView) -> str | None:
    if seen.resolved.spec.approvals.self_approval is SelfApproval.ALLOW:
        return None
    requester = seen.run.requester
    if requester is None:
        return "the run doesn't say who requested it, so self-approval can't be excluded"
    if approval.requester != requester:
        return (
            f"its annotation upgraderun.dev/requester says {approval.requester or 'nothing'}, "
            f"the run was requested by {requester}"
        )
    if approval.approver == requester:
        return f"{requester} requested this run; another person must approve it"
    return None
