"""`status.journal` and segments to entries and back; every reading verifies the chain (DESIGN §6).

    status.journal = {format, entries[], head{seq, digest, epoch},
                      compacted{count, seq, digest, segments[]}?, bytes}
    segment        = canonical {format, runUID, first, last, previous, digest, entries[]}

Segments come first, oldest first, then `entries`: together they are dense from 1 and hash to
`head`. Callers: `journal.run`, `journal.append`, `journal.compaction`. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from upgraderun_operator.journal.errors import JournalBroken, JournalTooNew
from upgraderun_protocol.canonical import canonical_json, is_sha256, sha256_of
from upgraderun_protocol.entries import GENESIS, Entry, EntryError, chain, entry_from_json
from upgraderun_protocol.fold import Fold
from upgraderun_protocol.ids import RunUid, Sha256
from upgraderun_protocol.kinds import KINDS, check_shape
from upgraderun_protocol.limits import ENTRY_FORMAT
from upgraderun_protocol.records import RecordError, parse_json


@dataclass(frozen=True, slots=True)
class Compacted:
    """The part that left the status: entries up to `seq`, chain digest there, segments."""

    seq: int
    digest: Sha256
    segments: tuple[Sha256, ...]


NOTHING_COMPACTED = Compacted(0, GENESIS, ())


@dataclass(frozen=True, slots=True)
class LoadedJournal:
    """A verified journal.

    `stored` and `entries` are what status holds, raw and decoded; `fold` has every entry, segments
    included; `digest` is the head of the chain.
    """

    fold: Fold
    entries: tuple[Entry, ...]
    stored: tuple[Mapping[str, Any], ...]
    digest: Sha256
    compacted: Compacted


EMPTY = LoadedJournal(Fold(), (), (), GENESIS, NOTHING_COMPACTED)


def segment_names(block: object) -> tuple[Sha256, ...]:
    """Segments that a stored journal names, oldest first. Raises JournalBroken."""
    return _compacted(block).segments if isinstance(block, Mapping) else ()


def load(
    block: object,
    segments: Mapping[Sha256, bytes],
    run_uid: RunUid,
    known: LoadedJournal | None = None,
) -> LoadedJournal:
    """Decode and verify.

    `known`, an earlier load of the same run, isn't verified again where the stored entries are
    equal to it; it is returned itself if nothing changed.

    Raises JournalBroken, JournalTooNew; KeyError for a segment that wasn't given.
    """
    if block is None:
        return EMPTY
    if not isinstance(block, Mapping):
        raise JournalBroken("status.journal is no object")
    _refuse_newer(block.get("format", ENTRY_FORMAT), "status.journal")
    compacted = _compacted(block)
    stored = _stored(block)
    try:
        journal = _continue(known, stored, compacted)
        if journal is None:
            journal = _from_scratch(stored, compacted, segments, run_uid)
    except EntryError as error:
        raise JournalBroken(str(error)) from error
    _check_head(block.get("head"), journal)
    return journal


def encode(journal: LoadedJournal, size: int) -> dict[str, Any]:
    """Write `status.journal`; `size` is the size of the whole status with `bytes` set to 0."""
    block: dict[str, Any] = {
        "format": ENTRY_FORMAT,
        "entries": list(journal.stored),
        "head": {
            "seq": journal.fold.seq,
            "digest": journal.digest,
            "epoch": journal.fold.epoch,
        },
        "bytes": size,
    }
    if journal.compacted.segments:
        block["compacted"] = {
            "count": journal.compacted.seq,
            "seq": journal.compacted.seq,
            "digest": journal.compacted.digest,
            "segments": list(journal.compacted.segments),
        }
    return block


def segment_bytes(run_uid: RunUid, previous: Sha256, entries: Sequence[Entry]) -> bytes:
    """Write a segment: immutable, named by the SHA-256 of these bytes."""
    assert entries
    return canonical_json(
        {
            "format": ENTRY_FORMAT,
            "runUID": run_uid,
            "first": entries[0].seq,
            "last": entries[-1].seq,
            "previous": previous,
            "digest": chain(previous, entries),
            "entries": [entry.to_json() for entry in entries],
        }
    )


def _continue(
    known: LoadedJournal | None, stored: tuple[Mapping[str, Any], ...], compacted: Compacted
) -> LoadedJournal | None:
    """Extend a known journal, if the stored one continues it without another compaction."""
    if known is None or known.compacted != compacted:
        return None
    count = len(known.stored)
    if stored[:count] != known.stored:
        return None
    if len(stored) == count:
        return known
    added = tuple(_entry(value) for value in stored[count:])
    return LoadedJournal(
        known.fold.extended(added),
        known.entries + added,
        stored,
        chain(known.digest, added),
        compacted,
    )


def _from_scratch(
    stored: tuple[Mapping[str, Any], ...],
    compacted: Compacted,
    segments: Mapping[Sha256, bytes],
    run_uid: RunUid,
) -> LoadedJournal:
    fold = Fold()
    digest = GENESIS
    for name in compacted.segments:
        digest = _add_segment(fold, digest, name, segments[name], run_uid)
    if (fold.seq, digest) != (compacted.seq, compacted.digest):
        raise JournalBroken(
            f"segments end at seq {fold.seq}, digest {digest}; "
            f"status says {compacted.seq}, {compacted.digest}"
        )
    entries = tuple(_entry(value) for value in stored)
    for entry in entries:
        fold.add(entry)
    return LoadedJournal(fold, entries, stored, chain(digest, entries), compacted)


def _add_segment(fold: Fold, digest: Sha256, name: Sha256, data: bytes, run_uid: RunUid) -> Sha256:
    where = f"segment {name[:12]}"
    if sha256_of(data) != name:
        raise JournalBroken(f"{where}: its bytes have another digest")
    try:
        value = parse_json(data)
    except RecordError as error:
        raise JournalBroken(f"{where}: {error}") from error
    if not isinstance(value, Mapping) or not isinstance(value.get("entries"), list):
        raise JournalBroken(f"{where}: no entries")
    _refuse_newer(value.get("format"), where)
    if value.get("runUID") != run_uid or value.get("previous") != digest:
        raise JournalBroken(f"{where}: belongs to another run, or doesn't follow the one before")
    entries = tuple(_entry(item) for item in value["entries"])
    for entry in entries:
        fold.add(entry)
    return chain(digest, entries)


def _entry(value: object) -> Entry:
    if not isinstance(value, Mapping):
        raise JournalBroken("an entry is no object")
    entry = entry_from_json(value)
    row = KINDS.get(entry.kind)
    if row is None or entry.state not in row.shapes:
        raise JournalTooNew(
            f"entry {entry.seq} is of kind {entry.kind!r}, state {entry.state.value!r}: "
            "unknown to this version"
        )
    check_shape(entry.draft)
    return entry


def _refuse_newer(version: object, where: str) -> None:
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise JournalBroken(f"{where}: format {version!r}")
    if version > ENTRY_FORMAT:
        raise JournalTooNew(f"{where}: format {version}, this version reads {ENTRY_FORMAT}")


def _stored(block: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    entries = block.get("entries", [])
    if not isinstance(entries, list):
        raise JournalBroken("status.journal.entries is no list")
    return tuple(entries)


def _compacted(block: Mapping[str, Any]) -> Compacted:
    part = block.get("compacted")
    if part is None:
        return NOTHING_COMPACTED
    if not isinstance(part, Mapping):
        raise JournalBroken("status.journal.compacted is no object")
    names, seq, digest = part.get("segments"), part.get("seq"), part.get("digest")
    if (
        not isinstance(names, list)
        or not isinstance(seq, int)
        or part.get("count") != seq
        or not all(isinstance(name, str) and is_sha256(name) for name in [*names, digest])
    ):
        raise JournalBroken("status.journal.compacted is malformed")
    return Compacted(seq, Sha256(str(digest)), tuple(Sha256(name) for name in names))


def _check_head(head: object, journal: LoadedJournal) -> None:
    found = {"seq": journal.fold.seq, "digest": journal.digest, "epoch": journal.fold.epoch}
    if head != found:
        said = _spelled(head) if isinstance(head, Mapping) else "nothing"
        raise JournalBroken(
            f"the entries end at {_spelled(found)}; status.journal.head says {said}"
        )


def _spelled(head: Mapping[str, object]) -> str:
    """A head for people; the beginning of a digest is enough to compare."""
    digest = str(head.get("digest"))[:12]
    return f"seq {head.get('seq')}, epoch {head.get('epoch')}, digest {digest}"
