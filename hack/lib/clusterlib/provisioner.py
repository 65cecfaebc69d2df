"""Dynamic local volumes: a folder per claim, made on the node the scheduler chose, wiped on release.

Callers: `local` starts it as a daemon of its own (`hack/cluster provision`). It holds no state: each
pass compares claims and volumes, and every step may be repeated. The folder of a volume is deleted
before the volume object, so that a crash in between only repeats the deletion.
"""

import contextlib
import http.client
import queue
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Never

from clusterlib.client import ApiStatusError, Client

PROVISIONER = "upgraderun.dev/local"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
CLAIMS = "/api/v1/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
WATCH_SECONDS = 300
RETRY_SECONDS = 1.0
Document = dict[str, Any]


def run(client: Client, storage_class: str, folders: Callable[[], Mapping[str, Path]]) -> Never:
    """Serve for ever. `folders` says, anew for each pass, where each node's volumes live."""
    changes: queue.SimpleQueue[str] = queue.SimpleQueue()
    for path in (CLAIMS, VOLUMES):
        threading.Thread(target=_watch, args=(client, path, changes), daemon=True).start()
    while True:
        changes.get()
        while not changes.empty():
            changes.get()
        try:
            reconcile(client, storage_class, folders())
        except (ApiStatusError, OSError, http.client.HTTPException) as error:
            print(f"pass failed, trying again: {error}", file=sys.stderr, flush=True)
            time.sleep(RETRY_SECONDS)
            changes.put("retry")


def reconcile(client: Client, storage_class: str, folders: Mapping[str, Path]) -> None:
    """One pass: volumes for claims that wait for us, deletion of volumes that were released."""
    volumes = client.request("GET", VOLUMES)["items"]
    existing = {volume["metadata"]["name"] for volume in volumes}
    for claim in client.request("GET", CLAIMS)["items"]:
        node = claim["metadata"].get("annotations", {}).get(SELECTED_NODE)
        if claim["spec"].get("storageClassName") != storage_class or node not in folders:
            continue
        name = f"pvc-{claim['metadata']['uid']}"
        if not claim["spec"].get("volumeName") and name not in existing:
            _provision(client, claim, name, node, folders[node] / name)
    for volume in volumes:
        if _is_released(volume):
            _wipe(client, volume, folders)


def _provision(client: Client, claim: Document, name: str, node: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o777)  # as other local provisioners do: any user of a pod may write
    hostname = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    owner = claim["metadata"]
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "accessModes": claim["spec"]["accessModes"],
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": claim["spec"]["storageClassName"],
            "local": {"path": str(folder)},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": owner["namespace"],
                "name": owner["name"],
                "uid": owner["uid"],
            },
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [hostname]}]}},
        },
    }
    _tolerate(http.client.CONFLICT, client, "POST", VOLUMES, volume)
    print(f"made {name} for {owner['namespace']}/{owner['name']} on {node}", flush=True)


def _is_released(volume: Document) -> bool:
    ours = volume["metadata"].get("annotations", {}).get(PROVISIONED_BY) == PROVISIONER
    return bool(ours and volume.get("status", {}).get("phase") == "Released")


def _wipe(client: Client, volume: Document, folders: Mapping[str, Path]) -> None:
    name = volume["metadata"]["name"]
    folder = Path(volume["spec"]["local"]["path"])
    if folder.name != name or folder.parent not in folders.values():
        print(f"{name} points to {folder}, which isn't ours: left alone", flush=True)
        return
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)
    _tolerate(http.client.NOT_FOUND, client, "DELETE", f"{VOLUMES}/{name}")
    print(f"wiped {name}", flush=True)


def _tolerate(
    status: int, client: Client, method: str, path: str, body: Document | None = None
) -> None:
    """A request whose repetition is harmless: this status says that it was done before."""
    try:
        client.request(method, path, body)
    except ApiStatusError as error:
        if error.status != status:
            raise


def _watch(client: Client, path: str, changes: "queue.SimpleQueue[str]") -> None:
    """Report every change of a collection, and once whenever a watch begins anew."""
    while True:
        changes.put(path)
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = client.connect(WATCH_SECONDS + 30)
            connection.request("GET", f"{path}?watch=true&timeoutSeconds={WATCH_SECONDS}")
            answer = connection.getresponse()
            while answer.readline():
                changes.put(path)
            connection.close()
        time.sleep(RETRY_SECONDS)
