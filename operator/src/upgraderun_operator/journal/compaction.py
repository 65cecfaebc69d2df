"""Which closed entries leave the status, and the segment that they become (DESIGN §6). Pure.

    stored entries   | closed ... closed | closed | open | ...
                     '- oldest first, ---'
                        until the status is at half its soft bound

A segment is stored and read back before its entries leave (reliability.md §2); the writer does
that. Entries whose id waits for an outcome stay, and everything after them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from upgraderun_operator.journal.codec import Compacted, LoadedJournal, segment_bytes
from upgraderun_protocol.canonical import canonical_json, sha256_of
from upgraderun_protocol.entries import Entry, chain
from upgraderun_protocol.fold import Fold
from upgraderun_protocol.ids import RunUid, Sha256


@dataclass(frozen=True, slots=True)
class Segment:
    """What to store, under which name, and how many entries of the status it takes over."""

    name: Sha256
    data: bytes
    count: int


def next_segment(
    journal: LoadedJournal, run_uid: RunUid, size: int, soft_bytes: int
) -> Segment | None:
    """Choose what to move out of a status of `size` bytes; None if nothing, or too little to pay.

    A quarter of the soft bound must leave at once, so that segments stay few and large.
    """
    if size <= soft_bytes:
        return None
    saved = count = 0
    for entry, stored in zip(journal.entries, journal.stored, strict=True):
        if not _is_closed(journal.fold, entry) or size - saved <= soft_bytes // 2:
            break
        saved += len(canonical_json(stored)) + 1
        count += 1
    if saved < soft_bytes // 4:
        return None
    data = segment_bytes(run_uid, journal.compacted.digest, journal.entries[:count])
    return Segment(sha256_of(data), data, count)


def without(journal: LoadedJournal, segment: Segment) -> LoadedJournal:
    """The same journal with its oldest entries in a segment; fold and head stay equal."""
    moved = journal.entries[: segment.count]
    return LoadedJournal(
        journal.fold,
        journal.entries[segment.count :],
        journal.stored[segment.count :],
        journal.digest,
        Compacted(
            moved[-1].seq,
            chain(journal.compacted.digest, moved),
            (*journal.compacted.segments, segment.name),
        ),
    )


def _is_closed(fold: Fold, entry: Entry) -> bool:
    """Whether nothing more is awaited for the entry's id. A command list is settled by its step."""
    record = fold.record(_settled_by(entry))
    return record is not None and not record.is_open


def _settled_by(entry: Entry) -> str:
    data: Mapping[str, str] = entry.data
    return data["step"] if entry.kind == "commands" else entry.id
