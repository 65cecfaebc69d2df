"""One try of a guarded write, without I/O (runner-protocol.md §1.3).

From a version of the run and a change to the object that is PUT, or to the reason why nothing is.

Callers: `adapters.writer`, the append benchmark. Append, facts and projections go in one write.
"""

import json
from dataclasses import dataclass, replace
from typing import Any, Final

from upgraderun_operator.journal.append import Stamp, append
from upgraderun_operator.journal.codec import LoadedJournal, encode
from upgraderun_operator.journal.compaction import Segment, next_segment, without
from upgraderun_operator.journal.errors import JournalBroken
from upgraderun_operator.journal.facts import Facts, Wait
from upgraderun_operator.journal.folding import run_state
from upgraderun_operator.journal.projection import project
from upgraderun_operator.journal.run import RunView
from upgraderun_operator.journal.state import RunState
from upgraderun_operator.journal.writes import (
    KEEP,
    Change,
    Contradicted,
    EpochFell,
    Full,
    Keep,
    Placed,
)
from upgraderun_protocol.entries import EntryError
from upgraderun_protocol.limits import KIB, STATUS_HARD_BYTES, STATUS_SOFT_BYTES

END_RESERVE_BYTES: Final = 16 * KIB
"""What the hard bound leaves for the entries that end a run (`end`, `outcome`, `finalized`)."""
_ENDING: Final = frozenset({"end", "outcome", "finalized"})


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bytes of the status: above `soft` entries move out, above `hard` nothing is added."""

    soft: int = STATUS_SOFT_BYTES
    hard: int = STATUS_HARD_BYTES


@dataclass(frozen=True, slots=True)
class Planned:
    """The object to PUT, if `body` isn't None; journal and state as they will stand.

    `segment`: entries that should leave the status; store it, then plan again with `moved`. With
    `must_move` the body may not be written as it is. `refreshed`: only projections differ.
    """

    body: dict[str, Any] | None
    journal: LoadedJournal
    state: RunState
    placed: tuple[Placed, ...]
    segment: Segment | None = None
    must_move: bool = False
    refreshed: bool = False


PlanResult = Planned | Full | Contradicted | EpochFell


def plan(
    view: RunView,
    change: Change,
    *,
    now: str,
    write: dict[str, str],
    bounds: Bounds,
    moved: Segment | None = None,
) -> PlanResult:
    """Compute one write. `moved` is a segment of this very version that stands in the store.

    A change after which the status would be the same, mark apart, gives `body` None.
    """
    epoch = view.state.epoch if change.epoch is None else change.epoch
    if epoch < view.state.epoch:
        return EpochFell(epoch, view)
    start = view.journal if moved is None else without(view.journal, moved)
    stamp = Stamp(now, epoch, view.state.tag)
    try:
        journal, placed = append(start, change.drafts, stamp)
        state = view.state if journal.fold is view.journal.fold else run_state(journal.fold)
    except (EntryError, JournalBroken) as error:
        return Contradicted(str(error), view)
    facts = _changed(view.facts, change, view.state, state)
    status = project(replace(view, journal=journal, state=state, facts=facts), now)
    size = _size(status, journal)
    status["journal"] = encode(journal, size)
    if _same(view.status, status):
        return Planned(None, journal, state, placed)
    segment = None if moved else next_segment(view.journal, view.uid, size, bounds.soft)
    too_big = _is_too_big(size, placed, bounds)
    if too_big and segment is None:
        return Full(size, view)
    return Planned(
        body={**view.raw, "status": {**status, "write": write}},
        journal=journal,
        state=state,
        placed=placed,
        segment=segment,
        must_move=too_big,
        refreshed=state is view.state and facts == view.facts and moved is None,
    )


def _changed(facts: Facts, change: Change, before: RunState, after: RunState) -> Facts:
    """Apply a change to the facts. A stamp belongs to the pod beside it: a new pod has none."""
    leader_epoch = facts.leader_epoch
    if change.leader_epoch is not None and (leader_epoch or 0) < change.leader_epoch:
        leader_epoch = change.leader_epoch
    same_attempt = len(before.attempts) == len(after.attempts)
    same_delivery = len(before.deliveries) == len(after.deliveries)
    return Facts(
        leader_epoch=leader_epoch,
        attempt_lost_at=_fact(facts.attempt_lost_at, change.attempt_lost_at)
        if same_attempt
        else None,
        delivery_lost_at=_fact(facts.delivery_lost_at, change.delivery_lost_at)
        if same_delivery
        else None,
        renewed_at=_fact(facts.renewed_at, change.renewed_at),
        wait=_wait(facts.wait, change.wait),
    )


def _fact(before: str | None, change: str | Keep | None) -> str | None:
    return before if change is KEEP or isinstance(change, Keep) else change


def _wait(before: Wait | None, change: Wait | Keep | None) -> Wait | None:
    return before if change is KEEP or isinstance(change, Keep) else change


def _size(status: dict[str, Any], journal: LoadedJournal) -> int:
    """Bytes of the status without its mark and with `journal.bytes` 0: equal content, equal number."""
    whole = {**status, "journal": encode(journal, 0)}
    return len(json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode())


def _same(stored: Any, status: dict[str, Any]) -> bool:
    return bool({key: value for key, value in stored.items() if key != "write"} == status)


def _is_too_big(size: int, placed: tuple[Placed, ...], bounds: Bounds) -> bool:
    added = [item.entry.kind for item in placed if not item.replayed]
    if not added:
        return False
    reserve = END_RESERVE_BYTES if _ENDING.issuperset(added) else 0
    return size > bounds.hard + reserve
