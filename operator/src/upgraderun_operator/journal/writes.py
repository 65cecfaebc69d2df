"""What a guarded write changes, and how it can end. Values only (runner-protocol.md §1.3).

Callers: `perform`, `finalize`, `reconcile` and `api` build a `Change` and match a `WriteResult`;
`adapters.writer` applies one and answers with the other.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from upgraderun_operator.journal.facts import Wait
from upgraderun_operator.journal.guards import GuardFailure
from upgraderun_operator.journal.run import RunView
from upgraderun_protocol.entries import Draft, Entry
from upgraderun_protocol.ids import Epoch


class Keep(Enum):
    """Marks a fact that a change leaves alone: None removes it."""

    KEEP = "keep"


KEEP: Final = Keep.KEEP


@dataclass(frozen=True, slots=True)
class Change:
    """Drafts to append, in order, and facts to set; `KEEP` leaves a fact alone, None removes it.

    `epoch`: None appends with the journal's highest epoch (entries of the operator); a writer's
    entries carry its own, which must not be below. `leader_epoch` is raised, never lowered.
    A change that leaves everything as it is writes nothing; projections are always recomputed.
    """

    drafts: tuple[Draft, ...] = ()
    epoch: Epoch | None = None
    leader_epoch: Epoch | None = None
    attempt_lost_at: str | Keep | None = KEEP
    delivery_lost_at: str | Keep | None = KEEP
    renewed_at: str | Keep | None = KEEP
    wait: Wait | Keep | None = KEEP


ChangeOf = Callable[[RunView], Change]
"""A change computed from the very version that is written. Pure; called once per try."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Where one draft of the change stands now. `replayed`: it was there before."""

    entry: Entry
    replayed: bool


@dataclass(frozen=True, slots=True)
class Done:
    """The change stands. `wrote` is False if all of it stood there before: then no request was made.

    `view` is the run as written; `placed` follows the order of the drafts.
    """

    view: RunView
    placed: tuple[Placed, ...]
    wrote: bool


@dataclass(frozen=True, slots=True)
class GuardFailed:
    """The world isn't what the caller decided on. Nothing was written; `view` is what stands."""

    failure: GuardFailure
    view: RunView


@dataclass(frozen=True, slots=True)
class Contended:
    """Five tries met other writers each time. Nothing of ours stands; requeue."""


@dataclass(frozen=True, slots=True)
class Full:
    """The status would pass its hard bound: the run stalls as JournalFull. Nothing was written."""

    bytes: int
    view: RunView


@dataclass(frozen=True, slots=True)
class Contradicted:
    """A draft says something else than the entry that has its id, or breaks a bound."""

    message: str
    view: RunView


@dataclass(frozen=True, slots=True)
class EpochFell:
    """The change's epoch is below the journal's: its writer is fenced."""

    epoch: Epoch
    view: RunView


@dataclass(frozen=True, slots=True)
class Gone:
    """No run of that name and UID."""


@dataclass(frozen=True, slots=True)
class Broken:
    """The stored journal contradicts itself, or, with `too_new`, was written by a later version.

    No write is possible but `StatusWriter.mark_broken`, and no effect may follow. `raw` is the run.
    """

    message: str
    too_new: bool
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Unavailable:
    """API server or store didn't answer: it isn't known whether the change stands.

    Requeue; the same change is then a replay.
    """

    cause: str


WriteResult = (
    Done | GuardFailed | Contended | Full | Contradicted | EpochFell | Gone | Broken | Unavailable
)

ReadResult = RunView | Gone | Broken | Unavailable
"""A live read of a run, folded."""
