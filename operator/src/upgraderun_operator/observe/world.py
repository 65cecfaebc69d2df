"""Everything outside, as one value: what readers and performers are given. No logic."""

from collections.abc import Callable
from dataclasses import dataclass

from upgraderun_operator.build.context import BuildOptions
from upgraderun_operator.observe.ports import (
    Artifacts,
    Clock,
    Cluster,
    ForgeReader,
    ForgeTokens,
    Leader,
    Runs,
    Writer,
)
from upgraderun_protocol.effects import FaultPoint, no_fault
from upgraderun_protocol.redact import Redactor


@dataclass(frozen=True, slots=True)
class World:
    """`identity` names this process in Events; `options` is read anew in each pass."""

    cluster: Cluster
    runs: Runs
    writer: Writer
    artifacts: Artifacts
    forge: ForgeReader
    tokens: ForgeTokens
    clock: Clock
    leader: Leader
    redactor: Redactor
    options: Callable[[], BuildOptions]
    identity: str
    fault: FaultPoint = no_fault
