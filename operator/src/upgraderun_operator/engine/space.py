"""Room left in the artifact store, looked up each minute: a full store stops every run.

Caller: `main`, which shows it as a metric. Nothing is decided by it.
"""

import logging
from collections.abc import Callable
from typing import Final, Protocol

from upgraderun_operator.answers import StoreDown
from upgraderun_operator.engine.clock import Clock

log = logging.getLogger(__name__)

SPACE_SECONDS: Final = 60.0


class Spacious(Protocol):
    """A store that knows its room."""

    async def space(self) -> tuple[int, int] | StoreDown:
        """Free bytes and size."""
        ...


async def watch_space(store: Spacious, clock: Clock, show: Callable[[int, int], None]) -> None:
    """Look and show for ever; what can't be looked up is logged and looked up again."""
    while True:
        found = await store.space()
        if isinstance(found, StoreDown):
            log.warning("room of the artifact store: %s", found.cause)
        else:
            show(*found)
        await clock.sleep(SPACE_SECONDS)
