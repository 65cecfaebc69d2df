"""Start and stop of the operator: makes every adapter, hands them on, waits for SIGTERM.

Only this module knows all parts. Nothing is decided here.
"""

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import ssl
import sys
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import entry_points
from typing import Any, Final, TypeAlias

import kopf

from upgraderun_operator import handlers, limits
from upgraderun_operator.adapters.certificates import CertificateError, Certificates
from upgraderun_operator.adapters.clock import SystemClock
from upgraderun_operator.adapters.forge import GitHubReader
from upgraderun_operator.adapters.forge_http import ForgeCalls
from upgraderun_operator.adapters.forge_tokens import InstallationTokens
from upgraderun_operator.adapters.kubeconfig import (
    ClusterConfig,
    ConfigError,
    from_kubeconfig,
    in_cluster,
)
from upgraderun_operator.adapters.kubernetes import KubeClient, WriteLimits
from upgraderun_operator.adapters.leader import LeaderLeaseObject
from upgraderun_operator.adapters.lease_watch import LeaseWatch
from upgraderun_operator.adapters.listing import RunListing
from upgraderun_operator.adapters.runs import RunReader
from upgraderun_operator.adapters.store import StoreRefused, VolumeStore
from upgraderun_operator.adapters.tokens import TokenReviews
from upgraderun_operator.adapters.watch_session import open_watch_session
from upgraderun_operator.adapters.writer import StatusWriter
from upgraderun_operator.api.access import Accounts
from upgraderun_operator.api.context import Tools
from upgraderun_operator.api.probes import probe_app
from upgraderun_operator.api.run_lease import Sightings
from upgraderun_operator.api.server import RunnerApi
from upgraderun_operator.api.serving import Site, Tls
from upgraderun_operator.build.context import BuildOptions
from upgraderun_operator.engine.leadership import Leadership
from upgraderun_operator.engine.queue import WorkQueue
from upgraderun_operator.engine.resync import Resync
from upgraderun_operator.engine.space import watch_space
from upgraderun_operator.engine.supervisor import StopFlag, Supervisor
from upgraderun_operator.engine.workers import Workers
from upgraderun_operator.journal.planning import Bounds
from upgraderun_operator.keys import Key, News
from upgraderun_operator.metrics import Metrics
from upgraderun_operator.observe.seen import SeenVersions
from upgraderun_operator.observe.world import World
from upgraderun_operator.operating import build_reconciler
from upgraderun_operator.settings import SettingError, Settings, read_settings
from upgraderun_protocol.effects import FaultPoint, no_fault
from upgraderun_protocol.ids import Epoch
from upgraderun_protocol.redact import Redactor

Tasks: TypeAlias = list[asyncio.Task[None]]
log = logging.getLogger("upgraderun")

RUNNER_ACCOUNT: Final = "upgraderun-runner"
PUBLISHER_ACCOUNT: Final = "upgraderun-publisher"
FAULT_GROUP: Final = "upgraderun.fault"
WATCH_TOKEN_LIFE: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Outside:
    """The adapters of one process, open."""

    clock: SystemClock
    config: ClusterConfig
    client: KubeClient
    forge: GitHubReader
    tokens: InstallationTokens
    store: VolumeStore
    reader: RunReader
    writer: StatusWriter


@contextlib.asynccontextmanager
async def open_outside(settings: Settings) -> AsyncIterator[Outside]:
    """Open clients and store. Raises StoreRefused and ConfigError with what to mend."""
    clock = SystemClock()
    config = from_kubeconfig(settings.kubeconfig) if settings.kubeconfig else in_cluster(os.environ)
    rates = WriteLimits(
        settings.write_rate, settings.write_burst, settings.lease_rate, settings.lease_rate
    )
    trust = ssl.create_default_context()
    if settings.forge_ca is not None:
        trust.load_verify_locations(cafile=str(settings.forge_ca))
    async with (
        KubeClient(config, clock, rates) as client,
        ForgeCalls(trust) as calls,
    ):
        store = VolumeStore(settings.artifacts, clock)
        await store.probe()
        reader = RunReader(client, store)
        bounds = Bounds(soft=settings.status_soft_bytes)
        writer = StatusWriter(client, reader, store, clock, settings.identity, bounds)
        forge, tokens = GitHubReader(calls), InstallationTokens(calls, clock)
        yield Outside(clock, config, client, forge, tokens, store, reader, writer)


class Bell:
    """Hands runs to the work queue, from the API and from kopf's thread."""

    def __init__(self, queue: WorkQueue[Key], seen: SeenVersions) -> None:
        self._queue = queue
        self._seen = seen
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()

    def ring(self, key: Key) -> None:
        """Queue a run; called in the queue's own loop."""
        self._start(self._queue.add(key))

    def tell_from_thread(self, key: Key, news: News) -> None:
        """Queue a run that a watch told of, unless a pass knows it; called from any thread."""
        self._loop.call_soon_threadsafe(self._tell, key, news)

    def _tell(self, key: Key, news: News) -> None:
        """A run that begins, or that must be looked at, goes before those that only wait."""
        moot = partial(self._seen.has, key, news.version)
        urgent = news.is_new or news.version is None
        self._start(self._queue.add(key, urgent=urgent, moot=moot))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class Operator:
    """One replica: serves the runner API always, reconciles while it leads."""

    def __init__(self, settings: Settings, outside: Outside, fault: FaultPoint) -> None:
        clock = outside.clock
        self._settings = settings
        self._outside = outside
        self._fault = fault
        self._metrics = Metrics()
        self._redactor = Redactor()
        self._queue: WorkQueue[Key] = WorkQueue(
            clock,
            backoff_first=limits.BACKOFF_FIRST_SECONDS,
            backoff_max=limits.BACKOFF_MAX_SECONDS,
        )
        self._leadership = Leadership(
            LeaderLeaseObject(outside.client, clock, settings.namespace, settings.lease_name),
            settings.identity,
            clock,
            self._on_leadership,
        )
        names = settings.tls_names
        secret = settings.tls_secret
        pairs = Certificates(outside.client, clock, settings.namespace, secret, names)
        self._tls = Tls(pairs, clock, self._renews_certificate)
        self._resync = Resync(
            RunListing(outside.client, settings.watch_namespaces),
            self._queue,
            clock,
            is_leader=self._leads,
            show_conflicts=self._metrics.show_conflicts,
        )
        self._sightings = Sightings()
        metrics = self._metrics
        self._reconciler = build_reconciler(self._world(fault), metrics.ended, metrics.stands)
        self._bell = Bell(self._queue, self._reconciler.seen_versions)
        self._supervisor = Supervisor(
            self._watch,
            clock,
            jitter=clock.jitter,
            on_restart=self._metrics.watch_restarts.inc,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Serve and work until `stop` is set, then end in order and release the leader Lease."""
        settings = self._settings
        probes = Site(
            probe_app(self._render, lambda: self._tls.is_loaded),
            settings.api_host,
            settings.metrics_port,
        )
        await probes.open()
        leading = [asyncio.create_task(self._leadership.run())]
        serving = [asyncio.create_task(self._tls.run(CertificateError))]
        try:
            await self._serve(stop, leading, serving)
        finally:
            await self._resign(leading)
            self._supervisor.stop()
            await _end(serving)
            await probes.close()

    async def _serve(self, stop: asyncio.Event, leading: Tasks, serving: Tasks) -> None:
        """Serve once there is a certificate; whatever ends by itself ends the process."""
        stopped = asyncio.create_task(stop.wait())
        ready = asyncio.create_task(self._tls.loaded())
        first = asyncio.FIRST_COMPLETED
        await asyncio.wait({stopped, ready, *leading, *serving}, return_when=first)
        if not ready.done():
            ready.cancel()
            stopped.cancel()
            _raise_first([*leading, *serving])
            return
        site = Site(self._api().application(), self._settings.api_host, self._settings.api_port)
        await site.open(self._tls.context)
        log.info("serving the runner API on port %d", self._settings.api_port)
        leading += [asyncio.create_task(work) for work in self._leaders_work()]
        serving += [asyncio.create_task(work) for work in self._watches()]
        await asyncio.wait({stopped, *leading, *serving}, return_when=first)
        stopped.cancel()
        # First, and while pods are still served: the other replica waits for nothing else.
        await self._resign(leading)
        await site.close()
        _raise_first([*leading, *serving])

    async def _resign(self, leading: Tasks) -> None:
        """Stop what only a leader does and give its Lease back. May be repeated."""
        await self._queue.close()
        await _end(leading)
        await self._leadership.release()

    def _leaders_work(self) -> list[Any]:
        workers = Workers(
            self._queue,
            self._reconciler.reconcile,
            count=self._settings.worker_count,
            monotonic=self._outside.clock.monotonic,
            metrics=self._metrics,
            redactor=self._redactor,
        )
        return [workers.run(), self._resync.run()]

    def _watches(self) -> list[Any]:
        namespaces: tuple[str | None, ...] = self._settings.watch_namespaces or (None,)
        client, clock = self._outside.client, self._outside.clock
        leases = [LeaseWatch(client, clock, self._sightings, name).run() for name in namespaces]
        space = watch_space(self._outside.store, clock, self._metrics.show_space)
        return [self._supervisor.run(), space, *leases]

    def _api(self) -> RunnerApi:
        outside = self._outside
        tools = Tools(
            cluster=outside.client,
            runs=outside.reader,
            writer=outside.writer,
            store=outside.store,
            clock=outside.clock,
            counters=self._metrics,
            bell=self._bell,
            tokens=outside.tokens,
            fault=self._fault,
        )
        tokens = TokenReviews(outside.client, outside.clock)
        accounts = Accounts(RUNNER_ACCOUNT, PUBLISHER_ACCOUNT)
        return RunnerApi(tools, tokens, accounts, self._redactor, self._sightings)

    def _world(self, fault: FaultPoint) -> World:
        outside = self._outside
        return World(
            cluster=outside.client,
            runs=outside.reader,
            writer=outside.writer,
            artifacts=outside.store,
            forge=outside.forge,
            tokens=outside.tokens,
            clock=outside.clock,
            leader=self._leadership,
            redactor=self._redactor,
            options=self._options,
            identity=self._settings.identity,
            fault=fault,
        )

    def _options(self) -> BuildOptions:
        settings = self._settings
        return BuildOptions(
            operator_namespace=settings.namespace,
            operator_url=settings.operator_url,
            authority=self._tls.authority,
            runner_account=RUNNER_ACCOUNT,
            publisher_account=PUBLISHER_ACCOUNT,
            allow_inline=settings.allow_inline,
        )

    def _leads(self) -> bool:
        return self._leadership.epoch is not None

    def _renews_certificate(self) -> bool:
        return self._settings.tls_renew and self._leads()

    async def _on_leadership(self, epoch: Epoch | None) -> None:
        if epoch is not None:
            self._resync.ring()
        else:
            self._metrics.forget_runs()

    def _render(self) -> bytes:
        self._metrics.leader.set(1 if self._leads() else 0)
        self._metrics.queue_length.set(len(self._queue))
        self._metrics.oldest_unreconciled_seconds.set(self._queue.oldest_age())
        return self._metrics.render()

    def _watch(self, flag: StopFlag) -> None:
        """Run kopf in the calling thread; see `handlers`."""
        handlers.watch(
            flag,
            self._bell.tell_from_thread,
            self._settings.watch_namespaces,
            partial(_login, self._outside.config),
            self._settings.identity,
        )


async def _login(config: ClusterConfig, **_: Any) -> kopf.AiohttpSession:
    """Give kopf a session with our own server and identity, renewed before a token ends."""
    return kopf.AiohttpSession(
        server=config.server,
        aiohttp_session=open_watch_session(config),
        expiration=datetime.now(UTC) + WATCH_TOKEN_LIFE,
    )


async def _end(tasks: Tasks) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _raise_first(tasks: Tasks) -> None:
    for task in tasks:
        if task.done() and not task.cancelled() and task.exception() is not None:
            raise RuntimeError("a part of the operator ended") from task.exception()


def load_fault() -> FaultPoint:
    """Load the hook of kill tests; release images have none, and without the variable none acts."""
    wanted = os.environ.get("UPGRADERUN_FAULT", "")
    for point in entry_points(group=FAULT_GROUP) if wanted else ():
        made: FaultPoint = point.load()(wanted)
        return made
    return no_fault


async def operate(settings: Settings) -> None:
    """Run one replica until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with open_outside(settings) as outside:
        await Operator(settings, outside, load_fault()).run(stop)


def main() -> None:
    """Entry point: settings from the environment, exit code 2 for what a person must mend."""
    argparse.ArgumentParser(
        prog="upgraderun-operator",
        description="Reconciles UpgradeRuns and serves the runner API.",
        epilog="All settings are environment variables UPGRADERUN_*: see docs/settings.md.",
    ).parse_args()
    try:
        settings = read_settings(os.environ)
        logging.basicConfig(
            level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
        )
        logging.getLogger("kopf").setLevel(logging.WARNING)
        asyncio.run(operate(settings))
    except (SettingError, ConfigError, StoreRefused) as error:
        print(f"upgraderun-operator: {error}", file=sys.stderr)
        sys.exit(2)
