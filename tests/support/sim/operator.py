"""One operator process in a simulated world: the real parts of `main.Operator`, without sockets.

Leadership, queue, workers, resync, Lease watch, reconciler and runner API are the product's own. Doubled
are the API server's client, the wire to the forge, and kopf, whose work is to list, watch and hand over keys.
"""

import asyncio
import contextvars
import itertools
from collections.abc import Coroutine, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from aiohttp import streams, web
from aiohttp.http import HttpVersion11, RawRequestMessage
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from support.replicas import Counts
from support.sim.apiserver import ApiServer, SimClient
from support.sim.forge import SimForgeCalls, SimHost
from support.sim.loop import PROGRAM, Killed, Program, SimLoop
from upgraderun_operator import handlers, limits
from upgraderun_operator.adapters.clock import SystemClock
from upgraderun_operator.adapters.forge import GitHubReader
from upgraderun_operator.adapters.forge_tokens import InstallationTokens
from upgraderun_operator.adapters.leader import LeaderLeaseObject
from upgraderun_operator.adapters.lease_watch import LeaseWatch
from upgraderun_operator.adapters.listing import RunListing
from upgraderun_operator.adapters.runs import RunReader
from upgraderun_operator.adapters.store import VolumeStore
from upgraderun_operator.adapters.writer import StatusWriter
from upgraderun_operator.answers import KubeObject, Ok, Unknown
from upgraderun_operator.api.access import Accounts
from upgraderun_operator.api.context import Tools
from upgraderun_operator.api.ports import Identity
from upgraderun_operator.api.run_lease import Sightings
from upgraderun_operator.api.server import RunnerApi
from upgraderun_operator.build.context import BuildOptions
from upgraderun_operator.engine.leadership import Leadership
from upgraderun_operator.engine.queue import WorkQueue
from upgraderun_operator.engine.resync import Resync
from upgraderun_operator.engine.workers import Workers
from upgraderun_operator.keys import Key, News, of_pod
from upgraderun_operator.observe.seen import SeenVersions
from upgraderun_operator.observe.world import World
from upgraderun_operator.operating import build_reconciler
from upgraderun_operator.resources import PODS, UPGRADE_APPROVALS, UPGRADE_RUNS, Resource
from upgraderun_protocol.effects import FaultPoint
from upgraderun_protocol.ids import Epoch, PodUid
from upgraderun_protocol.redact import Redactor

NAMESPACE: Final = "upgraderun"
API_URL: Final = "http://operator.example"
RUNNER: Final = "upgraderun-runner"
PUBLISHER: Final = "upgraderun-publisher"
WORKERS: Final = 2


class SimSystemClock(SystemClock):
    """The operator's clock on the world's time; ids count upwards."""

    def __init__(self, loop: SimLoop, ids: "itertools.count[int]") -> None:
        self._loop = loop
        self._ids = ids

    def now(self) -> datetime:
        return self._loop.now()

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def new_id(self) -> str:
        return f"{next(self._ids):032x}"


class Answer(NamedTuple):
    """An answer of the runner API."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Protocol:
    """What a request asks of its connection."""

    ssl_context = None
    peername = None
    sockname = None
    _reading_paused = False

    def pause_reading(self) -> None:
        """Bodies are there whole."""

    def resume_reading(self, **_options: bool) -> None:
        """As above."""


class PodTokens:
    """Who holds a token: it names the pod, whose live object names account and namespace."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    async def review(self, token: str) -> Identity | Unknown | None:
        """Tell who it is, as long as the pod is there."""
        await asyncio.sleep(0)
        for pod in self._server.items(PODS):
            if token == f"pod:{pod['metadata']['uid']}":
                account = pod["spec"]["serviceAccountName"]
                return Identity(
                    pod["metadata"]["namespace"], account, PodUid(pod["metadata"]["uid"])
                )
        return None


class _Passes:
    """Counts nothing, but keeps what is a bug."""

    def __init__(self) -> None:
        self.bugs = 0
        self.passes = 0

    def reconciled(self, seconds: float, result: str) -> None:
        """Note one pass."""
        del seconds
        self.passes += 1
        self.bugs += result == "bug"


class SimOperator:
    """One process. All it knows is gone when it is killed; the Deployment starts another one."""

    def __init__(
        self,
        loop: SimLoop,
        server: ApiServer,
        host: SimHost,
        store: Path,
        fault: FaultPoint,
        ids: "itertools.count[int]",
        number: int,
    ) -> None:
        self.program = Program(f"operator-{number}")
        self._context = contextvars.copy_context()
        self._context.run(PROGRAM.set, self.program)
        self._loop = loop
        clock = SimSystemClock(loop, ids)
        self.client = SimClient(server)
        self.passes = _Passes()
        self.counts = Counts()
        self._queue: WorkQueue[Key] = WorkQueue(
            clock,
            backoff_first=limits.BACKOFF_FIRST_SECONDS,
            backoff_max=limits.BACKOFF_MAX_SECONDS,
        )
        identity = self.program.name
        lease = LeaderLeaseObject(self.client, clock, NAMESPACE, "upgraderun-operator")
        self.leadership = Leadership(lease, identity, clock, self._on_leadership)
        artifacts = VolumeStore(store, clock)
        reader = RunReader(self.client, artifacts)
        writer = StatusWriter(self.client, reader, artifacts, clock, identity)
        calls = SimForgeCalls(host)
        tokens = InstallationTokens(calls, clock)
        redactor = Redactor()
        options = BuildOptions(NAMESPACE, API_URL, "", RUNNER, PUBLISHER, allow_inline=True)
        world = World(
            cluster=self.client,
            runs=reader,
            writer=writer,
            artifacts=artifacts,
            forge=GitHubReader(calls),
            tokens=tokens,
            clock=clock,
            leader=self.leadership,
            redactor=redactor,
            options=lambda: options,
            identity=identity,
            fault=fault,
        )
        self._reconciler = build_reconciler(world, lambda *_: None, lambda *_: None)
        self._seen: SeenVersions = self._reconciler.seen_versions
        self._resync = Resync(
            RunListing(self.client, ()),
            self._queue,
            clock,
            is_leader=lambda: self.leadership.epoch is not None,
            show_conflicts=lambda _: None,
        )
        sightings = Sightings()
        self._leases = LeaseWatch(self.client, clock, sightings)
        tools = Tools(
            cluster=self.client,
            runs=reader,
            writer=writer,
            store=artifacts,
            clock=clock,
            counters=self.counts,
            bell=self,
            tokens=tokens,
            fault=fault,
        )
        accounts = Accounts(RUNNER, PUBLISHER)
        self._api = RunnerApi(tools, PodTokens(server), accounts, redactor, sightings).application()
        self._workers = Workers(
            self._queue,
            self._reconciler.reconcile,
            count=WORKERS,
            monotonic=clock.monotonic,
            metrics=self.passes,
            redactor=redactor,
        )

    def start(self) -> None:
        """Start all that a process runs in the background."""
        for work in (
            self.leadership.run(),
            self._workers.run(),
            self._resync.run(),
            self._leases.run(),
            self._watch(UPGRADE_RUNS),
            self._watch(UPGRADE_APPROVALS),
            self._watch(PODS, handlers.RUN_LABEL),
        ):
            self._spawn(work)

    def bugs(self) -> list[str]:
        """Passes and calls that ended by an error which nobody foresaw."""
        internal = [endpoint for endpoint, code in self.counts.answers if code == "internal"]
        return [f"{endpoint} ended by a bug" for endpoint in ["pass"] * self.passes.bugs + internal]

    def ring(self, key: Key) -> None:
        """Queue a run; called by the API."""
        self._spawn(self._queue.add(key))

    async def serve(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> Answer | None:
        """Answer one request; None if the process dies over it."""
        task = self._spawn(self._serve(method, target, headers, body))
        await asyncio.wait({task})
        if task.cancelled() or isinstance(task.exception(), Killed):
            return None
        answer: Answer = task.result()
        return answer

    async def _serve(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> Answer:
        protocol: Any = _Protocol()
        payload = streams.StreamReader(protocol, 2**16, loop=self._loop)
        if body:
            payload.feed_data(body)
        payload.feed_eof()
        message = RawRequestMessage(
            method,
            target,
            HttpVersion11,
            CIMultiDictProxy(CIMultiDict(headers)),
            (),
            should_close=False,
            compression=None,
            upgrade=False,
            chunked=False,
            url=URL(target),
        )
        nobody: Any = None
        request = web.Request(message, payload, protocol, nobody, nobody, self._loop)
        match = await self._api.router.resolve(request)
        match.add_app(self._api)
        request._match_info = match
        answer = await match.handler(request)
        assert isinstance(answer, web.Response)
        found = answer.body if isinstance(answer.body, bytes | bytearray) else b""
        said = {
            "content-length": str(len(found)),
            **{k.lower(): v for k, v in answer.headers.items()},
        }
        return Answer(answer.status, said, bytes(found))

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start a task that dies with the process."""
        task: asyncio.Task[Any] = self._context.run(self._loop.create_task, work)
        return task

    async def _on_leadership(self, epoch: Epoch | None) -> None:
        if epoch is not None:
            self._resync.ring()

    async def _watch(self, resource: Resource, labels: str = "") -> None:
        """What kopf does for the handlers: list, tell, watch, tell, again."""
        fields = "status.finished!=true" if resource is UPGRADE_RUNS else ""
        while True:
            answer = await self.client.list(resource, labels=labels, fields=fields)
            assert isinstance(answer, Ok)
            for raw in answer.value.items:
                await self._tell(resource, "", raw)
            version = answer.value.resource_version
            async for event in self.client.watch(
                resource, None, resource_version=version, labels=labels
            ):
                await self._tell(resource, event.type, event.object)

    async def _tell(self, resource: Resource, what: str, raw: KubeObject) -> None:
        """Hand a key over, as the handlers of that kind do."""
        metadata = raw["metadata"]
        gone = what == "DELETED"
        version = None if gone else str(metadata["resourceVersion"])
        namespace = metadata["namespace"]
        if resource is UPGRADE_RUNS:
            news = News(version, "journal" not in (raw.get("status") or {}))
            await self._hand(Key(namespace, metadata["name"]), news)
        elif resource is UPGRADE_APPROVALS:
            await self._hand(Key(namespace, raw["spec"]["runRef"]["name"]), News())
        else:
            news = News() if version is None else News(of_pod(version))
            for owner in metadata.get("ownerReferences") or ():
                await self._hand(Key(namespace, owner["name"]), news)

    async def _hand(self, key: Key, news: News) -> None:
        urgent = news.is_new or news.version is None
        moot = partial(self._seen.has, key, news.version)
        await self._queue.add(key, urgent=urgent, moot=moot)
