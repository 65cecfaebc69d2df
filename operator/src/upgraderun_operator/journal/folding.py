"""From the index of a journal to `RunState`: one pass over the entries, in order.

Each entry kind has one function that takes what is known so far and the next entry. Entries were
checked by `kinds.check_shape` when they were read, so required keys are there and well-formed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from upgraderun_operator.journal.records import (
    Admission,
    Answer,
    Base,
    Baseline,
    Conflict,
    Context,
    End,
    LossCount,
    Outcome,
    PodRecord,
    Proposal,
    PullRequest,
    Push,
    Request,
    Role,
    Target,
    Validation,
)
from upgraderun_operator.journal.state import RunState, Stage, Usage
from upgraderun_protocol.ends import EndCause
from upgraderun_protocol.entries import Entry, EntryState
from upgraderun_protocol.fold import Fold
from upgraderun_protocol.ids import (
    CommitId,
    Epoch,
    PodUid,
    ProposalDigest,
    RequestDigest,
    Sha256,
    TreeId,
    WriterTag,
)
from upgraderun_protocol.kinds import KINDS, Writer

VALIDATION_TOOL: Final = "run_validation"
_PODS: Final = frozenset({Writer.RUNNER, Writer.PUBLISHER})
_WORK: Final = frozenset(
    row.kind for row in KINDS.values() if row.writers & _PODS and row.kind != "end"
)
"""Kinds that pods word themselves: their `done` shows that a pod got further."""

_STAGES: Final = MappingProxyType(
    {
        ("workspace", EntryState.INTENT): Stage.PREPARING,
        ("profile", EntryState.INTENT): Stage.PREPARING,
        ("acquire", EntryState.INTENT): Stage.PREPARING,
        ("baseline", EntryState.INTENT): Stage.BASELINE,
        ("baseline", EntryState.DONE): Stage.SELECTING,
        ("candidates", EntryState.INTENT): Stage.SELECTING,
        ("candidates", EntryState.DONE): Stage.UPGRADING,
        ("proposal", EntryState.INTENT): Stage.FREEZING,
        ("proposal", EntryState.DONE): Stage.FREEZING,
    }
)


@dataclass(slots=True)
class _Building:
    """What is known after the entries so far. Lives for one fold."""

    admission: Admission | None = None
    attempts: dict[str, PodRecord] = field(default_factory=dict)
    deliveries: dict[str, PodRecord] = field(default_factory=dict)
    base: Base | None = None
    context: Context | None = None
    baseline: Baseline | None = None
    candidate: Target | None = None
    promoting: Target | None = None
    promoted: Target | None = None
    validation: Validation | None = None
    proposal: Proposal | None = None
    requests: dict[str, Request] = field(default_factory=dict)
    pushes: dict[str, Push] = field(default_factory=dict)
    pull_requests: dict[str, PullRequest] = field(default_factory=dict)
    outcome: Outcome | None = None
    conflict: Conflict | None = None
    finalized_at: str | None = None
    stage: Stage = Stage.PREPARING
    usage: Usage = Usage()
    attempt_losses: LossCount = LossCount()
    delivery_losses: LossCount = LossCount()
    gave_up_in_row: int = 0

    def pods(self, tag: str) -> dict[str, PodRecord]:
        return self.deliveries if tag.startswith("d") else self.attempts


def run_state(fold: Fold) -> RunState:
    """Compute the state that a journal says. Pure; equal journals give equal states."""
    known = _Building()
    for entry in fold:
        if entry.state is EntryState.CONFLICT:
            _conflict(known, entry)
        if entry.kind in _WORK:
            _progress(known, entry)
        take = _TAKE.get(entry.kind)
        if take is not None:
            take(known, entry)
    return RunState(
        fold=fold,
        admission=known.admission,
        attempts=tuple(known.attempts.values()),
        deliveries=tuple(known.deliveries.values()),
        base=known.base,
        context=known.context,
        baseline=known.baseline,
        candidate=known.candidate,
        promoted=known.promoted,
        validation=known.validation,
        proposal=known.proposal,
        requests=tuple(known.requests.values()),
        pushes=tuple(known.pushes.values()),
        pull_requests=tuple(known.pull_requests.values()),
        outcome=known.outcome,
        conflict=known.conflict,
        finalized_at=known.finalized_at,
        stage=known.stage,
        usage=known.usage,
        attempt_losses=known.attempt_losses,
        delivery_losses=known.delivery_losses,
        gave_up_in_row=known.gave_up_in_row,
    )


def _progress(known: _Building, entry: Entry) -> None:
    """A pod's own entry: stage, and the ends of counts in a row (upgrade-run.md §9.5)."""
    known.stage = _STAGES.get((entry.kind, entry.state), known.stage)
    known.gave_up_in_row = 0
    if entry.state is not EntryState.DONE:
        return
    if entry.attempt.startswith("d"):
        known.delivery_losses = replace(known.delivery_losses, in_row=0)
    else:
        known.attempt_losses = replace(known.attempt_losses, in_row=0)


def _conflict(known: _Building, entry: Entry) -> None:
    if known.conflict is None:
        known.conflict = Conflict(
            entry.id,
            entry.at,
            entry.data["conflict"],
            entry.data["expected"],
            entry.data["observed"],
            entry.artifacts.get("evidence"),
        )


def _admit(known: _Building, entry: Entry) -> None:
    data = entry.data
    known.admission = Admission(
        at=entry.at,
        policy_name=data["policy"],
        policy_hash=data["policyHash"],
        config_hash=data["configHash"],
        repository=data["repository"],
        branch=data["branch"],
        policy=entry.artifacts["policy"],
        base_commit=_commit(data.get("baseCommit")),
        host=data.get("host"),
        generation=data.get("generation"),
        earlier=entry.artifacts.get("earlier"),
    )


def _pod(known: _Building, entry: Entry) -> None:
    tag = WriterTag(entry.id)
    pods = known.pods(tag)
    if entry.state is EntryState.INTENT:
        role = Role.PUBLISHER if entry.kind == "delivery" else Role.RUNNER
        pods[tag] = PodRecord(
            tag=tag,
            role=role,
            number=int(tag[1:]),
            pod_name=entry.data["pod"],
            image=entry.data.get("image"),
            bundle=entry.artifacts["bundle"],
            planned_at=entry.at,
        )
        number = len(pods)
        known.usage = (
            replace(known.usage, deliveries=number)
            if role is Role.PUBLISHER
            else replace(known.usage, attempts=number)
        )
    elif entry.state is EntryState.DONE:
        pods[tag] = replace(pods[tag], pod_uid=PodUid(entry.data["podUID"]))
    else:
        pods[tag] = replace(pods[tag], contradicted=True)


def _incarnation(known: _Building, entry: Entry) -> None:
    tag = entry.id.partition("/")[0]
    pods = known.pods(tag)
    pods[tag] = replace(
        pods[tag],
        epoch=Epoch(entry.epoch),
        nonce_hash=entry.data["nonce"],
        incarnations=pods[tag].incarnations + 1,
    )


def _end(known: _Building, entry: Entry) -> None:
    tag = entry.id.partition("/")[0]
    data = entry.data
    cause = EndCause(data["cause"])
    exit_code = data.get("exitCode")
    end = End(
        at=entry.at,
        cause=cause,
        pod_uid=PodUid(data["podUID"]) if "podUID" in data else None,
        exit_code=int(exit_code) if exit_code is not None else None,
        reason=data.get("reason"),
        message=data.get("message"),
        outcome=data.get("outcome"),
        verdict_id=data.get("verdictId"),
        verdict=entry.artifacts.get("verdict"),
        report=entry.artifacts.get("report"),
    )
    pods = known.pods(tag)
    pods[tag] = replace(pods[tag], end=end)
    known.gave_up_in_row = known.gave_up_in_row + 1 if cause is EndCause.GAVE_UP else 0
    if not end.is_loss:
        return
    if pods[tag].role is Role.PUBLISHER:
        known.delivery_losses = _one_more(known.delivery_losses)
    else:
        known.attempt_losses = _one_more(known.attempt_losses)


def _one_more(count: LossCount) -> LossCount:
    return LossCount(count.in_row + 1, count.total + 1)


def _base(known: _Building, entry: Entry) -> None:
    known.base = Base(CommitId(entry.data["commit"]), TreeId(entry.data["tree"]))


def _profile(known: _Building, entry: Entry) -> None:
    if entry.state is EntryState.DONE:
        known.context = Context(
            at=entry.at,
            config_hash=entry.data["configHash"],
            ecosystem=entry.data["ecosystem"],
            context=entry.artifacts["context"],
            python=entry.data.get("python"),
            image=entry.data.get("image"),
            isolation=entry.data.get("isolation"),
        )


def _baseline(known: _Building, entry: Entry) -> None:
    if entry.state is EntryState.DONE:
        known.baseline = Baseline(
            entry.at,
            TreeId(entry.data["tree"]),
            entry.data["configHash"],
            entry.artifacts["record"],
            entry.data.get("tests"),
        )


def _candidates(known: _Building, entry: Entry) -> None:
    if entry.state is EntryState.DONE:
        known.candidate = _target(entry.data) or known.candidate


def _step(known: _Building, entry: Entry) -> None:
    validates = entry.data.get("tool") == VALIDATION_TOOL
    if entry.state is EntryState.INTENT:
        known.usage = replace(known.usage, steps=known.usage.steps + 1)
        known.stage = Stage.VALIDATING if validates else Stage.UPGRADING
    elif entry.state is EntryState.DONE and validates:
        known.usage = replace(known.usage, validations=known.usage.validations + 1)
        tree = entry.data.get("tree")
        known.validation = Validation(
            entry.at, entry.id, entry.data.get("clean") == "true", TreeId(tree) if tree else None
        )


def _promotion(known: _Building, entry: Entry) -> None:
    if entry.state is EntryState.INTENT:
        known.promoting = _target(entry.data)
    elif entry.state is EntryState.DONE:
        known.promoted = known.promoting or known.promoted


def _proposal(known: _Building, entry: Entry) -> None:
    data = entry.data
    if entry.state is EntryState.DONE:
        known.proposal = Proposal(
            id=entry.id,
            at=entry.at,
            digest=ProposalDigest(data["digest"]),
            commit=CommitId(data["commit"]),
            tree=TreeId(data["tree"]),
            target=Target(data["name"], data["from"], data["to"]),
            files=int(data["files"]),
            added=int(data["added"]),
            removed=int(data["removed"]),
            record=entry.artifacts["record"],
            report=entry.artifacts["report"],
            sources=data.get("sources"),
            recovered=data.get("recovered") == "true",
        )


def _request(known: _Building, entry: Entry) -> None:
    data = entry.data
    if entry.state is EntryState.INTENT:
        known.requests[entry.id] = Request(
            id=entry.id,
            number=_number(entry),
            ask=data["ask"],
            digest=RequestDigest(data["digest"]),
            nonce=data["nonce"],
            requested_at=entry.at,
            expires_at=data["expiresAt"],
            presentation=entry.artifacts["presentation"],
        )
    else:
        answer = Answer(
            entry.at,
            data["decision"],
            data.get("by"),
            data.get("approval"),
            data.get("at"),
            data.get("message"),
        )
        known.requests[entry.id] = replace(known.requests[entry.id], answer=answer)


def _push(known: _Building, entry: Entry) -> None:
    data = entry.data
    if entry.state is EntryState.INTENT:
        known.pushes[entry.id] = Push(
            id=entry.id,
            number=_number(entry),
            at=entry.at,
            branch=data["branch"],
            commit=CommitId(data["commit"]),
            proposal=data["proposal"],
            grant=data.get("grant"),
        )
    else:
        known.pushes[entry.id] = replace(
            known.pushes[entry.id],
            state=entry.state,
            settled_at=entry.at,
            pushed=_commit(data.get("commit")),
            found=data.get("found") == "true",
            reason=data.get("reason"),
            message=data.get("message"),
        )


def _pull_request(known: _Building, entry: Entry) -> None:
    data = entry.data
    if entry.state is EntryState.INTENT:
        known.pull_requests[entry.id] = PullRequest(
            id=entry.id,
            number=_number(entry),
            at=entry.at,
            branch=data["branch"],
            commit=CommitId(data["commit"]),
        )
    else:
        known.pull_requests[entry.id] = replace(
            known.pull_requests[entry.id],
            state=entry.state,
            settled_at=entry.at,
            pull_number=int(data["number"]) if "number" in data else None,
            pull_state=data.get("state"),
            url=data.get("url"),
            head=_commit(data.get("commit")),
            found=data.get("found") == "true",
            reason=data.get("reason"),
            message=data.get("message"),
        )


def _outcome(known: _Building, entry: Entry) -> None:
    data = entry.data
    exit_code = data.get("exitCode")
    known.outcome = Outcome(
        at=entry.at,
        name=data["outcome"],
        message=data.get("message", ""),
        cause=data.get("cause"),
        detail=data.get("detail"),
        verdict_id=data.get("verdictId"),
        pod_uid=PodUid(data["podUID"]) if "podUID" in data else None,
        exit_code=int(exit_code) if exit_code is not None else None,
        verdict=entry.artifacts.get("verdict"),
        report=entry.artifacts.get("report"),
    )
    if known.conflict is None and "conflict" in data:
        known.conflict = Conflict(
            entry.id,
            entry.at,
            data["conflict"],
            data.get("expected", ""),
            data.get("observed", ""),
            entry.artifacts.get("evidence"),
        )


def _finalized(known: _Building, entry: Entry) -> None:
    known.finalized_at = entry.at


def _target(data: Mapping[str, str]) -> Target | None:
    if not {"name", "from", "to"} <= data.keys():
        return None
    return Target(data["name"], data["from"], data["to"])


def _commit(text: str | None) -> CommitId | None:
    return CommitId(text) if text else None


def _number(entry: Entry) -> int:
    return int(entry.id.rpartition("/")[2])


_TAKE: Final[Mapping[str, Callable[[_Building, Entry], None]]] = MappingProxyType(
    {
        "admit": _admit,
        "attempt": _pod,
        "delivery": _pod,
        "incarnation": _incarnation,
        "end": _end,
        "base": _base,
        "profile": _profile,
        "baseline": _baseline,
        "candidates": _candidates,
        "step": _step,
        "promotion": _promotion,
        "proposal": _proposal,
        "request": _request,
        "push": _push,
        "pullRequest": _pull_request,
        "outcome": _outcome,
        "finalized": _finalized,
    }
)
