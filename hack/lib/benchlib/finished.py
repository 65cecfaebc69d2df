"""Thousands of runs in an API server, quickly: one is made through the API, then cloned.

Callers: `hack/bench/memory.py`, `scale.py`. The first goes through the API server with its status, so its form
is checked; its stored bytes are then written under new names and UIDs straight into the etcd of
that API server, whose own cache follows. Creating ten thousand by requests would take minutes.
"""

import base64
import json
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import httpx

from clusterlib import processes
from clusterlib.apiserver import ApiServer
from support.kubeapi import OURS, Json, Kube, path_of

SAMPLE: Final = Path(__file__).with_name("finished-run.json")
NAMESPACE: Final = "team-a"
FIRST: Final = "finished-0"
PREFIX: Final = f"/registry/upgraderun.dev/upgraderuns/{NAMESPACE}/"
CHUNK: Final = 50


async def make_first(kube: Kube) -> Json:
    """Create one finished run: the status is that of a whole `patch-safe` run."""
    sample = json.loads(SAMPLE.read_text())
    path = path_of(OURS, NAMESPACE, "upgraderuns")
    head = {"apiVersion": sample["apiVersion"], "kind": sample["kind"]}
    body = {**head, "metadata": {"name": FIRST, "namespace": NAMESPACE}, "spec": sample["spec"]}
    made = await kube.create(path, body)
    return await kube.replace(f"{path}/{FIRST}/status", {**made, "status": sample["status"]})


class Etcd:
    """The store behind an API server, over its own HTTP interface."""

    def __init__(self, server: ApiServer) -> None:
        self._client = httpx.AsyncClient(base_url=_endpoint(server), trust_env=False, timeout=60.0)

    async def clone(self, numbers: Iterable[int], first: str = FIRST) -> None:
        """Write copies of a run `<name>-0` as `<name>-<n>`."""
        found = await self._call("range", {"key": _encoded(PREFIX + first)})
        name = first.removesuffix("-0")
        stored = json.loads(base64.b64decode(found["kvs"][0]["value"]))
        wanted = list(numbers)
        for start in range(0, len(wanted), CHUNK):
            puts = [
                {"request_put": _put(stored, f"{name}-{number}")}
                for number in wanted[start : start + CHUNK]
            ]
            await self._call("txn", {"success": puts})

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _call(self, what: str, body: Json) -> Any:
        answer = await self._client.post(f"/v3/kv/{what}", json=body)
        answer.raise_for_status()
        return answer.json()


def _put(stored: Json, name: str) -> dict[str, str]:
    metadata = {**stored["metadata"], "name": name, "uid": str(uuid.uuid4())}
    value = json.dumps({**stored, "metadata": metadata}, separators=(",", ":"))
    return {"key": _encoded(PREFIX + name), "value": _encoded(value)}


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _endpoint(server: ApiServer) -> str:
    """Where its etcd listens, as its own command line says."""
    daemons = processes.recorded(server.directory)
    pid = next(each.pid for each in daemons if each.name.startswith("kube-apiserver"))
    line = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    flag = "--etcd-servers="
    return next(each.removeprefix(flag) for each in line if each.startswith(flag))
