"""The leader Lease as an object of the API server: read, create, compare-and-set.

Only `main` makes it, for `engine.leadership`. Times in the Lease are for people; expiry is judged
by the reader's own monotonic clock (DESIGN §7).
"""

from typing import Any, Final

from upgraderun_operator import limits
from upgraderun_operator.adapters.kubernetes import KubeClient
from upgraderun_operator.adapters.ports import Clock
from upgraderun_operator.answers import (
    AlreadyExists,
    Conflict,
    Denied,
    KubeObject,
    NotFound,
    Ok,
    Unknown,
)
from upgraderun_operator.engine.leadership import LeaderLease
from upgraderun_operator.resources import LEASES

_TIME: Final = "%Y-%m-%dT%H:%M:%S.%fZ"


class LeaderLeaseObject:
    """One Lease in the operator's namespace; satisfies `engine.leadership.LeaderLeases`."""

    def __init__(self, client: KubeClient, clock: Clock, namespace: str, name: str) -> None:
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._name = name
        self._objects: dict[str, KubeObject] = {}

    async def read(self) -> LeaderLease | None:
        """Live read; None if there is none. Raises OSError when the server doesn't answer."""
        answer = await self._client.get(
            LEASES,
            self._namespace,
            self._name,
            timeout_seconds=limits.LEADER_CALL_TIMEOUT_SECONDS,
        )
        match answer:
            case Ok(found):
                return self._seen(found)
            case NotFound():
                return None
            case Denied(_, message) | Unknown(message):
                raise ConnectionError(message)

    async def create(self, holder: str) -> LeaderLease | None:
        """Create it, held by us under epoch 1; None if somebody was first."""
        body = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": self._spec(holder, 1),
        }
        answer = await self._client.create(
            LEASES, self._namespace, body, timeout_seconds=limits.LEADER_CALL_TIMEOUT_SECONDS
        )
        match answer:
            case Ok(made):
                return self._seen(made)
            case AlreadyExists():
                return None
            case NotFound():
                raise ConnectionError(f"namespace {self._namespace} is not there")
            case Denied(_, message) | Unknown(message):
                raise ConnectionError(message)

    async def replace(self, old: LeaderLease, holder: str, transitions: int) -> LeaderLease | None:
        """Write against the version of `old`; None if it changed meanwhile."""
        known = self._objects[old.version]
        body = {**known, "spec": {**known["spec"], **self._spec(holder, transitions)}}
        answer = await self._client.put(
            LEASES, body, timeout_seconds=limits.LEADER_CALL_TIMEOUT_SECONDS
        )
        match answer:
            case Ok(written):
                return self._seen(written)
            case Conflict() | NotFound():
                return None
            case Denied(_, message) | Unknown(message):
                raise ConnectionError(message)

    def _seen(self, found: KubeObject) -> LeaderLease:
        """Keep the object: a replacement is written on exactly the version that was seen."""
        version = str(found["metadata"]["resourceVersion"])
        self._objects = {version: found}
        spec = found.get("spec") or {}
        return LeaderLease(
            str(spec.get("holderIdentity") or ""), int(spec.get("leaseTransitions") or 0), version
        )

    def _spec(self, holder: str, transitions: int) -> dict[str, Any]:
        now = self._clock.now().strftime(_TIME)
        return {
            "holderIdentity": holder,
            "leaseDurationSeconds": limits.LEADER_LEASE_SECONDS,
            "leaseTransitions": transitions,
            "renewTime": now,
        }
