"""Guards of a write: what its caller decided on, compared with the object that is written.

The closed union of runner-protocol.md §1.3, evaluated on the version that the PUT names, with the
values that the caller decided on. Comparison is null-safe: absent equals only absent.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from upgraderun_operator.journal.records import PodRecord
from upgraderun_operator.journal.run import RunView
from upgraderun_protocol.entries import EntryState
from upgraderun_protocol.ids import EntryId, Epoch, PodUid, WriterTag


@dataclass(frozen=True, slots=True)
class AttemptIs:
    """The last pod of that kind (`a<n>` runner, `d<n>` publisher) is this one."""

    tag: WriterTag
    pod_uid: PodUid | None


@dataclass(frozen=True, slots=True)
class WriterIs:
    """This pod may speak for the run now."""

    pod_uid: PodUid


@dataclass(frozen=True, slots=True)
class NobodyWrites:
    """No pod may speak for the run: the leader starts the next one, or asks people."""


@dataclass(frozen=True, slots=True)
class EpochIs:
    """The journal's highest epoch."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class LeaderEpochAtMost:
    """No later leader acted on this run. Guard of every write of a leader."""

    mine: Epoch


@dataclass(frozen=True, slots=True)
class StampIs:
    """The loss stamp beside that pod is the one that was read (RFC 3339), or absent."""

    tag: WriterTag
    value: str | None


@dataclass(frozen=True, slots=True)
class NoVerdict:
    """The run has no outcome yet."""


@dataclass(frozen=True, slots=True)
class EntryAbsent:
    """The replay key isn't taken."""

    id: EntryId
    state: EntryState


@dataclass(frozen=True, slots=True)
class SeqIs:
    """The journal ends where the caller saw it end: for decisions that rest on all of it."""

    seq: int


@dataclass(frozen=True, slots=True)
class MayPublish:
    """Nothing holds the effect that this intent begins, and the commit is the granted one.

    An intent that stands already began before: it is a replay, and its effect is found by looking.
    """

    intent: EntryId
    commit: str


Guard = (
    AttemptIs
    | WriterIs
    | NobodyWrites
    | EpochIs
    | LeaderEpochAtMost
    | StampIs
    | NoVerdict
    | EntryAbsent
    | SeqIs
    | MayPublish
)


@dataclass(frozen=True, slots=True)
class GuardFailure:
    """Which guard failed first, and what stood there, in words for a log line."""

    guard: Guard
    found: str


def first_failure(guards: Iterable[Guard], view: RunView) -> GuardFailure | None:
    """Evaluate guards in order on one version of the run."""
    for guard in guards:
        found = _contradiction(guard, view)
        if found is not None:
            return GuardFailure(guard, found)
    return None


def _contradiction(guard: Guard, view: RunView) -> str | None:
    """Say what stands there instead; None if the guard holds."""
    state = view.state
    match guard:
        case AttemptIs(tag, pod_uid):
            pod = _pod(view, tag)
            holds = pod is not None and pod.tag == tag and pod.pod_uid == pod_uid
            return None if holds else _words(pod)
        case WriterIs(pod_uid):
            writer = state.writer
            holds = writer is not None and writer.pod_uid == pod_uid
            return None if holds else (f"{writer.tag} {writer.pod_uid}" if writer else "no writer")
        case NobodyWrites():
            return None if state.writer is None else state.writer.tag
        case EpochIs(epoch):
            return None if state.epoch == epoch else f"epoch {state.epoch}"
        case LeaderEpochAtMost(mine):
            leader = view.facts.leader_epoch
            return None if leader is None or leader <= mine else f"leader epoch {leader}"
        case StampIs(tag, value):
            pod, stamp = _pod(view, tag), _stamp(view, tag)
            holds = pod is not None and pod.tag == tag and stamp == value
            return None if holds else f"{pod.tag if pod else 'no pod'}, stamp {stamp}"
        case NoVerdict():
            return None if state.outcome is None else f"outcome {state.outcome.name}"
        case EntryAbsent(entry_id, entry_state):
            return None if _is_absent(view, entry_id, entry_state) else "entry is there"
        case MayPublish(intent, commit):
            return _hold(view, intent, commit)
    return None if state.seq == guard.seq else f"seq {state.seq}"


def _hold(view: RunView, intent: EntryId, commit: str) -> str | None:
    """Say what holds the publication; an intent that stands isn't asked for again."""
    if view.state.fold.intent(intent) is not None:
        return None
    held, proposal = view.held_publication, view.state.proposal
    if held is not None or proposal is None:
        return held
    return None if proposal.commit == commit else f"the grant is for commit {proposal.commit}"


def _pod(view: RunView, tag: WriterTag) -> PodRecord | None:
    return view.state.delivery if tag.startswith("d") else view.state.attempt


def _stamp(view: RunView, tag: WriterTag) -> str | None:
    return view.facts.delivery_lost_at if tag.startswith("d") else view.facts.attempt_lost_at


def _words(pod: PodRecord | None) -> str:
    return f"{pod.tag} {pod.pod_uid}" if pod else "no pod"


def _is_absent(view: RunView, entry_id: EntryId, entry_state: EntryState) -> bool:
    fold = view.state.fold
    found = fold.intent(entry_id) if entry_state is EntryState.INTENT else fold.outcome(entry_id)
    return found is None or found.state is not entry_state
