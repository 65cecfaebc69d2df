"""Entries about admission, pods and their ends (`journal.folding`)."""

from dataclasses import replace

from upgraderun_operator.journal.building import Building, commit_of, intended
from upgraderun_operator.journal.records import (
    Admission,
    Base,
    Conflict,
    End,
    LossCount,
    PodRecord,
    Role,
)
from upgraderun_protocol.ends import EndCause
from upgraderun_protocol.entries import Entry, EntryState
from upgraderun_protocol.ids import CommitId, PodUid, TreeId, WriterTag


def take_conflict(known: Building, entry: Entry) -> None:
    """Remember the first contradiction."""
    if known.conflict is None:
        known.conflict = Conflict(
            entry.id,
            entry.at,
            entry.data["conflict"],
            entry.data["expected"],
            entry.data["observed"],
            entry.artifacts.get("evidence"),
        )


def take_admit(known: Building, entry: Entry) -> None:
    """Phase 0 is done."""
    data = entry.data
    known.admission = Admission(
        at=entry.at,
        policy_name=data["policy"],
        policy_hash=data.get("policyHash"),
        config_hash=data["configHash"],
        repository=data.get("repository"),
        branch=data.get("branch"),
        policy=entry.artifacts["policy"],
        base_commit=commit_of(data.get("baseCommit")),
        host=data.get("host"),
        generation=data.get("generation"),
        earlier=entry.artifacts.get("earlier"),
    )


def take_pod(known: Building, entry: Entry) -> None:
    """A pod is planned, recorded, or contradicted."""
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
        pods[tag] = replace(intended(pods, tag, entry), pod_uid=PodUid(entry.data["podUID"]))
    else:
        pods[tag] = replace(intended(pods, tag, entry), contradicted=True)


def take_incarnation(known: Building, entry: Entry) -> None:
    """A process of a pod took the run Lease."""
    tag = entry.id.partition("/")[0]
    pods = known.pods(tag)
    pod = intended(pods, tag, entry)
    pods[tag] = replace(
        pod,
        epoch=entry.epoch,
        nonce_hash=entry.data["nonce"],
        incarnations=pod.incarnations + 1,
    )


def take_end(known: Building, entry: Entry) -> None:
    """A pod speaks no more; losses and giving up are counted."""
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
        until=data.get("until"),
        question=entry.artifacts.get("question"),
        python=data.get("python"),
    )
    pods = known.pods(tag)
    pods[tag] = replace(intended(pods, tag, entry), end=end)
    known.gave_up_in_row = known.gave_up_in_row + 1 if cause is EndCause.GAVE_UP else 0
    if not end.is_loss:
        return
    if pods[tag].role is Role.PUBLISHER:
        known.delivery_losses = _one_more(known.delivery_losses)
    else:
        known.attempt_losses = _one_more(known.attempt_losses)


def take_base(known: Building, entry: Entry) -> None:
    """The base is fixed."""
    known.base = Base(CommitId(entry.data["commit"]), TreeId(entry.data["tree"]))


def _one_more(count: LossCount) -> LossCount:
    return LossCount(count.in_row + 1, count.total + 1)
