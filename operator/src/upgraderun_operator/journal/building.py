"""What is known of a run while its entries are read one by one. Lives for one fold.

Callers: `journal.folding` and the modules that take its entries. Everything here is private to them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from upgraderun_operator.journal.errors import JournalBroken
from upgraderun_operator.journal.records import (
    Admission,
    Base,
    Baseline,
    Conflict,
    Context,
    LossCount,
    Outcome,
    PodRecord,
    Proposal,
    PullRequest,
    Push,
    Request,
    Target,
    Validation,
)
from upgraderun_operator.journal.state import Stage, Usage
from upgraderun_protocol.entries import Entry
from upgraderun_protocol.ids import CommitId, TreeId

T = TypeVar("T")


@dataclass(slots=True)
class Building:
    """What is known after the entries so far. Lives for one fold."""

    admission: Admission | None = None
    attempts: dict[str, PodRecord] = field(default_factory=dict)
    deliveries: dict[str, PodRecord] = field(default_factory=dict)
    base: Base | None = None
    context: Context | None = None
    baseline: Baseline | None = None
    candidate: Target | None = None
    promoting: dict[str, Target] = field(default_factory=dict)
    promoted: Target | None = None
    validation: Validation | None = None
    freezing: dict[str, tuple[CommitId, TreeId]] = field(default_factory=dict)
    proposal: Proposal | None = None
    requests: dict[str, Request] = field(default_factory=dict)
    pushes: dict[str, Push] = field(default_factory=dict)
    pull_requests: dict[str, PullRequest] = field(default_factory=dict)
    outcome: Outcome | None = None
    conflict: Conflict | None = None
    finalized_at: str | None = None
    stage: Stage = Stage.PREPARING
    usage: Usage = field(default_factory=Usage)
    attempt_losses: LossCount = field(default_factory=LossCount)
    delivery_losses: LossCount = field(default_factory=LossCount)
    gave_up_in_row: int = 0

    def pods(self, tag: str) -> dict[str, PodRecord]:
        """The pods of the kind that a tag names."""
        return self.deliveries if tag.startswith("d") else self.attempts


def intended(records: Mapping[str, T], key: str, entry: Entry) -> T:
    """The record that an entry continues. Raises JournalBroken if nothing opened it."""
    try:
        return records[key]
    except KeyError:
        raise JournalBroken(f"entry {entry.seq} {entry.id!r} continues nothing") from None


def target_of(data: Mapping[str, str]) -> Target | None:
    """The upgrade that an entry names whole, if it does."""
    if not {"name", "from", "to"} <= data.keys():
        return None
    return Target(data["name"], data["from"], data["to"])


def commit_of(text: str | None) -> CommitId | None:
    """A commit id, if there is one."""
    return CommitId(text) if text else None


def number_of(entry: Entry) -> int:
    """The last number of an id: 2 of `req/2`."""
    return int(entry.id.rpartition("/")[2])
