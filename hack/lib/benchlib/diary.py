"""Every version of a run's status, and every change of a Lease, as a watch tells them.

Callers: `hack/bench/writes.py`. The audit log says who wrote what object; what a write changed is
only seen here.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from support.kubeapi import LEASES, Json, Kube

RENEWED = frozenset({"renewTime"})


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a run: bytes of its status, what the write added or changed."""

    size: int
    entries: tuple[str, ...]
    other: tuple[str, ...]

    @property
    def words(self) -> str:
        """The write in a few words: entries, or the fields that changed without one."""
        return " + ".join(self.entries) or ("fields " + ", ".join(self.other))


@dataclass(slots=True)
class RunDiary:
    """Versions of one run in order; `status` is the newest."""

    versions: list[Version] = field(default_factory=list)
    status: Json = field(default_factory=dict)

    def see(self, run: Json) -> None:
        """Note a version, unless its status is the one before."""
        status = run.get("status") or {}
        if status == self.status:
            return
        seen = self.status.get("journal", {}).get("head", {}).get("seq", 0)
        new = [e for e in status.get("journal", {}).get("entries", []) if e["seq"] > seen]
        quiet = {"write", "journal"}
        other = [
            key
            for key in sorted({*status, *self.status} - quiet)
            if status.get(key) != self.status.get(key)
        ]
        size = len(json.dumps(status, separators=(",", ":"), ensure_ascii=False).encode())
        names = tuple(f"{entry['id']} {entry['state']}" for entry in new)
        self.versions.append(Version(size, names, tuple(other)))
        self.status = status


@dataclass(slots=True)
class LeaseDiary:
    """Tells updates of our Leases that only renew them from those that take or release one."""

    renewals: int = 0
    changes: int = 0
    _seen: dict[str, Any] = field(default_factory=dict)

    def see(self, lease: Json) -> None:
        """Note a version; the API server's own Leases are none of ours."""
        if lease["metadata"]["namespace"] == "kube-system":
            return
        spec = {k: v for k, v in lease.get("spec", {}).items() if k not in RENEWED}
        known = (spec, lease["metadata"].get("annotations"))
        uid = lease["metadata"]["uid"]
        if self._seen.get(uid) == known:
            self.renewals += 1
        elif uid in self._seen:
            self.changes += 1
        self._seen[uid] = known


@contextlib.asynccontextmanager
async def lease_diary(kube: Kube) -> AsyncIterator[LeaseDiary]:
    """Follow all Leases of the cluster."""
    diary = LeaseDiary()
    async with _following(kube, f"{LEASES}/leases", diary.see):
        yield diary


@contextlib.asynccontextmanager
async def run_diary(kube: Kube, path: str, name: str) -> AsyncIterator[RunDiary]:
    """Follow one run from its creation on."""
    diary = RunDiary()
    async with _following(kube, path, diary.see, fieldSelector=f"metadata.name={name}"):
        yield diary


@contextlib.asynccontextmanager
async def _following(kube: Kube, path: str, see: Any, **selector: str) -> AsyncIterator[None]:
    """Watch a collection until the context ends; nothing between list and watch is missed."""
    listed = await kube.call("GET", path, params=selector)
    for item in listed["items"]:
        see(item)
    version = listed["metadata"]["resourceVersion"]

    async def follow() -> None:
        async for event in kube.watch(path, version, **selector):
            assert event["type"] != "ERROR", event
            if event["type"] in {"ADDED", "MODIFIED"}:
                see(event["object"])

    task = asyncio.create_task(follow())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
