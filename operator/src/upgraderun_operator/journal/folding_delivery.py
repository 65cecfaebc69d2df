"""Entries about requests, publication and the end of the run (`journal.folding`)."""

from dataclasses import replace

from upgraderun_operator.journal.building import Building, commit_of, intended, number_of
from upgraderun_operator.journal.records import (
    Answer,
    Conflict,
    Outcome,
    PullRequest,
    Push,
    Request,
)
from upgraderun_protocol.entries import Entry, EntryState
from upgraderun_protocol.ids import CommitId, PodUid, RequestDigest


def take_request(known: Building, entry: Entry) -> None:
    """People are asked, or answered."""
    data = entry.data
    if entry.state is EntryState.INTENT:
        known.requests[entry.id] = Request(
            id=entry.id,
            number=number_of(entry),
            ask=data["ask"],
            digest=RequestDigest(data["digest"]),
            nonce=data["nonce"],
            requested_at=entry.at,
            expires_at=data["expiresAt"],
            presentation=entry.artifacts["presentation"],
            question=entry.artifacts.get("question"),
            files=int(data.get("files", "0")),
            lines=int(data.get("lines", "0")),
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
        request = intended(known.requests, entry.id, entry)
        known.requests[entry.id] = replace(request, answer=answer)


def take_push(known: Building, entry: Entry) -> None:
    """A push is intended, or settled."""
    data = entry.data
    if entry.state is EntryState.INTENT:
        known.pushes[entry.id] = Push(
            id=entry.id,
            number=number_of(entry),
            at=entry.at,
            branch=data["branch"],
            commit=CommitId(data["commit"]),
            proposal=data["proposal"],
            grant=data.get("grant"),
        )
    else:
        # A publisher that finds the commit there records it without having intended anything.
        push = known.pushes.get(entry.id) or Push(entry.id, number_of(entry), entry.at)
        known.pushes[entry.id] = replace(
            push,
            state=entry.state,
            settled_at=entry.at,
            pushed=commit_of(data.get("commit")),
            found=data.get("found") == "true",
            reason=data.get("reason"),
            message=data.get("message"),
        )


def take_pull_request(known: Building, entry: Entry) -> None:
    """A pull request is intended, or settled."""
    data = entry.data
    if entry.state is EntryState.INTENT:
        known.pull_requests[entry.id] = PullRequest(
            id=entry.id,
            number=number_of(entry),
            at=entry.at,
            branch=data["branch"],
            commit=CommitId(data["commit"]),
        )
    else:
        # As above: a pull request may be found rather than made.
        pull = known.pull_requests.get(entry.id) or PullRequest(
            entry.id, number_of(entry), entry.at
        )
        known.pull_requests[entry.id] = replace(
            pull,
            state=entry.state,
            settled_at=entry.at,
            pull_number=int(data["number"]) if "number" in data else None,
            pull_state=data.get("state"),
            url=data.get("url"),
            head=commit_of(data.get("commit")),
            found=data.get("found") == "true",
            warnings=data.get("warnings", ""),
            reason=data.get("reason"),
            message=data.get("message"),
        )


def take_outcome(known: Building, entry: Entry) -> None:
    """The run ended."""
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


def take_finalized(known: Building, entry: Entry) -> None:
    """Nothing is left to do."""
    known.finalized_at = entry.at
