"""What observing and performing need from outside, as protocols. `main` passes the adapters in.

Nothing here talks to anybody. `adapters.kubernetes`, `adapters.store`, `adapters.forge`,
`adapters.writer` and `adapters.clock` satisfy these.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from upgraderun_operator.answers import (
    CreateAnswer,
    DeleteAnswer,
    GetAnswer,
    GetArtifactAnswer,
    KubeObject,
    ListAnswer,
    PutAnswer,
    PutArtifactAnswer,
)
from upgraderun_operator.decide.readings import Unreadable
from upgraderun_operator.decide.views import (
    DestinationRefused,
    DestinationView,
    RemoteView,
)
from upgraderun_operator.journal.guards import Guard
from upgraderun_operator.journal.writes import (
    Broken,
    Change,
    ChangeOf,
    ReadResult,
    Unavailable,
    WriteResult,
)
from upgraderun_operator.resources import Resource
from upgraderun_protocol.bundle import RunRef
from upgraderun_protocol.ids import CommitId, Epoch, RunUid, Sha256
from upgraderun_protocol.redact import SecretText


class Clock(Protocol):
    """Time and randomness."""

    def now(self) -> datetime:
        """Wall clock, with zone."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never jumps."""
        ...

    def new_id(self) -> str:
        """32 random hex digits."""
        ...


class Leader(Protocol):
    """Whether this replica may act."""

    @property
    def epoch(self) -> Epoch | None:
        """Epoch of our leadership; None while another replica leads."""
        ...

    def raise_above(self, seen: Epoch) -> None:
        """Ask for an epoch above one that a run remembers; it comes with the next renewal."""
        ...


class Cluster(Protocol):
    """The Kubernetes API as far as it is observed and changed here; `adapters.kubernetes`."""

    async def get(self, resource: Resource, namespace: str | None, name: str) -> GetAnswer:
        """Read one object, quorum."""
        ...

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
    ) -> ListAnswer:
        """Read a whole list, quorum."""
        ...

    async def create(
        self, resource: Resource, namespace: str | None, body: KubeObject
    ) -> CreateAnswer:
        """Create one object."""
        ...

    async def put(self, resource: Resource, body: KubeObject) -> PutAnswer:
        """Replace an object at the resourceVersion and UID that `body` names."""
        ...

    async def delete(
        self, resource: Resource, namespace: str | None, name: str, *, uid: str
    ) -> DeleteAnswer:
        """Delete exactly this object: the UID is a precondition."""
        ...


class Runs(Protocol):
    """Live, folded reads of runs; `adapters.runs`."""

    async def read(self, namespace: str, name: str) -> ReadResult:
        """Read a run from the API server itself."""
        ...


class Writer(Protocol):
    """The only door to status; `adapters.writer`."""

    async def guarded_write(
        self, run: RunRef, guards: Iterable[Guard], change: Change | ChangeOf
    ) -> WriteResult:
        """Append and set facts by compare-and-set."""
        ...

    async def mark_broken(self, broken: Broken) -> Unavailable | None:
        """Tell people that a journal can't be used."""
        ...


class Artifacts(Protocol):
    """The artifact store; `adapters.store`."""

    async def get(self, run_uid: RunUid, sha256: Sha256) -> GetArtifactAnswer:
        """Bytes of an artifact."""
        ...

    async def put_bytes(self, run_uid: RunUid, data: bytes) -> PutArtifactAnswer:
        """Store bytes under their own digest."""
        ...


@dataclass(frozen=True, slots=True)
class ForgeTarget:
    """A repository at a forge, `owner/name`. `token` None: ask without one.

    `account` names whose rate limit is spent. A `minted` token reads only. Unless something is to
    be published, only repository and branch are asked for.
    """

    api_url: str
    repository: str
    token: str | None = field(repr=False)
    account: str = ""
    minted: bool = False
    publishes: bool = True


class Purpose(StrEnum):
    """What a minted token is for."""

    LOOK = "look"
    CLONE = "clone"
    PUSH = "push"


@dataclass(frozen=True, slots=True)
class AppGrant:
    """Which App may ask for a token of which repository. `where` names its key's Secret in words.

    `publishes`: a run that pushes later is refused now if the App could never push.
    """

    namespace: str
    api_url: str
    repository: str
    app_id: str
    key: SecretText
    where: str
    publishes: bool


@dataclass(frozen=True, slots=True)
class Minted:
    """A token for one repository, and the key that asked for it."""

    token: SecretText
    expires_at: datetime
    repository: str
    key: SecretText


Before = Callable[[], Awaitable[None]]
"""Counts a mint that is about to happen; what it raises stops it."""


async def nothing_before() -> None:
    """Count nothing: the operator's own looks."""


class ForgeTokens(Protocol):
    """Minting; `adapters.forge_tokens`."""

    async def mint(
        self, app: AppGrant, purpose: Purpose, before: Before = nothing_before
    ) -> Minted | DestinationRefused | Unreadable:
        """Mint a token for exactly that repository; `before` is awaited right before it is made."""
        ...


class ForgeReader(Protocol):
    """Read-only questions to a forge. An unreachable forge is Unreadable, never a verdict."""

    async def destination(
        self, target: ForgeTarget, branch: str | None, commit: CommitId | None
    ) -> DestinationView | DestinationRefused | Unreadable:
        """Look at repository, base branch, rules and earlier proposals of this product."""
        ...

    async def remote(
        self, target: ForgeTarget, branch: str, marker: tuple[str, str]
    ) -> RemoteView | DestinationRefused | Unreadable:
        """Look at our branch and its pull requests; `marker` is (run UID, proposal digest)."""
        ...
