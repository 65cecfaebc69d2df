"""The only door to status: compare-and-set with guards, projections and our own mark.

    newest view ── guards ── change ── PUT (resourceVersion, UID, write.id) ── Done
        ^             |                        |
        |             | failed on a view that  | 409, or no answer: unknown
        |             v wasn't just read       v
        └── quorum read from the API server itself: own write.id there? then Done

Never the same body with a newer resourceVersion: after each read guards are evaluated and the
change is computed again, at most WRITE_TRIES PUTs (runner-protocol.md §1.3, DESIGN §6a). Writes of
one run queue up inside a process, so that it doesn't contend with itself. Callers: by protocol,
everyone who writes a run; `main` makes one.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Protocol
from weakref import WeakValueDictionary

from upgraderun_operator.adapters.ports import Clock
from upgraderun_operator.adapters.runs import RunReader
from upgraderun_operator.answers import (
    Conflict,
    Denied,
    KubeObject,
    NotFound,
    Ok,
    PutAnswer,
    PutArtifactAnswer,
    Stored,
    Unknown,
)
from upgraderun_operator.journal.broken import broken_status
from upgraderun_operator.journal.compaction import Segment
from upgraderun_operator.journal.facts import facts_of
from upgraderun_operator.journal.guards import Guard, first_failure
from upgraderun_operator.journal.planning import Bounds, Planned, PlanResult, plan
from upgraderun_operator.journal.run import RunView
from upgraderun_operator.journal.writes import (
    Broken,
    Change,
    ChangeOf,
    Contended,
    Contradicted,
    Done,
    EpochFell,
    Gone,
    GuardFailed,
    Unavailable,
    WriteResult,
)
from upgraderun_operator.resources import UPGRADE_RUNS, Resource
from upgraderun_protocol.bundle import RunRef
from upgraderun_protocol.ids import ResourceVersion, RunUid

WRITE_TRIES: Final = 5


class StatusClient(Protocol):
    """The part of the client that writing needs."""

    async def put_status(self, resource: Resource, body: KubeObject) -> PutAnswer:
        """Replace a status at the resourceVersion and UID that the body names."""
        ...


class SegmentStore(Protocol):
    """The part of the store that compaction needs: put, which reads back before it answers."""

    async def put_bytes(self, run_uid: RunUid, data: bytes) -> PutArtifactAnswer:
        """Store bytes under their digest."""
        ...


@dataclass(slots=True)
class WriterCounts:
    """What the writer did, for metrics. Only grows."""

    writes: int = 0
    appended: int = 0
    conflicts: int = 0
    lost_answers: int = 0
    refreshed: int = 0
    segments: int = 0


@dataclass(frozen=True, slots=True)
class _Lost:
    """A PUT whose fate is unknown, by the mark it carried."""

    planned: Planned
    write_id: str


class StatusWriter:
    """`guarded_write` for every caller of one process. `by` names the process in `write.by`."""

    def __init__(
        self,
        client: StatusClient,
        reader: RunReader,
        store: SegmentStore,
        clock: Clock,
        by: str,
        bounds: Bounds | None = None,
    ) -> None:
        self._client = client
        self._reader = reader
        self._store = store
        self._clock = clock
        self._by = by
        self._bounds = bounds or Bounds()
        self._locks: WeakValueDictionary[RunUid, asyncio.Lock] = WeakValueDictionary()
        self.counts = WriterCounts()

    async def guarded_write(
        self, run: RunRef, guards: Iterable[Guard], change: Change | ChangeOf
    ) -> WriteResult:
        """Write a change if the guards hold on the version that is written. See the module.

        May be repeated by the caller with the same arguments: entries are then replays.
        """
        lock = self._locks.setdefault(run.uid, asyncio.Lock())
        async with lock:
            return await self._write(run, tuple(guards), _as_function(change))

    async def mark_broken(self, broken: Broken) -> Unavailable | None:
        """Tell people that a journal can't be used; the journal stays as it is. None: it is told."""
        raw = broken.raw
        now = _rfc3339(self._clock.now())
        status = broken_status(
            raw.get("status") or {},
            broken.message,
            too_new=broken.too_new,
            generation=int(raw["metadata"].get("generation", 0)),
            now=now,
        )
        if status is None:
            return None
        status["write"] = {"id": self._clock.new_id(), "by": self._by}
        answer = await self._client.put_status(UPGRADE_RUNS, {**raw, "status": status})
        return None if isinstance(answer, Ok | NotFound) else Unavailable(str(answer))

    async def _write(self, run: RunRef, guards: tuple[Guard, ...], change: ChangeOf) -> WriteResult:
        lost: list[_Lost] = []
        view = self._reader.newest(run.uid)
        fresh = False
        while True:
            if view is None:
                found = await self._reader.read_ref(run)
                if not isinstance(found, RunView):
                    return found
                view, fresh = found, True
            for earlier in lost:
                if _stands(earlier, view):
                    return Done(view, earlier.planned.placed, wrote=True)
            result = await self._try(view, guards, change, lost)
            if isinstance(result, GuardFailed | EpochFell | Contradicted) and not fresh:
                view = None
                continue
            if result is not None:
                return result
            view, fresh = None, False

    async def _try(
        self, view: RunView, guards: tuple[Guard, ...], change: ChangeOf, lost: list[_Lost]
    ) -> WriteResult | None:
        """Evaluate, compute, PUT. None: its fate is unknown, read and try again."""
        failure = first_failure(guards, view)
        if failure is not None:
            return GuardFailed(failure, view)
        planned = await self._plan(view, change(view))
        if not isinstance(planned, Planned):
            return planned
        if planned.body is None:
            return Done(view, planned.placed, wrote=False)
        if len(lost) == WRITE_TRIES:
            return Contended()
        return await self._put(view, planned, planned.body, lost)

    async def _plan(self, view: RunView, change: Change) -> PlanResult | Unavailable:
        """Plan a write, moving closed entries to a stored segment first where that is due."""
        now = _rfc3339(self._clock.now())
        write = {"id": self._clock.new_id(), "by": self._by}
        planned = plan(view, change, now=now, write=write, bounds=self._bounds)
        if not isinstance(planned, Planned) or planned.segment is None:
            return planned
        segment = planned.segment
        stored = await self._store_segment(view, segment)
        if isinstance(stored, Stored):
            return plan(view, change, now=now, write=write, bounds=self._bounds, moved=segment)
        if planned.must_move:
            return Unavailable(f"the status is full and its segment can't be stored: {stored}")
        return planned

    async def _store_segment(self, view: RunView, segment: Segment) -> PutArtifactAnswer:
        stored = await self._store.put_bytes(view.uid, segment.data)
        if isinstance(stored, Stored):
            self._reader.remember_segment(segment.name, segment.data)
            self.counts.segments += 1
        return stored

    async def _put(
        self, view: RunView, planned: Planned, body: dict[str, Any], lost: list[_Lost]
    ) -> WriteResult | None:
        match await self._client.put_status(UPGRADE_RUNS, body):
            case Ok(raw):
                return self._done(view, planned, raw)
            case Conflict():
                # An earlier copy of this PUT may have won: the library resends on a stale
                # connection. The mark tells.
                self.counts.conflicts += 1
            case Unknown():
                self.counts.lost_answers += 1
            case NotFound():
                self._reader.forget(view.uid)
                return Gone()
            case Denied(status, message):
                return Unavailable(f"the API server refused the status: {status} {message}")
        lost.append(_Lost(planned, body["status"]["write"]["id"]))
        return None

    def _done(self, view: RunView, planned: Planned, raw: KubeObject) -> Done:
        """Keep what was written as the newest view; the server's answer has its version."""
        written = replace(
            view,
            resource_version=ResourceVersion(raw["metadata"]["resourceVersion"]),
            raw=raw,
            journal=planned.journal,
            state=planned.state,
            facts=facts_of(raw["status"]),
        )
        self._reader.remember(written)
        self.counts.writes += 1
        self.counts.appended += sum(not item.replayed for item in planned.placed)
        self.counts.refreshed += planned.refreshed
        return Done(written, planned.placed, wrote=True)


def _as_function(change: Change | ChangeOf) -> ChangeOf:
    return (lambda _: change) if isinstance(change, Change) else change


def _stands(lost: _Lost, view: RunView) -> bool:
    """Whether a write whose answer was lost, or refused as late, stands in what was read.

    Its mark is there; or, if somebody wrote after it, exactly its entries are.
    """
    mark = view.status.get("write")
    if isinstance(mark, dict) and mark.get("id") == lost.write_id:
        return True
    ours = [item.entry for item in lost.planned.placed if not item.replayed]
    there = list(view.state.fold)
    return bool(ours) and there[ours[0].seq - 1 : ours[-1].seq] == ours


def _rfc3339(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
