"""A runner asks people in the middle of its work: asked, waited for, gone on with (§9.3, §11).

It works as phase 13 does, by the same rules: the report first, then the request that binds it; no
pod and no Lease while people think. A grant starts the next attempt, whose own policy judges again.
Callers: `decide.run`.
"""

from upgraderun_operator.build.events import EventText
from upgraderun_operator.decide.approval import (
    answer,
    approval_is_ignored,
    approvals_are_unread,
    counted,
    nobody_approves,
    nobody_works_meanwhile,
    pending,
    people_are_asked,
    request_has_expired,
    requester_is_unknown,
    somebody_rejects,
)
from upgraderun_operator.decide.attempts import (
    old_pod_is_still_there,
    repository_is_taken_again,
)
from upgraderun_operator.decide.chain import Chain
from upgraderun_operator.decide.decision import Decision
from upgraderun_operator.decide.effects import Append
from upgraderun_operator.decide.make import append, quiet
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.planning import next_attempt
from upgraderun_operator.journal.writes import Change
from upgraderun_protocol.ends import RequestDecision


def runner_asks(seen: Observation) -> bool:
    """Asked while the last runner parked itself with a question."""
    return seen.state.question is not None


def runner_goes_on(seen: Observation) -> Decision:
    """Answer and the next attempt's intent: one write, guarded by the journal."""
    request, approver = pending(seen), counted(seen).approves[0]
    planned = next_attempt(seen)
    tag = planned.intent.id
    message = f"approved by {approver.approver}; {tag} goes on with what was asked"
    effect = Append(
        Change(drafts=(answer(request, RequestDecision.APPROVED, seen, approver), planned.intent)),
        quiet(seen),
        blobs=(planned.bundle,),
        events=(EventText("Approved", message, request.id),),
        name="grant",
        same_wish=True,
    )
    return append(seen, "Approved", message, effect)


QUESTIONS = Chain(
    "questions",
    "Do people let the runner go on?",
    runner_asks,
    (
        people_are_asked,
        request_has_expired,
        approvals_are_unread,
        somebody_rejects,
        approval_is_ignored,
        nobody_works_meanwhile,
        requester_is_unknown,
        nobody_approves,
        old_pod_is_still_there,
        repository_is_taken_again,
        runner_goes_on,
    ),
)
