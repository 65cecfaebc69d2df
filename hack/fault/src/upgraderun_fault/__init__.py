"""The hook of kill tests: SIGKILL at a named fault point (upgrade-run.md §14, reliability.md §5).

Operator, runner and publisher load it through the entry point group `upgraderun.fault`, and only where
`UPGRADERUN_FAULT=<effect>.<position>[@<occurrence>]` is set. Release images lack this distribution.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Final

POSITIONS: Final = ("before", "applied", "recorded")


class FaultSpecError(ValueError):
    """The variable isn't `<effect>.<position>[@<occurrence>]`."""


class FaultHook:
    """Counts the passes through one point and kills the process at the wanted one.

    Called as `hook("push", "applied")` or `hook("push.applied")`.
    """

    def __init__(self, wanted: str, kill: Callable[[], None]) -> None:
        point, _, occurrence = wanted.partition("@")
        effect, _, position = point.rpartition(".")
        if not effect or position not in POSITIONS or not (occurrence or "1").isdigit():
            raise FaultSpecError(
                f"UPGRADERUN_FAULT={wanted}: write <effect>.<before|applied|recorded>[@<occurrence>]"
            )
        self._point = point
        self._left = int(occurrence or "1")
        self._kill = kill

    def __call__(self, effect: str, position: str | None = None) -> None:
        """Die here if this is the point and its time has come."""
        name = effect if position is None else f"{effect}.{position}"
        if name != self._point:
            return
        self._left -= 1
        if self._left == 0:
            self._kill()


def hook(wanted: str) -> FaultHook:
    """Make the hook that really kills this process."""

    def kill() -> None:
        # A line that tests read as the proof that the point was hit.
        print(f"upgraderun_fault: SIGKILL at {wanted}", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        # Only the init of a container gets here: the kernel spares it (pid_namespaces(7)). Its end
        # takes every process of the container with it, as a kill from outside does.
        os._exit(128 + signal.SIGKILL)

    return FaultHook(wanted, kill)
