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
from upgraderun_protocol.redact import Redactor

Fault = Callable[[str], None]
"""Called with `<point>.<position>`; the null hook does nothing (reliability.md §5)."""


def no_fault(_name: str) -> None:
    """Pass: the hook of release images."""


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
    fault: Fault = no_fault
