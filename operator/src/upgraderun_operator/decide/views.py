"""What of the world a decision may rest on, as values: pods, volumes, Leases, approvals, forge.

Callers: `observe` makes them from live reads, `decide` compares them with the journal. Identity is
the owner's and the object's UID, never a name or a label (reliability.md I2).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from upgraderun_protocol.bundle import EarlierProposals
from upgraderun_protocol.ids import CommitId, PodUid, ResourceVersion, RunUid


@dataclass(frozen=True, slots=True)
class Terminated:
    """How the one container of a pod ended. `message` is its termination message, untrusted."""

    exit_code: int
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why the one container of a pod hasn't started."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PodView:
    """One pod by a live read. `owner_uid` is its controller's UID; times are RFC 3339.

    `container` is None while the kubelet hasn't said anything; "running" while it runs.
    `silent_at`: since when its node says nothing (runner-protocol.md §5.1, *node silent*). `version`
    tells one look from another and decides nothing.
    """

    name: str
    uid: PodUid
    owner_uid: str | None
    created_at: str
    phase: str
    container: Terminated | Waiting | str | None = None
    deleted_at: str | None = None
    disrupted: bool = False
    silent_at: str | None = None
    unschedulable: str | None = None
    version: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ChildView:
    """A volume claim or Lease of a run. `lost` says that a claim's volume is gone."""

    name: str
    uid: str
    owner_uid: str | None
    deleted_at: str | None = None
    lost: bool = False


class Holder(StrEnum):
    """Who has the repository Lease, judged by a live read of the holding run."""

    FREE = "free"
    OURS = "ours"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class RepositoryLeaseView:
    """The repository Lease (DESIGN §7). `holder_name` is `<namespace>/<name>` of the other run.

    `raw` is the object as read, None if it doesn't exist yet: writes name its version and UID. `frozen`: targets `name@version` of frozen,
    unfinished runs of this repository, by run `<namespace>/<name>/<uid>`.
    """

    name: str
    holder: Holder
    holder_name: str = ""
    raw: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    frozen: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ApprovalView:
    """One UpgradeApproval as the API server holds it. `requester` is the approver's claim."""

    name: str
    uid: str
    run_uid: RunUid
    kind: str
    digest: str
    approves: bool
    approver: str
    requester: str | None
    comment: str
    created_at: str


@dataclass(frozen=True, slots=True)
class DestinationView:
    """What the forge says of a repository (upgrade-run.md §12, destination checks).

    `head` is None if the branch doesn't exist; `commit_on_branch` is None if no commit was asked
    for. `may_push` is None where the forge doesn't tell.
    """

    exists: bool
    archived: bool = False
    disabled: bool = False
    branch: str = ""
    head: CommitId | None = None
    commit_on_branch: bool | None = None
    may_push: bool | None = None
    creation_forbidden: str | None = None
    earlier: EarlierProposals | None = None


@dataclass(frozen=True, slots=True)
class DestinationRefused:
    """The forge, or the Secret with its token, said no: `message` names what to mend."""

    message: str


@dataclass(frozen=True, slots=True)
class FoundPull:
    """One pull request of our branch: `ours` if its marker names run and digest."""

    number: int
    state: str
    head: CommitId
    ours: bool


@dataclass(frozen=True, slots=True)
class RemoteView:
    """What stands on the remote for a run: our branch's commit and its pull requests."""

    commit: CommitId | None
    pulls: tuple[FoundPull, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportView:
    """The UpgradeReport that stands there. `outcome` is its first field, `digest` what it shows.

    `message`: the end in whole words; the journal's entry has room for their beginning only.
    """

    uid: str
    owner_uid: str | None
    outcome: str
    digest: str | None
    version: ResourceVersion
    message: str = ""


@dataclass(frozen=True, slots=True)
class Malformed:
    """A stored record breaks its form: the runner's fault, never to be repaired here."""

    message: str
