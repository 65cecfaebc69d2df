"""The journal's record and its chain (DESIGN §6).

`Draft` is what a writer sends, `Entry` what the journal holds. *Content* is the digest of a
draft; the replay key is (id, state): same key and content is a replay, other content a conflict.
The chain d(n) = SHA-256(d(n-1) ‖ canonical entry) is stored as the head only.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from upgraderun_protocol.canonical import canonical_json, digest_of, is_sha256, sha256_of
from upgraderun_protocol.ids import EntryId, Epoch, Sha256
from upgraderun_protocol.limits import (
    ENTRY_BYTES_MAX,
    ENTRY_DATA_KEYS_MAX,
    ENTRY_DATA_VALUE_MAX,
    ENTRY_ID_MAX,
)

GENESIS: Final = Sha256("0" * 64)
"""Head of a journal without entries."""

_ID: Final = re.compile(r"[a-z0-9]+(?:[-/][a-z0-9]+)*")
_KEY: Final = re.compile(r"[a-z][A-Za-z0-9]{0,31}")


class EntryState(StrEnum):
    """What an entry says of its id. All but INTENT are outcomes; the first outcome wins."""

    INTENT = "intent"
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    CONFLICT = "conflict"


class EntryError(ValueError):
    """A draft breaks a bound of the journal; the message names the entry and the bound."""


def _no_data() -> Mapping[str, str]:
    return MappingProxyType({})


def _no_artifacts() -> Mapping[str, Sha256]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry as its writer words it; `seq`, time, attempt and epoch are the journal's to add.

    `data`: ≤ 12 keys of ≤ 256 characters each; `artifacts`: role → digest of a stored artifact.
    Raises EntryError when a bound is broken.
    """

    id: EntryId
    kind: str
    state: EntryState
    data: Mapping[str, str] = field(default_factory=_no_data)
    artifacts: Mapping[str, Sha256] = field(default_factory=_no_artifacts)

    def __post_init__(self) -> None:
        """Refuse what the journal could not hold."""
        where = f"entry {self.id[:ENTRY_ID_MAX]!r}"
        if len(self.id) > ENTRY_ID_MAX or not _ID.fullmatch(self.id):
            raise EntryError(f"{where}: an id has the form 's12/promotion', ≤ {ENTRY_ID_MAX}")
        if not _KEY.fullmatch(self.kind):
            raise EntryError(f"{where}: kind {self.kind[:32]!r} is no name")
        if len(self.data) + len(self.artifacts) > ENTRY_DATA_KEYS_MAX:
            raise EntryError(f"{where}: more than {ENTRY_DATA_KEYS_MAX} keys")
        for key, value in self.data.items():
            if not _KEY.fullmatch(key) or len(value) > ENTRY_DATA_VALUE_MAX:
                raise EntryError(f"{where}: data.{key[:32]} is longer than {ENTRY_DATA_VALUE_MAX}")
        for role, digest in self.artifacts.items():
            if not _KEY.fullmatch(role) or not is_sha256(digest):
                raise EntryError(f"{where}: artifacts.{role[:32]} is no SHA-256")

    @property
    def content(self) -> Sha256:
        """Digest that tells a replay from a contradiction."""
        return digest_of(
            {
                "id": self.id,
                "kind": self.kind,
                "state": self.state.value,
                "data": dict(self.data),
                "artifacts": dict(self.artifacts),
            }
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """One record of the journal: a draft with its place, time (RFC 3339, UTC) and writer."""

    seq: int
    id: EntryId
    kind: str
    state: EntryState
    at: str
    attempt: str
    epoch: Epoch
    data: Mapping[str, str] = field(default_factory=_no_data)
    artifacts: Mapping[str, Sha256] = field(default_factory=_no_artifacts)

    @property
    def draft(self) -> Draft:
        """What the writer sent."""
        return Draft(self.id, self.kind, self.state, self.data, self.artifacts)

    @property
    def is_outcome(self) -> bool:
        """Whether it settles its id."""
        return self.state is not EntryState.INTENT

    def to_json(self) -> dict[str, object]:
        """Write the form that status and segments hold; empty maps are left out."""
        value: dict[str, object] = {
            "seq": self.seq,
            "id": self.id,
            "kind": self.kind,
            "state": self.state.value,
            "at": self.at,
            "attempt": self.attempt,
            "epoch": self.epoch,
        }
        if self.data:
            value["data"] = dict(self.data)
        if self.artifacts:
            value["artifacts"] = dict(self.artifacts)
        return value

    @property
    def size(self) -> int:
        """Bytes of its canonical form; at most ENTRY_BYTES_MAX."""
        return len(canonical_json(self.to_json()))


def entry_from_draft(draft: Draft, *, seq: int, at: str, attempt: str, epoch: Epoch) -> Entry:
    """Place a draft in the journal. Raises EntryError if it is longer than 512 bytes then."""
    entry = Entry(
        seq, draft.id, draft.kind, draft.state, at, attempt, epoch, draft.data, draft.artifacts
    )
    if entry.size > ENTRY_BYTES_MAX:
        raise EntryError(
            f"entry {draft.id!r} is {entry.size} bytes, at most {ENTRY_BYTES_MAX} fit: "
            "store the long part as an artifact and name its digest"
        )
    return entry


def entry_from_json(value: Mapping[str, object]) -> Entry:
    """Read an entry from status, a segment or the wire. Raises EntryError if it is none."""
    try:
        seq, epoch = value["seq"], value["epoch"]
        texts = {key: value[key] for key in ("id", "kind", "state", "at", "attempt")}
    except KeyError as error:
        raise EntryError(f"an entry without {error.args[0]!r}") from error
    if not isinstance(seq, int) or not isinstance(epoch, int) or isinstance(seq, bool):
        raise EntryError("seq and epoch of an entry are integers")
    if any(not isinstance(text, str) for text in texts.values()):
        raise EntryError(f"entry {seq}: id, kind, state, at and attempt are strings")
    draft = draft_from_json({**value, **texts})
    return entry_from_draft(
        draft, seq=seq, at=str(texts["at"]), attempt=str(texts["attempt"]), epoch=Epoch(epoch)
    )


def draft_from_json(value: Mapping[str, object]) -> Draft:
    """Read what a writer sends: {id, kind, state, data?, artifacts?}. Raises EntryError."""
    try:
        state = EntryState(str(value.get("state")))
    except ValueError as error:
        raise EntryError(f"state {str(value.get('state'))[:32]!r} is none of a journal") from error
    return Draft(
        EntryId(str(value.get("id", ""))),
        str(value.get("kind", "")),
        state,
        _strings(value.get("data", {}), "data"),
        {
            role: Sha256(digest)
            for role, digest in _strings(value.get("artifacts", {}), "artifacts").items()
        },
    )


def _strings(value: object, where: str) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise EntryError(f"{where} of an entry is a map of strings")
    for key, item in value.items():
        if not isinstance(key, str) or not isinstance(item, str):
            raise EntryError(f"{where} of an entry is a map of strings")
    return MappingProxyType(dict(value))


def chain(head: Sha256, entries: Iterable[Entry]) -> Sha256:
    """Extend a chain by entries in order and return the new head."""
    for entry in entries:
        head = sha256_of(head.encode("ascii") + canonical_json(entry.to_json()))
    return head
