"""Everything that a pass may do: a closed union of frozen values (house style, point 2).

`decide` picks one, `perform` and `finalize` carry it out and decide nothing. Effects whose class
names a `POINT` have fault points `<point>.before|applied|recorded` (upgrade-run.md §14).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from upgraderun_operator.build.events import EventText
from upgraderun_operator.decide.views import ReportView, RepositoryLeaseView
from upgraderun_operator.journal.guards import Guard
from upgraderun_operator.journal.writes import Change
from upgraderun_operator.model.report import ReportContent
from upgraderun_protocol.ids import PodUid

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Append:
    """Append to the journal and set facts, in one guarded write; artifacts are stored before.

    `point` names the fault points around it; `records` the effect that this write records.
    `same_wish`: the write is dropped if the spec's generation isn't the decided one.
    """

    change: Change
    guards: tuple[Guard, ...]
    blobs: tuple[bytes, ...] = ()
    events: tuple[EventText, ...] = ()
    point: str | None = None
    records: str | None = None
    same_wish: bool = False


@dataclass(frozen=True, slots=True)
class TakeRepositoryLease:
    """Hold the repository for this run; `seen` is what the compare-and-set rests on."""

    url: str
    holder: str
    seen: RepositoryLeaseView
    POINT: ClassVar[str] = "repository_lease"


@dataclass(frozen=True, slots=True)
class ReleaseRepositoryLease:
    """Give the repository back. `frozen`: the run's target, kept on the Lease while it waits."""

    holder: str
    frozen: str | None
    seen: RepositoryLeaseView
    POINT: ClassVar[str] = "lease_release"


@dataclass(frozen=True, slots=True)
class CreateClaim:
    """Make the workspace volume."""

    manifest: Manifest
    POINT: ClassVar[str] = "pvc"


@dataclass(frozen=True, slots=True)
class CreateRunLease:
    """Make the run Lease, held by nobody yet."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class CreateRunnerPod:
    """Make the pod of an attempt, whose intent is journaled."""

    manifest: Manifest
    POINT: ClassVar[str] = "runner_pod"


@dataclass(frozen=True, slots=True)
class CreatePublisherPod:
    """Make the pod of a delivery, whose intent is journaled."""

    manifest: Manifest
    POINT: ClassVar[str] = "publisher_pod"


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete one pod of ours by name and UID; absent is done."""

    name: str
    uid: PodUid
    POINT: ClassVar[str] = "cleanup"


@dataclass(frozen=True, slots=True)
class DeleteClaim:
    """Delete the workspace volume by name and UID; absent is done."""

    name: str
    uid: str
    POINT: ClassVar[str] = "cleanup"


@dataclass(frozen=True, slots=True)
class DeleteRunLease:
    """Delete the run Lease by name and UID; absent is done."""

    name: str
    uid: str
    POINT: ClassVar[str] = "cleanup"


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

APPEND_POINTS: Final = ("request", "grant", "outcome")
"""Fault points around appends that are effects themselves."""

POINTS: Final = (
    "repository_lease",
    "pvc",
    "runner_pod",
    "publisher_pod",
    *APPEND_POINTS,
    "cleanup",
    "lease_release",
)
"""Every fault point of the operator."""

POSITIONS: Final = ("before", "applied", "recorded")


def fault_names() -> tuple[str, ...]:
    """Every name that `UPGRADERUN_FAULT` may carry for the operator."""
    return tuple(f"{point}.{position}" for point in POINTS for position in POSITIONS)
