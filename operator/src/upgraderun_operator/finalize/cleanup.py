"""Takes away what a run left: pods, volume, Leases, finalizer (runner-protocol.md §6.4).

Every deletion names the UID that the journal or the owner reference gave; absent is done.
Callers: `operating`, which puts these functions into the table of effects.
"""

from collections.abc import Mapping
from typing import Any

from upgraderun_operator.answers import Conflict, DeleteAnswer, Denied, NotFound, Ok, Unknown
from upgraderun_operator.decide.decision import Need
from upgraderun_operator.decide.effects import (
    AddFinalizer,
    DeleteClaim,
    DeletePod,
    DeleteRunLease,
    ReleaseRepositoryLease,
    RemoveFinalizer,
)
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.model.names import FINALIZER
from upgraderun_operator.observe.world import World
from upgraderun_operator.perform.creating import replaced
from upgraderun_operator.perform.repository import Repository
from upgraderun_operator.perform.results import Applied, Moved, NoAnswer, Result
from upgraderun_operator.perform.table import Binding, Table
from upgraderun_operator.resources import CLAIMS, LEASES, PODS, UPGRADE_RUNS, Resource


class Cleanup:
    """The deletions and the finalizer."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def pod(self, seen: Observation, effect: DeletePod) -> Result:
        """Delete one pod of ours."""
        return await self._delete(PODS, seen, effect.name, effect.uid)

    async def claim(self, seen: Observation, effect: DeleteClaim) -> Result:
        """Delete the workspace volume."""
        return await self._delete(CLAIMS, seen, effect.name, effect.uid)

    async def run_lease(self, seen: Observation, effect: DeleteRunLease) -> Result:
        """Delete the run Lease."""
        return await self._delete(LEASES, seen, effect.name, effect.uid)

    async def add_finalizer(self, _seen: Observation, effect: AddFinalizer) -> Result:
        """Hold the run object, against the version that was seen."""
        found = effect.raw["metadata"].get("finalizers") or ()
        return await self._put_finalizers(effect.raw, [*found, FINALIZER])

    async def remove_finalizer(self, _seen: Observation, effect: RemoveFinalizer) -> Result:
        """Let the run object go, against the version that was seen."""
        found = effect.raw["metadata"].get("finalizers") or ()
        return await self._put_finalizers(effect.raw, [one for one in found if one != FINALIZER])

    async def _put_finalizers(self, raw: Mapping[str, Any], names: list[str]) -> Result:
        body = {**raw, "metadata": {**raw["metadata"], "finalizers": names}}
        return replaced(await self._world.cluster.put(UPGRADE_RUNS, body))

    async def _delete(self, resource: Resource, seen: Observation, name: str, uid: str) -> Result:
        namespace = seen.view.ref.namespace
        return _deleted(await self._world.cluster.delete(resource, namespace, name, uid=uid))


def cleanup_table(world: World) -> Table:
    """Everything that goes away, and the finalizer."""
    cleanup = Cleanup(world)
    release = Repository(world).release
    return {
        DeletePod: Binding("cleanup_pod", cleanup.pod, Need.OLD_PODS),
        DeleteClaim: Binding("cleanup_pvc", cleanup.claim, Need.CLAIM),
        DeleteRunLease: Binding("cleanup_run_lease", cleanup.run_lease, Need.LEASE),
        ReleaseRepositoryLease: Binding("lease_release", release, Need.REPOSITORY),
        AddFinalizer: Binding("finalizer_add", cleanup.add_finalizer),
        RemoveFinalizer: Binding("finalizer_remove", cleanup.remove_finalizer),
    }


def _deleted(answer: DeleteAnswer) -> Result:
    match answer:
        case Ok() | NotFound():
            return Applied()
        case Conflict():
            return Moved("another object has that name now")
        case Denied(status, message):
            return NoAnswer("cluster", f"refused ({status}): {message}"[:400])
        case Unknown(cause, retry_after):
            return NoAnswer("cluster", cause, retry_after)
