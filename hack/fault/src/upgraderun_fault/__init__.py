"""The hook of kill tests: SIGKILL or a lost reply at a named fault point (reliability.md §5).

Operator, runner and publisher load it through the entry point group `upgraderun.fault`, and only where
`UPGRADERUN_FAULT=<effect>.<position>[@<occurrence>]` is set. Release images lack this distribution.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Final

KILLS: Final = ("before", "applied", "recorded")
REPLY_LOST: Final = "reply_lost"


class FaultSpecError(ValueError):
    """The variable isn't `<effect>.<position>[@<occurrence>]`."""


class FaultHook:
    """Counts the passes through one point and acts at the wanted one.

    Called as `hook("push", "applied")`; True says that the reply is lost.
    """

    def __init__(self, wanted: str, kill: Callable[[], None], tell: Callable[[str], None]) -> None:
        point, _, occurrence = wanted.partition("@")
        effect, _, position = point.rpartition(".")
        known = position in (*KILLS, REPLY_LOST)
        if not effect or not known or not (occurrence or "1").isdigit():
            words = "|".join((*KILLS, REPLY_LOST))
            raise FaultSpecError(
                f"UPGRADERUN_FAULT={wanted}: write <effect>.<{words}>[@<occurrence>]"
            )
        self._wanted = wanted
        self._point = (effect, position)
        self._left = int(occurrence or "1")
        self._kill = kill
        self._tell = tell

    def __call__(self, effect: str, position: str, /) -> bool:
        """Act here if this is the point and its time has come."""
        if (effect, position) != self._point:
            return False
        self._left -= 1
        if self._left != 0:
            return False
        # A line that tests read as the proof that the point was hit.
        if position == REPLY_LOST:
            self._tell(f"upgraderun_fault: reply lost at {self._wanted}")
            return True
        self._tell(f"upgraderun_fault: SIGKILL at {self._wanted}")
        self._kill()
        return False


def hook(wanted: str) -> FaultHook:
    """Make the hook that really kills this process."""

    def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)
        # Only the init of a container gets here: the kernel spares it (pid_namespaces(7)). Its end
        # takes every process of the container with it, as a kill from outside does.
        os._exit(128 + signal.SIGKILL)

    def tell(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    return FaultHook(wanted, kill, tell)
