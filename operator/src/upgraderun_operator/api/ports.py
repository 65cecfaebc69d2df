"""What the runner API needs from outside, as protocols; `main` passes the adapters in."""

from collections.abc import AsyncIterable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from upgraderun_operator.answers import (
    GetAnswer,
    GetArtifactAnswer,
    HeadArtifactAnswer,
    KubeObject,
    PutAnswer,
    PutArtifactAnswer,
    Unknown,
)
from upgraderun_operator.journal.guards import Guard
from upgraderun_operator.journal.writes import Change, ChangeOf, ReadResult, WriteResult
from upgraderun_operator.keys import Key
from upgraderun_operator.resources import Resource
from upgraderun_protocol.bundle import RunRef
from upgraderun_protocol.ids import PodUid, RunUid, Sha256


@dataclass(frozen=True, slots=True)
class Identity:
    """Who holds a token, as the API server says: service account and the pod it is bound to."""

    namespace: str
    account: str
    pod_uid: PodUid


class Tokens(Protocol):
    """Reviews of bearer tokens for our audience; `adapters.tokens`."""

    async def review(self, token: str) -> Identity | Unknown | None:
        """Tell who it is; None: not authenticated, or bound to no single pod."""
        ...


class Clock(Protocol):
    """Time."""

    def now(self) -> datetime:
        """Wall clock, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never jumps."""
        ...


class SleepingClock(Protocol):
    """A way to wait."""

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds; cancellable."""
        ...


class Cluster(Protocol):
    """Live reads and the one write on Leases; `adapters.kubernetes`."""

    async def get(self, resource: Resource, namespace: str | None, name: str) -> GetAnswer:
        """Read one object, quorum."""
        ...

    async def put(self, resource: Resource, body: KubeObject) -> PutAnswer:
        """Replace an object at the version and UID that it names."""
        ...


class Runs(Protocol):
    """Live, folded reads; `adapters.runs`."""

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


class Store(Protocol):
    """The artifact store; `adapters.store`."""

    async def put_if_absent(
        self, run_uid: RunUid, sha256: Sha256, chunks: AsyncIterable[bytes]
    ) -> PutArtifactAnswer:
        """Receive bytes under their digest."""
        ...

    async def put_bytes(self, run_uid: RunUid, data: bytes) -> PutArtifactAnswer:
        """Store bytes that are in memory."""
        ...

    async def head(self, run_uid: RunUid, sha256: Sha256) -> HeadArtifactAnswer:
        """Size of an artifact."""
        ...

    async def get(self, run_uid: RunUid, sha256: Sha256) -> GetArtifactAnswer:
        """Bytes of an artifact."""
        ...


class Counters(Protocol):
    """What the API counts; `metrics`."""

    def answered(self, endpoint: str, code: str) -> None:
        """Count one call: code is the HTTP status, or an error code."""
        ...

    def minted(self, purpose: str) -> None:
        """Count a token that is handed to a pod."""
        ...

    def fenced(self, check: str) -> None:
        """Count a call of somebody who isn't the writer, by the check that refused it."""
        ...


class Bell(Protocol):
    """Wakes the leader's work on a run, if this replica leads."""

    def ring(self, key: Key) -> None:
        """Hand the run to the work queue."""
        ...
