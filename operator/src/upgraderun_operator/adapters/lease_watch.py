"""Feeds `api.run_lease.Sightings` from a list and watch of run Leases (DESIGN §7).

Every replica runs one, so that expiry is counted from the last renewal it saw, not from the first
refused `hello`. A watch that is silent or broken costs waiting time, never safety: a Lease counts
as unchanged only if the live read shows the very state that was seen. `main` starts it.
"""

from typing import Final

from upgraderun_operator.adapters.kubernetes import KubeClient
from upgraderun_operator.adapters.ports import Clock
from upgraderun_operator.answers import KubeObject, Ok
from upgraderun_operator.api.run_lease import Sightings
from upgraderun_operator.build.leases import lease_view
from upgraderun_operator.model.names import RUN_UID_LABEL
from upgraderun_operator.resources import LEASES

PAUSE_SECONDS: Final = 5.0
CHANGES: Final = frozenset({"ADDED", "MODIFIED"})


class LeaseWatch:
    """Watches the run Leases of some namespaces, each on its own; None means all of them."""

    def __init__(
        self, client: KubeClient, clock: Clock, sightings: Sightings, namespace: str | None = None
    ) -> None:
        self._client = client
        self._clock = clock
        self._sightings = sightings
        self._namespace = namespace

    async def run(self) -> None:
        """List, watch, list again, until cancelled."""
        while True:
            await self.once()
            await self._clock.sleep(PAUSE_SECONDS)

    async def once(self) -> None:
        """One list and the watch that follows it, until the server ends it or it fails."""
        answer = await self._client.list(LEASES, self._namespace, labels=RUN_UID_LABEL)
        if not isinstance(answer, Ok):
            return
        for raw in answer.value.items:
            self._saw(raw)
        version = answer.value.resource_version
        events = self._client.watch(
            LEASES, self._namespace, resource_version=version, labels=RUN_UID_LABEL
        )
        async for event in events:
            if event.type in CHANGES:
                self._saw(event.object)
            elif event.type == "DELETED":
                self._sightings.forget(str(event.object["metadata"]["uid"]))
            elif event.type == "ERROR":
                return

    def _saw(self, raw: KubeObject) -> None:
        self._sightings.saw(lease_view(raw), self._clock.monotonic())
