"""Every series that the operator exports.

Labels come from closed lists, preset to 0 where a dead leader or a counter born at 1 could hide
something (reliability.md §9).

Made once in `main` and passed on; nothing registers itself globally.
"""

from collections import Counter as Tally
from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from upgraderun_operator.keys import Key
from upgraderun_operator.model.conditions import Phase
from upgraderun_protocol.ends import MintPurpose
from upgraderun_protocol.outcomes import OUTCOMES, ConflictKind

PASS_RESULTS = ("ok", "backoff", "bug")
FENCE_CHECKS = ("writer", "epoch")
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The operator's series on a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        registry = self.registry
        self.leader = Gauge(
            "upgraderun_leader", "1 while this replica may act as leader", registry=registry
        )
        self.reconciles = Counter(
            "upgraderun_reconcile", "Passes over runs by result", ["result"], registry=registry
        )
        self.reconcile_seconds = Histogram(
            "upgraderun_reconcile_seconds", "Length of a pass", buckets=_SECONDS, registry=registry
        )
        self.queue_length = Gauge(
            "upgraderun_queue_length", "Runs that wait for a worker or have one", registry=registry
        )
        self.oldest_unreconciled_seconds = Gauge(
            "upgraderun_oldest_unreconciled_seconds",
            "Age of the longest waiting key",
            registry=registry,
        )
        self.watch_restarts = Counter(
            "upgraderun_kopf_restarts", "Times the watcher was started again", registry=registry
        )
        self.runs_in_conflict = Gauge(
            "upgraderun_runs_in_conflict",
            "Runs whose status holds a conflict, finished ones included",
            ["kind"],
            registry=registry,
        )
        self.conflicts = Counter(
            "upgraderun_conflicts", "Conflicts recorded", ["kind"], registry=registry
        )
        self.outcomes = Counter(
            "upgraderun_outcomes", "Ends of runs recorded", ["outcome"], registry=registry
        )
        self.api_requests = Counter(
            "upgraderun_api_requests", "Runner API calls", ["endpoint", "code"], registry=registry
        )
        self.api_fenced = Counter(
            "upgraderun_api_fenced", "Calls of writers that are none", ["check"], registry=registry
        )
        self.tokens_minted = Counter(
            "upgraderun_tokens_minted", "Tokens handed to pods", ["purpose"], registry=registry
        )
        self.runs = Gauge(
            "upgraderun_runs",
            "Unfinished runs by phase, as the leader saw them last",
            ["phase"],
            registry=registry,
        )
        self.store_free_bytes = Gauge(
            "upgraderun_store_free_bytes", "Free space of the artifact store", registry=registry
        )
        self.store_size_bytes = Gauge(
            "upgraderun_store_size_bytes", "Size of the artifact store", registry=registry
        )
        self._in_conflict: dict[Key, str] = {}
        self._phases: dict[Key, str] = {}
        self._preset()

    def _preset(self) -> None:
        self.show_conflicts({})
        for kind in ConflictKind:
            self.conflicts.labels(kind.value)
        for phase in Phase:
            if phase is not Phase.FINISHED:
                self.runs.labels(phase.value)
        for outcome in OUTCOMES:
            self.outcomes.labels(outcome)
        for purpose in MintPurpose:
            self.tokens_minted.labels(purpose.value)
        for check in FENCE_CHECKS:
            self.api_fenced.labels(check)
        for result in PASS_RESULTS:
            self.reconciles.labels(result)

    def reconciled(self, seconds: float, result: str) -> None:
        """Count one pass."""
        self.reconciles.labels(result).inc()
        self.reconcile_seconds.observe(seconds)

    def answered(self, endpoint: str, code: str) -> None:
        """Count one call of the runner API."""
        self.api_requests.labels(endpoint, code).inc()

    def minted(self, purpose: str) -> None:
        """Count a token that is handed to a pod."""
        self.tokens_minted.labels(purpose).inc()

    def fenced(self, check: str) -> None:
        """Count a call of somebody who isn't the writer."""
        self.api_fenced.labels(check).inc()

    def ended(self, run: Key, outcome: str, conflict: str | None) -> None:
        """Count the end of a run. The gauge moves at once, unless the resync knows the run."""
        self.outcomes.labels(outcome).inc()
        if conflict is not None:
            self.conflicts.labels(conflict).inc()
            self.show_conflicts({**self._in_conflict, run: conflict})

    def show_conflicts(self, runs: Mapping[Key, str]) -> None:
        """Set the gauge from the runs in conflict: every kind, those without runs to 0."""
        self._in_conflict = dict(runs)
        counts = Tally(self._in_conflict.values())
        for kind in ConflictKind:
            self.runs_in_conflict.labels(kind.value).set(counts[kind.value])

    def stands(self, run: Key, phase: str | None) -> None:
        """Note where a run stands; None or finished takes it out."""
        before = self._phases.pop(run, None)
        if before is not None:
            self.runs.labels(before).dec()
        if phase is not None and phase != Phase.FINISHED:
            self._phases[run] = phase
            self.runs.labels(phase).inc()

    def forget_runs(self) -> None:
        """Another replica leads: what this one saw is old."""
        for run in tuple(self._phases):
            self.stands(run, None)

    def show_space(self, free: int, size: int) -> None:
        """Set the gauges of the artifact store."""
        self.store_free_bytes.set(free)
        self.store_size_bytes.set(size)

    def render(self) -> bytes:
        """Text exposition format for `/metrics`."""
        return generate_latest(self.registry)
