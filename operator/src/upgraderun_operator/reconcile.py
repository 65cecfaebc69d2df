"""One pass over one run: observe, decide, perform one effect, record, say when to wake (DESIGN §6).

Callers: the engine's workers. A pass that finds nothing to do writes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

from upgraderun_operator.build.context import BuildOptions
from upgraderun_operator.keys import Key, Wake
from upgraderun_operator.observe.ports import (
    Artifacts,
    Clock,
    Cluster,
    ForgeReader,
    Leader,
    Runs,
    Writer,
)
from upgraderun_protocol.redact import Redactor

Fault = Callable[[str], None]
"""Called with `<point>.<position>`; the null hook does nothing (reliability.md §5)."""


@dataclass(frozen=True, slots=True)
class World:
    """Everything outside, by protocol. `main` fills it with adapters."""

    cluster: Cluster
    runs: Runs
    writer: Writer
    artifacts: Artifacts
    forge: ForgeReader
    clock: Clock
    leader: Leader
    redactor: Redactor


class Reconciler:
    """Reconciles runs, one call per key at a time. Raises bugs only; the engine counts them."""

    def __init__(
        self, world: World, options: Callable[[], BuildOptions], identity: str, fault: Fault
    ) -> None:
        self._world = world
        self._options = options
        self._identity = identity
        self._fault = fault

    async def reconcile(self, key: Key) -> Wake:
        """Bring the run as far as it goes without waiting, and say when to look again."""
        raise NotImplementedError
