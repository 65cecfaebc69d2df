"""A double of the API server: only what the operator and a kubelet use (reliability.md Q9).

Compare-and-set by resourceVersion and UID, status apart from the rest, finalizers, grace of pods,
selectors, watches with history, the root rules of a run. `SimClient` answers as the product's own
client does. tests/sim/test_contract_api.py holds both against a real API server.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from support.sim.loop import check_alive
from upgraderun_operator.adapters.kubernetes import KubeClient, WatchEvent
from upgraderun_operator.answers import (
    AlreadyExists,
    Conflict,
    CreateAnswer,
    DeleteAnswer,
    Denied,
    GetAnswer,
    KubeObject,
    ListAnswer,
    Listing,
    NotFound,
    Ok,
    PutAnswer,
)
from upgraderun_operator.resources import (
    CLAIMS,
    LEASES,
    NAMESPACES,
    PODS,
    UPGRADE_APPROVALS,
    UPGRADE_POLICIES,
    UPGRADE_REPORTS,
    UPGRADE_RUNS,
    Resource,
)

Json = dict[str, Any]
PROTECTION: Final = "kubernetes.io/pvc-protection"
WITH_STATUS: Final = frozenset({UPGRADE_RUNS.plural, PODS.plural, CLAIMS.plural})
OURS: Final = frozenset(
    one.plural for one in (UPGRADE_RUNS, UPGRADE_POLICIES, UPGRADE_APPROVALS, UPGRADE_REPORTS)
)
MUTABLE: Final = frozenset({"suspend", "cancel", "ttlSecondsAfterFinished"})
WATCH_SECONDS: Final = 290


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one object, as a watch tells it."""

    version: int
    plural: str
    type: str
    object: Json


Seen = Callable[[str, str, Json], None]
"""Called with each change at once: verb, plural, object. For invariants."""


class ApiServer:
    """All objects. Versions count through all kinds, as in etcd."""

    def __init__(self, now: Callable[[], datetime], new_uid: Callable[[], str]) -> None:
        self._now = now
        self._new_uid = new_uid
        self._objects: dict[str, dict[tuple[str, str], Json]] = {}
        self._version = 0
        self._changes: list[Change] = []
        self._bell = asyncio.Event()
        self.watchers: list[Seen] = []

    @property
    def version(self) -> str:
        """The newest resourceVersion."""
        return str(self._version)

    def find(self, resource: Resource, namespace: str | None, name: str) -> Json | None:
        """One object as it stands."""
        return self._kind(resource).get((namespace or "", name))

    def items(self, resource: Resource, namespace: str | None = None) -> list[Json]:
        """All objects of a kind, by name."""
        found = sorted(self._kind(resource).items())
        return [raw for (where, _), raw in found if namespace is None or where == namespace]

    def create(self, resource: Resource, namespace: str | None, body: KubeObject) -> CreateAnswer:
        """POST."""
        made = _copy(body)
        metadata = made["metadata"]
        where = namespace or ""
        if resource.namespaced and self.find(NAMESPACES, None, where) is None:
            return NotFound()
        if (where, metadata["name"]) in self._kind(resource):
            return AlreadyExists(f"{resource.plural} {metadata['name']!r} already exists")
        if namespace:
            metadata["namespace"] = namespace
        metadata["uid"] = self._new_uid()
        metadata["creationTimestamp"] = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        if resource.plural in OURS:
            metadata["generation"] = 1
        if resource.plural in WITH_STATUS:
            made.pop("status", None)
        if resource.plural in {PODS.plural, CLAIMS.plural}:
            made["status"] = {"phase": "Pending"}
        elif resource.plural == UPGRADE_RUNS.plural:
            made["status"] = {"observedGeneration": 0}
        if resource.plural == CLAIMS.plural:
            metadata["finalizers"] = [*metadata.get("finalizers", ()), PROTECTION]
        self._store(resource, "ADDED", made)
        return Ok(made)

    def put(self, resource: Resource, body: KubeObject, *, subresource: str = "") -> PutAnswer:
        """PUT of the object or of its status."""
        metadata = body["metadata"]
        old = self.find(resource, metadata.get("namespace"), metadata["name"])
        if old is None:
            # A PUT may make a Lease, so there the UID is compared with none.
            return Conflict("no such UID") if resource is LEASES else NotFound()
        held = old["metadata"]
        if metadata["uid"] != held["uid"]:
            return Conflict("the UID in the precondition isn't the object's")
        if metadata["resourceVersion"] != held["resourceVersion"]:
            return Conflict("the object has been modified")
        new = self._replaced(resource, old, body, subresource)
        if resource.plural == UPGRADE_RUNS.plural and (refused := _refusal(old, new)) is not None:
            return Denied(422, refused)
        if new == old:
            return Ok(old)
        if held.get("deletionTimestamp") and not new["metadata"].get("finalizers"):
            self._drop(resource, new)
        else:
            self._store(resource, "MODIFIED", new)
        return Ok(new)

    def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str,
        grace_seconds: int | None = None,
    ) -> DeleteAnswer:
        """DELETE with the UID as precondition."""
        old = self.find(resource, namespace, name)
        if old is None:
            return NotFound()
        if old["metadata"]["uid"] != uid:
            return Conflict("the UID in the precondition isn't the object's")
        grace = 0
        if resource.plural == PODS.plural and old["spec"].get("nodeName"):
            said = old["spec"].get("terminationGracePeriodSeconds", 30)
            grace = said if grace_seconds is None else grace_seconds
        if not old["metadata"].get("finalizers") and not grace:
            self._drop(resource, old)
        elif "deletionTimestamp" not in old["metadata"]:
            marked = _copy(old)
            at = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
            marked["metadata"] |= {"deletionTimestamp": at, "deletionGracePeriodSeconds": grace}
            self._store(resource, "MODIFIED", marked)
        return Ok(None)

    async def watch(
        self, resource: Resource, namespace: str | None, version: str, labels: str = ""
    ) -> AsyncIterator[WatchEvent]:
        """Changes after a version, then those that come, until the server ends it."""
        after = int(version)
        loop = asyncio.get_running_loop()
        until = loop.time() + WATCH_SECONDS
        while (left := until - loop.time()) > 0:
            for change in self._after(after, resource, namespace):
                after = change.version
                if _labelled(change.object, labels):
                    yield WatchEvent(change.type, change.object)
            after = max(after, self._version)
            bell = self._bell
            try:
                await asyncio.wait_for(bell.wait(), left)
            except TimeoutError:
                return

    def _after(self, version: int, resource: Resource, namespace: str | None) -> Iterator[Change]:
        """Newest last; the end of the history is looked at only."""
        first = len(self._changes)
        while first and self._changes[first - 1].version > version:
            first -= 1
        for change in self._changes[first:]:
            where = change.object["metadata"].get("namespace")
            if change.plural == resource.plural and namespace in {None, where}:
                yield change

    def _kind(self, resource: Resource) -> dict[tuple[str, str], Json]:
        return self._objects.setdefault(resource.plural, {})

    def _replaced(self, resource: Resource, old: Json, body: KubeObject, subresource: str) -> Json:
        """What stands after a PUT: status alone, or everything but status and what is the server's."""
        if subresource == "status":
            status = _copy(body).get("status")
            return {**old, "status": status} if status is not None else old
        new = _copy(body)
        if resource.plural in WITH_STATUS:
            new.pop("status", None)
            new |= {"status": old["status"]} if "status" in old else {}
        held = old["metadata"]
        kept = ("uid", "resourceVersion", "creationTimestamp", "generation", "deletionTimestamp")
        new["metadata"] |= {key: held[key] for key in kept if key in held}
        if not new["metadata"].get("finalizers"):
            new["metadata"].pop("finalizers", None)
        if "generation" in held and new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = held["generation"] + 1
        return new

    def _store(self, resource: Resource, what: str, raw: Json) -> None:
        metadata = raw["metadata"] = dict(raw["metadata"])
        self._tell(resource, what, raw)
        self._kind(resource)[metadata.get("namespace") or "", metadata["name"]] = raw

    def _drop(self, resource: Resource, raw: Json) -> None:
        last = {**raw, "metadata": dict(raw["metadata"])}
        del self._kind(resource)[raw["metadata"].get("namespace") or "", raw["metadata"]["name"]]
        self._tell(resource, "DELETED", last)

    def _tell(self, resource: Resource, what: str, raw: Json) -> None:
        self._version += 1
        raw["metadata"]["resourceVersion"] = str(self._version)
        self._changes.append(Change(self._version, resource.plural, what, raw))
        for watcher in self.watchers:
            watcher(what, resource.plural, raw)
        bell, self._bell = self._bell, asyncio.Event()
        bell.set()


class SimClient(KubeClient):
    """The product's client on the double. `writes` counts what leaves by verb and kind."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.writes: Counter[str] = Counter()

    async def _travel(self) -> None:
        """Others may act while a request is on its way; a killed program sends none."""
        check_alive()
        await asyncio.sleep(0)
        check_alive()

    async def get(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        timeout_seconds: float | None = None,
    ) -> GetAnswer:
        """Quorum read."""
        del timeout_seconds
        await self._travel()
        found = self.server.find(resource, namespace, name)
        return NotFound() if found is None else Ok(found)

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
    ) -> ListAnswer:
        """A whole list at the newest version."""
        del metadata_only
        await self._travel()
        found = [
            raw
            for raw in self.server.items(resource, namespace)
            if _labelled(raw, labels) and _selected(raw, fields)
        ]
        return Ok(Listing(tuple(found), self.server.version))

    async def create(
        self,
        resource: Resource,
        namespace: str | None,
        body: KubeObject,
        *,
        timeout_seconds: float | None = None,
    ) -> CreateAnswer:
        """Create."""
        del timeout_seconds
        await self._travel()
        self.writes[f"create {resource.plural}"] += 1
        return self.server.create(resource, namespace, body)

    async def put(
        self,
        resource: Resource,
        body: KubeObject,
        *,
        subresource: str = "",
        timeout_seconds: float | None = None,
    ) -> PutAnswer:
        """Replace at the version and UID that the body names."""
        del timeout_seconds
        await self._travel()
        self.writes[f"put {resource.plural}{'/' * bool(subresource)}{subresource}"] += 1
        return self.server.put(resource, body, subresource=subresource)

    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str,
        grace_seconds: int | None = None,
    ) -> DeleteAnswer:
        """Delete exactly this object."""
        await self._travel()
        self.writes[f"delete {resource.plural}"] += 1
        return self.server.delete(resource, namespace, name, uid=uid, grace_seconds=grace_seconds)

    async def watch(
        self,
        resource: Resource,
        namespace: str | None,
        *,
        resource_version: str,
        labels: str = "",
    ) -> AsyncIterator[WatchEvent]:
        """Changes after a version."""
        await self._travel()
        async for event in self.server.watch(resource, namespace, resource_version, labels):
            check_alive()
            yield event


def _copy(body: KubeObject) -> Json:
    """What arrives over a wire is nobody else's."""
    copied: Json = json.loads(json.dumps(body))
    return copied


def _labelled(raw: Json, labels: str) -> bool:
    """One label that is there, or that has a value."""
    if not labels:
        return True
    name, equals, value = labels.partition("=")
    held = raw["metadata"].get("labels") or {}
    return name in held and (not equals or held[name] == value)


def _selected(raw: Json, fields: str) -> bool:
    """One selectable field that equals, or doesn't equal; an absent one is empty."""
    if not fields:
        return True
    name, _, value = fields.partition("=")
    found: Any = raw
    for part in name.removesuffix("!").split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    text = {None: "", True: "true", False: "false"}.get(found, str(found))
    return (text == value) is not name.endswith("!")


def _refusal(old: Json, new: Json) -> str | None:
    """The rules at a run's root: the spec stands but for a few wishes, and no number ever falls."""
    fixed = [
        {key: value for key, value in raw.get("spec", {}).items() if key not in MUTABLE}
        for raw in (old, new)
    ]
    if fixed[0] != fixed[1]:
        return "spec is immutable but for suspend, cancel and ttlSecondsAfterFinished"
    if "status" in old and "status" not in new:
        return "status can't be removed"
    for path in (("journal", "head", "seq"), ("journal", "head", "epoch"), ("leaderEpoch",)):
        before, after = (_at(raw.get("status") or {}, path) for raw in (old, new))
        if before is not None and (after is None or after < before):
            return f"status.{'.'.join(path)} never falls"
    return None


def _at(raw: Any, path: tuple[str, ...]) -> int | None:
    for key in path:
        raw = raw.get(key) if isinstance(raw, Mapping) else None
    return raw if isinstance(raw, int) else None
