"""Workers: take a key, reconcile it, say when to wake it. The one exit for bugs.

A pass that raises changes nothing in the run: it is logged redacted, counted and backed off.
"""

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable
from typing import Protocol

from upgraderun_operator.engine.queue import WorkQueue
from upgraderun_operator.keys import Key, Wake
from upgraderun_protocol.redact import Redactor

log = logging.getLogger(__name__)


class PassMetrics(Protocol):
    """What the workers count."""

    def reconciled(self, seconds: float, result: str) -> None:
        """Count one pass: result `ok`, `backoff` or `bug`."""
        ...


class Workers:
    """Runs `count` workers over a queue until the queue is closed."""

    def __init__(
        self,
        queue: WorkQueue[Key],
        reconcile: Callable[[Key], Awaitable[Wake]],
        *,
        count: int,
        monotonic: Callable[[], float],
        metrics: PassMetrics,
        redactor: Redactor,
    ) -> None:
        self._queue = queue
        self._reconcile = reconcile
        self._count = count
        self._monotonic = monotonic
        self._metrics = metrics
        self._redactor = redactor

    async def run(self) -> None:
        """Work until the queue is closed and every pass in hand has ended."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._count):
                group.create_task(self._work())

    async def _work(self) -> None:
        while (key := await self._queue.get()) is not None:
            started = self._monotonic()
            try:
                result = await self._one(key)
            finally:
                await self._queue.done(key)
            self._metrics.reconciled(self._monotonic() - started, result)

    async def _one(self, key: Key) -> str:
        try:
            wake = await self._reconcile(key)
        except Exception:  # noqa: BLE001 - the one exit: a bug in one run must not stop the others
            text = self._redactor.redact(traceback.format_exc(), 8000)
            log.error(
                "pass over %s/%s dropped, state unchanged:\n%s", key.namespace, key.name, text
            )
            await self._queue.retry(key)
            return "bug"
        if wake.gone:
            await self._queue.drop(key)
        elif wake.backoff:
            await self._queue.retry(key)
            return "backoff"
        else:
            self._queue.forget_failures(key)
            if wake.after_seconds is not None:
                await self._queue.add_after(key, wake.after_seconds)
        return "ok"
