"""Everything in `status` that people read: computed anew in each write (DESIGN §3). Pure.

`project` is the one function that writes a status. Nothing in the code reads a projection back;
facts (`journal.facts`) live in the same object and are written here too.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from upgraderun_operator.journal.conditions import conditions, conflict_reason
from upgraderun_operator.journal.records import Request, Target
from upgraderun_operator.journal.run import RunView
from upgraderun_operator.journal.state import Lifecycle
from upgraderun_protocol.outcomes import AWAITING_APPROVAL_EXIT, OUTCOMES
from upgraderun_protocol.questions import QuestionKind

Block = dict[str, Any]


def project(view: RunView, now: str) -> Block:
    """Write the status of a run, without `journal` and `write`. Absent parts are left out.

    `view` has the state and facts to write, and the object as it stands. `now` dates conditions
    whose status changes, nothing else.
    """
    state, facts = view.state, view.facts
    lifecycle = state.lifecycle(suspended=view.wants_suspend)
    outcome = state.outcome
    row = OUTCOMES[outcome.name] if outcome else None
    exit_code = AWAITING_APPROVAL_EXIT if lifecycle is Lifecycle.AWAITING_APPROVAL else None
    started = state.admission.at if state.admission else None
    ended = outcome.at if outcome else None
    wait = facts.wait
    return _without_none(
        {
            "observedGeneration": view.generation,
            "leaderEpoch": facts.leader_epoch,
            "wait": {"reason": wait.reason, "message": wait.message, "since": wait.since}
            if wait
            else None,
            "phase": phase_of(view),
            "outcome": row.reason if row else None,
            "exitCode": row.exit_code if row else exit_code,
            "finished": lifecycle is Lifecycle.FINISHED,
            "conditions": conditions(view, _previous(view.status), now),
            "startTime": started,
            "completionTime": ended,
            "durationSeconds": _seconds(started, ended),
            "target": _target(view),
            "attempt": _attempt(view),
            "configHash": _config_hash(view),
            "base": _base(view),
            "proposal": _proposal(view),
            "pendingApproval": _pending(view),
            "publication": _publication(view),
            "finalization": _finalization(view),
            "conflict": _conflict(view),
            "usage": _usage(view),
        }
    )


def phase_of(view: RunView) -> str:
    """Where the run stands, as `status.phase` spells it."""
    lifecycle = view.state.lifecycle(suspended=view.wants_suspend)
    return view.state.stage.value if lifecycle is Lifecycle.RUNNING else lifecycle.value


def _previous(status: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    found = status.get("conditions")
    return tuple(found) if isinstance(found, list) else ()


def _seconds(start: str | None, end: str | None) -> int | None:
    if start is None or end is None:
        return None
    seconds = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    return max(0, int(seconds.total_seconds()))


def _target(view: RunView) -> Block | None:
    target = view.state.target
    if target is None:
        return None
    return {"name": target.name, "from": target.from_version, "to": target.to_version}


def _attempt(view: RunView) -> Block | None:
    pod = view.state.attempt
    if pod is None:
        return None
    return _without_none(
        {
            "number": pod.number,
            "podName": pod.pod_name,
            "podUID": pod.pod_uid,
            "epoch": pod.epoch,
            "lossObservedAt": view.facts.attempt_lost_at,
        }
    )


def _config_hash(view: RunView) -> str | None:
    context, admission = view.state.context, view.state.admission
    if context is not None:
        return context.config_hash
    return admission.config_hash if admission else None


def _base(view: RunView) -> Block | None:
    base, admission = view.state.base, view.state.admission
    if base is not None:
        return {"commit": base.commit, "tree": base.tree}
    if admission is not None and admission.base_commit is not None:
        return {"commit": admission.base_commit}
    return None


def _proposal(view: RunView) -> Block | None:
    proposal = view.state.proposal
    if proposal is None:
        return None
    return {"digest": proposal.digest, "commit": proposal.commit, "tree": proposal.tree}


def _pending(view: RunView) -> Block | None:
    request, proposal = view.state.pending_request, view.state.proposal
    if request is None or view.state.target is None or view.state.outcome is not None:
        return None
    files, lines = request.files, request.lines
    if proposal is not None:
        files, lines = proposal.files, proposal.added + proposal.removed
    return {
        "kind": request.ask,
        "digest": request.digest,
        "headline": _headline(view.state.target, request),
        "target": _target(view),
        "files": files,
        "lines": lines,
        "presentationSha256": request.presentation,
        "requestedAt": request.requested_at,
        "expiresAt": request.expires_at,
        "approvals": 0,
    }


def _headline(target: Target, request: Request) -> str:
    """What is asked, in one line."""
    words = f"pgrade {target.name} from {target.from_version} to {target.to_version}"
    if request.ask == QuestionKind.SCOPE_EXPANSION:
        return f"Let the repair grow to {request.files} files, {request.lines} lines: u{words}"[
            :200
        ]
    if request.ask == QuestionKind.UNEXERCISED_REPAIR:
        return f"Take a repair that no test runs in part: u{words}"[:200]
    return f"U{words}"[:200]


def _publication(view: RunView) -> Block | None:
    state = view.state
    delivery, push, opened = state.delivery, state.pushed or state.push, state.opened
    if delivery is None and push is None and opened is None:
        return None
    pull = None
    if opened is not None:
        pull = {"number": opened.pull_number, "url": opened.url, "state": opened.pull_state}
    return _without_none(
        {
            "deliveryAttempt": delivery.number if delivery else None,
            "podName": delivery.pod_name if delivery else None,
            "podUID": delivery.pod_uid if delivery else None,
            "lossObservedAt": view.facts.delivery_lost_at,
            "branch": push.branch if push else None,
            "commit": (push.pushed or push.commit) if push else None,
            "pullRequest": pull,
        }
    )


def _finalization(view: RunView) -> Block | None:
    state = view.state
    if state.outcome is None:
        return None
    return _without_none(
        {
            "finishedAt": state.outcome.at,
            "renewedAt": view.facts.renewed_at,
            "finalizedAt": state.finalized_at,
        }
    )


def _conflict(view: RunView) -> Block | None:
    conflict = view.state.conflict
    if conflict is None:
        return None
    evidence = [f"entry {conflict.entry}"]
    if conflict.evidence is not None:
        evidence.append(f"artifact {conflict.evidence}")
    return {
        "kind": conflict_reason(conflict.kind),
        "expected": conflict.expected,
        "observed": conflict.observed,
        "evidence": evidence,
    }


def _usage(view: RunView) -> Block:
    usage = view.state.usage
    return {
        "attempts": usage.attempts,
        "deliveries": usage.deliveries,
        "steps": usage.steps,
        "validations": usage.validations,
    }


def _without_none(block: Block) -> Block:
    return {key: value for key, value in block.items() if value is not None}
