"""Everything that a pass may do: a closed union of frozen values (house style, point 2).

`decide` picks one, `perform` and `finalize` carry it out and decide nothing. Each has a row in
`upgraderun_protocol.effects`, whose name the table of performers gives; appends name theirs themselves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from upgraderun_operator.build.events import EventText
from upgraderun_operator.decide.views import ReportView, RepositoryLeaseView
from upgraderun_operator.journal.guards import Guard
from upgraderun_operator.journal.writes import Change
from upgraderun_operator.model.report import ReportContent
from upgraderun_protocol.ids import PodUid

Manifest = Mapping[str, Any]
AppendName = Literal["append", "request", "grant", "outcome", "finalized"]
"""Rows of the table of effects that are appends; `append` is every one without a name of its own."""


@dataclass(frozen=True, slots=True)
class Append:
    """Append to the journal and set facts, in one guarded write; artifacts are stored before.

    `name` is its row in the table of effects; `records` the row that this write records.
    `same_wish`: the write is dropped if the spec's generation isn't the decided one.
    """

    change: Change
    guards: tuple[Guard, ...]
    blobs: tuple[bytes, ...] = ()
    events: tuple[EventText, ...] = ()
    name: AppendName = "append"
    records: str | None = None
    same_wish: bool = False


@dataclass(frozen=True, slots=True)
class TakeRepositoryLease:
    """Hold the repository for this run; `seen` is what the compare-and-set rests on."""

    url: str
    holder: str
    seen: RepositoryLeaseView


@dataclass(frozen=True, slots=True)
class ReleaseRepositoryLease:
    """Give the repository back. `frozen`: the run's target, kept on the Lease while it waits."""

    holder: str
    frozen: str | None
    seen: RepositoryLeaseView


@dataclass(frozen=True, slots=True)
class CreateClaim:
    """Make the workspace volume."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class CreateRunLease:
    """Make the run Lease, held by nobody yet."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class CreateRunnerPod:
    """Make the pod of an attempt, whose intent is journaled."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class CreatePublisherPod:
    """Make the pod of a delivery, whose intent is journaled."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete one pod of ours by name and UID; absent is done."""

    name: str
    uid: PodUid


@dataclass(frozen=True, slots=True)
class DeleteClaim:
    """Delete the workspace volume by name and UID; absent is done."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class DeleteRunLease:
    """Delete the run Lease by name and UID; absent is done."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class WriteReport:
    """Create the UpgradeReport, or replace the one that was seen."""

    content: ReportContent
    seen: ReportView | None


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Hold the run object until what stands outside is accounted for (DESIGN §3).

    `raw` is the object as read: the write names its version and UID.
    """

    raw: Manifest = field(repr=False)


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Let the run object go. `raw` is the object as read: the write names its version and UID."""

    raw: Manifest = field(repr=False)


@dataclass(frozen=True, slots=True)
class Announce:
    """Create an Event; its name is computed, so a second creation changes nothing."""

    event: EventText


Effect = (
    Append
    | TakeRepositoryLease
    | ReleaseRepositoryLease
    | CreateClaim
    | CreateRunLease
    | CreateRunnerPod
    | CreatePublisherPod
    | DeletePod
    | DeleteClaim
    | DeleteRunLease
    | WriteReport
    | AddFinalizer
    | RemoveFinalizer
    | Announce
)
