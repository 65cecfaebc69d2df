"""`UpgradeRun.status.journal` as it is stored: entries, head, and the part that was compacted.

The form of the schema only; reading, verifying and writing is `journal.codec`. Caller: `run_status`.
"""

from typing import Annotated, Final

from pydantic import Field

from upgraderun_operator.model.base import ApiModel, Count, Sha256Text, Timestamp
from upgraderun_protocol.entries import EntryState
from upgraderun_protocol.limits import (
    ENTRY_DATA_KEYS_MAX,
    ENTRY_DATA_VALUE_MAX,
    ENTRY_ID_MAX,
)

ENTRIES_MAX: Final = 2000
"""Smallest entries that fit below the hard bound of the status, rounded down."""

SEGMENTS_MAX: Final = 512


class StoredEntry(ApiModel):
    """One journal record (DESIGN §6). At most 512 bytes; never changed once written."""

    seq: Annotated[int, Field(ge=1)]
    """Number of the entry, dense from 1."""

    id: Annotated[str, Field(min_length=1, max_length=ENTRY_ID_MAX)]
    """Computed name, shared by an intent and its outcome."""

    kind: Annotated[str, Field(min_length=1, max_length=64)]
    """Kind of the entry, one of docs/journal.md."""

    state: EntryState
    """One of intent, done, failed, interrupted or conflict."""

    at: Timestamp
    """When it was written."""

    attempt: Annotated[str, Field(max_length=16)]
    """Writer tag, `a<n>` for runner and `d<n>` for publisher attempts; empty before the first."""

    epoch: Count
    """Fencing number of the writer."""

    data: (
        Annotated[
            dict[str, Annotated[str, Field(max_length=ENTRY_DATA_VALUE_MAX)]],
            Field(max_length=ENTRY_DATA_KEYS_MAX),
        ]
        | None
    ) = None
    """Short facts of the entry."""

    artifacts: Annotated[dict[str, Sha256Text], Field(max_length=ENTRY_DATA_KEYS_MAX)] | None = None
    """Stored artifacts by role, named by SHA-256."""


class JournalHead(ApiModel):
    """Where the journal ends."""

    seq: Count
    """Number of the last entry; 0 for an empty journal."""

    digest: Sha256Text
    """Digest of the chain up to it."""

    epoch: Count
    """Highest epoch in the journal."""


class Compacted(ApiModel):
    """The part of the journal that moved to the artifact store."""

    count: Count
    """Entries in all segments."""

    seq: Count
    """Number of the last of them."""

    digest: Sha256Text
    """Digest of the chain up to it."""

    segments: Annotated[tuple[Sha256Text, ...], Field(max_length=SEGMENTS_MAX)]
    """Segments in order, each named by SHA-256."""


class Journal(ApiModel):
    """The record of everything that was intended and done."""

    format: Annotated[int, Field(ge=1)] | None = None
    """Format of the entries; a newer one than the operator knows stalls the run."""

    entries: Annotated[
        tuple[StoredEntry, ...],
        Field(max_length=ENTRIES_MAX, json_schema_extra={"x-kubernetes-list-type": "atomic"}),
    ] = ()
    """Entries that aren't compacted, in order."""

    head: JournalHead
    """Where the journal ends."""

    compacted: Compacted | None = None
    """The part that moved to the artifact store."""

    bytes: Count
    """Size of the status as last written."""
