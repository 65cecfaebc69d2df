"""Takes and releases the repository Lease by compare-and-set (DESIGN §7).

The Lease is no child of a run and stays. While a run waits for people it leaves its target there,
so that no other run of the repository proposes the same upgrade.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from upgraderun_operator import limits
from upgraderun_operator.answers import AlreadyExists, Denied, NotFound, Ok, Unknown
from upgraderun_operator.decide.decision import Need
from upgraderun_operator.decide.effects import ReleaseRepositoryLease, TakeRepositoryLease
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.views import Holder, RepositoryLeaseView
from upgraderun_operator.model.names import GROUP
from upgraderun_operator.observe.repository import FROZEN_ANNOTATION
from upgraderun_operator.observe.world import World
from upgraderun_operator.perform.creating import replaced
from upgraderun_operator.perform.results import Applied, Moved, NoAnswer, Result
from upgraderun_operator.resources import LEASES

URL_ANNOTATION = f"{GROUP}/repository"


class Repository:
    """The two effects on the repository Lease."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def take(self, _seen: Observation, effect: TakeRepositoryLease) -> Result:
        """Become the holder, against the version that was seen free."""
        namespace = self._world.options().operator_namespace
        lease, now = effect.seen, _micro_time(self._world)
        if lease.raw is None:
            body = _new(namespace, lease.name, effect.url, effect.holder, now)
            answer = await self._world.cluster.create(LEASES, namespace, body)
            match answer:
                case Ok(raw):
                    return _taken(lease, raw)
                case AlreadyExists():
                    return Moved("another run took the repository first")
                case NotFound() | Denied() | Unknown():
                    return NoAnswer("cluster", str(answer))
        spec = dict(lease.raw.get("spec") or {})
        spec |= {
            "holderIdentity": effect.holder,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": int(spec.get("leaseTransitions") or 0) + 1,
        }
        written = await self._world.cluster.put(LEASES, _changed(lease.raw, spec, lease))
        return _taken(lease, written.value) if isinstance(written, Ok) else replaced(written)

    async def release(self, _seen: Observation, effect: ReleaseRepositoryLease) -> Result:
        """Stop being the holder, against the version that was seen ours."""
        lease = effect.seen
        assert lease.raw is not None
        spec = {**(lease.raw.get("spec") or {}), "holderIdentity": ""}
        frozen = {run: to for run, to in (lease.frozen or {}).items() if run != effect.holder}
        if effect.frozen is not None:
            frozen[effect.holder] = effect.frozen
        body = _changed(lease.raw, spec, lease, frozen)
        return replaced(await self._world.cluster.put(LEASES, body))


def _taken(lease: RepositoryLeaseView, raw: Mapping[str, Any]) -> Applied:
    """The Lease is ours in the version that the API server answered."""
    ours = replace(lease, holder=Holder.OURS, holder_name="", raw=raw, frozen=lease.frozen or {})
    return Applied(found={Need.REPOSITORY: ours})


def _new(namespace: str, name: str, url: str, holder: str, now: str) -> Mapping[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": namespace, "annotations": {URL_ANNOTATION: url}},
        "spec": {
            "holderIdentity": holder,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": 0,
        },
    }


def _changed(
    raw: Mapping[str, Any],
    spec: Mapping[str, Any],
    lease: RepositoryLeaseView,
    frozen: Mapping[str, str] | None = None,
) -> Mapping[str, Any]:
    """The same Lease with another spec and the frozen targets of runs that still live."""
    kept = dict(frozen if frozen is not None else lease.frozen or {})
    newest = dict(list(kept.items())[-limits.FROZEN_TARGETS_MAX :])
    annotations = dict(raw["metadata"].get("annotations") or {})
    annotations[FROZEN_ANNOTATION] = json.dumps(newest, sort_keys=True, separators=(",", ":"))
    return {**raw, "metadata": {**raw["metadata"], "annotations": annotations}, "spec": spec}


def _micro_time(world: World) -> str:
    return world.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
