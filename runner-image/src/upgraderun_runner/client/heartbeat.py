"""The run Lease: renewed while the process lives, and asked before each effect (runner-protocol.md §1.8).

Callers: the start of a process makes one and runs `keep` beside its work; the journal awaits `permit`.
An outage of the operator costs time only: as long as nobody took the Lease, work goes on.
"""

import asyncio

from upgraderun_protocol.limits import RUN_LEASE_RENEW_SECONDS
from upgraderun_runner import limits
from upgraderun_runner.client.operator import OperatorClient
from upgraderun_runner.client.transport import Seams
from upgraderun_runner.errors import TransportError


class RunLease:
    """What this process knows of its Lease, and what people want of it."""

    def __init__(self, client: OperatorClient, boot_nonce: str, seams: Seams) -> None:
        self._client = client
        self._nonce = boot_nonce
        self._seams = seams
        self._renewed_at = seams.monotonic()
        self._held = asyncio.Event()
        self._held.set()
        self.suspend_wanted = False
        self.cancel_wanted = False

    @property
    def has_lapsed(self) -> bool:
        """Whether it went unrenewed for longer than its duration, on our own clock."""
        return self._seams.monotonic() - self._renewed_at >= limits.LEASE_LAPSE_SECONDS

    async def permit(self) -> None:
        """Return when an effect may start: at once, or after a lapsed Lease was renewed again."""
        while self.has_lapsed:
            self._held.clear()
            await self._held.wait()

    async def keep(self) -> None:
        """Renew until cancelled. Raises Fenced or Terminal, which end the process."""
        pause: float = RUN_LEASE_RENEW_SECONDS
        while True:
            await self._seams.sleep(pause)
            pause = RUN_LEASE_RENEW_SECONDS if await self._renew() else limits.LEASE_RETRY_SECONDS

    async def _renew(self) -> bool:
        try:
            answer = await self._client.renew(self._nonce)
        except TransportError as error:
            if error.is_outage:
                return False
            raise
        self._renewed_at = self._seams.monotonic()
        self._held.set()
        self.suspend_wanted = answer.suspend
        self.cancel_wanted = answer.cancel
        return True
