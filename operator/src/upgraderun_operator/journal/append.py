"""Drafts become entries: replay, epoch rule, bounds, chain (DESIGN §6). Pure.

Callers: `journal.planning` only. All drafts of a change are placed, or none.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from upgraderun_operator.journal.codec import LoadedJournal
from upgraderun_operator.journal.writes import Placed
from upgraderun_protocol.entries import Draft, Entry, chain, entry_from_draft
from upgraderun_protocol.ids import Epoch
from upgraderun_protocol.kinds import check_shape

_TAG: Final = re.compile(r"[ad][1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class Stamp:
    """What every entry of one write says: RFC 3339 time, epoch, tag of the last planned pod."""

    at: str
    epoch: Epoch
    tag: str


def append(
    journal: LoadedJournal, drafts: Sequence[Draft], stamp: Stamp
) -> tuple[LoadedJournal, tuple[Placed, ...]]:
    """Place drafts in order after the journal's entries; a draft that stands already is a replay.

    Raises EntryError (a bound, a shape) or ChainError (contradicts what stands). The epoch was
    compared before: it isn't below the journal's.
    """
    assert stamp.epoch >= journal.fold.epoch
    placed: list[Placed] = []
    added: list[Entry] = []
    fold = journal.fold
    tag = stamp.tag
    for draft in drafts:
        known = fold.replay_of(draft)
        if known is not None:
            placed.append(Placed(known, replayed=True))
            continue
        check_shape(draft)
        tag = _tag_of(draft) or tag
        entry = entry_from_draft(
            draft, seq=fold.seq + 1, at=stamp.at, attempt=tag, epoch=stamp.epoch
        )
        fold = fold.extended((entry,))
        added.append(entry)
        placed.append(Placed(entry, replayed=False))
    if not added:
        return journal, tuple(placed)
    return _extended(journal, added), tuple(placed)


def _extended(journal: LoadedJournal, added: Sequence[Entry]) -> LoadedJournal:
    entries = tuple(added)
    return LoadedJournal(
        journal.fold.extended(entries),
        journal.entries + entries,
        journal.stored + tuple(entry.to_json() for entry in entries),
        chain(journal.digest, entries),
        journal.compacted,
    )


def _tag_of(draft: Draft) -> str | None:
    """Entries about a pod (`a2`, `a2/i5`, `d1/end`) belong to that pod."""
    head = draft.id.partition("/")[0]
    return head if _TAG.fullmatch(head) else None
