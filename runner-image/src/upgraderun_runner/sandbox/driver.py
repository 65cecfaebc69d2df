"""The interface behind which commands run: Inline today, pods later (DESIGN §9).

Callers: `sandbox/recorder.py` and through it every step of the runner. A driver journals nothing and
decides nothing; it runs exactly the command that it was given.
"""

from enum import StrEnum
from typing import Protocol

from upgraderun_runner.sandbox.commands import Command, CommandResult


class Isolation(StrEnum):
    """What separated the commands of profile `execute` from the world; goes into every record."""

    POD = "pod"
    NETWORK_NAMESPACE = "network-namespace"
    NONE = "none"


class Sandbox(Protocol):
    """One command at a time, named by a command id that is unique in the run."""

    @property
    def isolation(self) -> Isolation:
        """How strongly `execute` is isolated; fixed before the first command."""
        ...

    async def run(self, command_id: str, command: Command) -> CommandResult:
        """Run a command to its end, its timeout or its kill. Raises only if it could not start."""
        ...
