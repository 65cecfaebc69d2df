"""Live reads of runs, folded: one cache of segments and of the newest views that were seen.

Callers: `main` makes one; `writer`, API and observe share it, so what one of them read or wrote is
where the next one starts. Segments are immutable and named by digest: cached without expiry.
"""

from collections import OrderedDict
from typing import Final, Protocol

from upgraderun_operator.answers import (
    Absent,
    Denied,
    GetAnswer,
    GetArtifactAnswer,
    KubeObject,
    NotFound,
    Ok,
    StoreDown,
    Unknown,
)
from upgraderun_operator.journal.errors import JournalError, JournalTooNew
from upgraderun_operator.journal.run import RunView, ref_of, segments_needed, view_of
from upgraderun_operator.journal.writes import Broken, Gone, ReadResult, Unavailable
from upgraderun_operator.resources import UPGRADE_RUNS, Resource
from upgraderun_protocol.bundle import RunRef
from upgraderun_protocol.ids import RunUid, Sha256
from upgraderun_protocol.limits import MIB

VIEWS_MAX: Final = 512
SEGMENT_BYTES_MAX: Final = 16 * MIB


class Getter(Protocol):
    """The part of the client that reading needs."""

    async def get(self, resource: Resource, namespace: str | None, name: str) -> GetAnswer:
        """Read one object, quorum."""
        ...


class Artifacts(Protocol):
    """The part of the store that reading needs."""

    async def get(self, run_uid: RunUid, sha256: Sha256) -> GetArtifactAnswer:
        """Bytes of an artifact."""
        ...


class RunReader:
    """Reads runs by name and folds them; remembers the newest view of each UID."""

    def __init__(self, client: Getter, store: Artifacts) -> None:
        self._client = client
        self._store = store
        self._views: OrderedDict[RunUid, RunView] = OrderedDict()
        self._segments: OrderedDict[Sha256, bytes] = OrderedDict()
        self._segment_bytes = 0

    async def read(self, namespace: str, name: str) -> ReadResult:
        """Read a run from the API server itself. A name may belong to another UID than before."""
        match await self._client.get(UPGRADE_RUNS, namespace, name):
            case Ok(raw):
                return await self.fold(raw)
            case NotFound():
                return Gone()
            case Denied(status, message):
                return Unavailable(f"reading the run: {status} {message}")
            case Unknown(cause):
                return Unavailable(cause)

    async def read_ref(self, ref: RunRef) -> ReadResult:
        """Read exactly this run: another UID under its name is Gone."""
        found = await self.read(ref.namespace, ref.name)
        return Gone() if isinstance(found, RunView) and found.uid != ref.uid else found

    async def fold(self, raw: KubeObject) -> ReadResult:
        """Fold an object that was read elsewhere, such as an item of a list."""
        uid = ref_of(raw).uid
        try:
            segments = await self._load_segments(raw)
            if isinstance(segments, StoreDown):
                return Unavailable(f"artifact store: {segments.cause}")
            view = view_of(raw, segments, self._views.get(uid))
        except JournalError as error:
            return Broken(str(error), isinstance(error, JournalTooNew), raw)
        self.remember(view)
        return view

    def newest(self, uid: RunUid) -> RunView | None:
        """The newest view that this process has seen; resourceVersion makes it safe to write on."""
        return self._views.get(uid)

    def remember(self, view: RunView) -> None:
        """Keep a view, unless a longer journal was seen; finished runs aren't kept."""
        known = self._views.get(view.uid)
        if known is not None and known.state.seq > view.state.seq:
            return
        if view.state.finalized_at is not None:
            self._views.pop(view.uid, None)
            return
        self._views[view.uid] = view
        self._views.move_to_end(view.uid)
        if len(self._views) > VIEWS_MAX:
            self._views.popitem(last=False)

    def forget(self, uid: RunUid) -> None:
        """Drop a run that is gone."""
        self._views.pop(uid, None)

    def remember_segment(self, name: Sha256, data: bytes) -> None:
        """Keep a segment that was just stored."""
        if name in self._segments:
            return
        self._segments[name] = data
        self._segment_bytes += len(data)
        while self._segment_bytes > SEGMENT_BYTES_MAX:
            _, dropped = self._segments.popitem(last=False)
            self._segment_bytes -= len(dropped)

    async def _load_segments(self, raw: KubeObject) -> dict[Sha256, bytes] | StoreDown:
        found: dict[Sha256, bytes] = {}
        uid = ref_of(raw).uid
        for name in segments_needed(raw):
            data = self._segments.get(name)
            if data is None:
                match await self._store.get(uid, name):
                    case bytes() as read:
                        data = read
                        self.remember_segment(name, read)
                    case Absent():
                        # Never a verdict at first sight: a volume shared by replicas may lag.
                        return StoreDown(f"segment {name[:12]} isn't there")
                    case StoreDown() as down:
                        return down
            found[name] = data
        return found
