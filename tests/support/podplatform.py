"""A platform whose pods are pods: the chart on a whole cluster, people with the chart's own roles.

Callers: tests of runs in pods.
"""

import asyncio
import io
import tarfile
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from clusterlib.kubectl import Kubectl, Manifest
from support.installation import OPERATOR, SYSTEM
from support.kubeapi import Json, Kube
from support.platform import APPROVER, REQUESTER, Platform, watching_pods
from support.workloads import namespace

_STORE: Final = "/var/lib/upgraderun/artifacts"
_PACK: Final = """
import pathlib, sys, tarfile
root = pathlib.Path(sys.argv[1])
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
    for folder in root.rglob(sys.argv[2]):
        archive.add(folder, arcname=".")
"""
RBAC: Final = "rbac.authorization.k8s.io"


@dataclass(slots=True)
class PodPlatform(Platform):
    """One namespace of a whole cluster with the operator installed in it."""

    kubectl: Kubectl = field(kw_only=True)

    def acting_as(self, user: str) -> Kube:
        """The person: admission and RBAC see them, not the administrator."""
        return self.kube.as_user(user)

    def artifacts(self, uid: str) -> Path:
        """Copy what the artifact store has of a run out of an operator's pod."""
        folder = self.logs / "artifacts" / uuid.uuid4().hex
        argv = ["exec", OPERATOR, "-n", SYSTEM, "--", "/opt/venv/bin/python", "-I", "-c", _PACK]
        packed = self.kubectl.read(*argv, _STORE, uid)
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        return folder

    def story(self, status: Json) -> str:
        """Status, journal, and the logs of the namespace's pods and of the operator."""
        kubectl = self.kubectl
        tail = "--tail=30"
        logs = [kubectl.attempt("logs", "-n", SYSTEM, OPERATOR, tail, "--all-pods").stdout]
        pods = kubectl.get("pods", "-n", self.namespace)["items"]
        for pod in pods:
            name = pod["metadata"]["name"]
            logs.append(
                f"--- {name}\n" + kubectl.attempt("logs", "-n", self.namespace, name, tail).stdout
            )
        logs.append(kubectl.attempt("get", "pods,events", "-n", self.namespace).stdout)
        return "\n".join([Platform.story(self, status), *logs])


def binding(space: str, user: str, role: str) -> Manifest:
    """Give a person one of the chart's roles in one namespace."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"{user}-{role}", "namespace": space},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": user, "apiGroup": RBAC}],
    }


@asynccontextmanager
async def images_of_pods(platform: PodPlatform) -> AsyncIterator[dict[str, str]]:
    """Note the image id that the kubelet reports of each pod, by UID, while the block runs."""
    seen: dict[str, str] = {}

    async def note(pod: Json) -> None:
        for container in pod.get("status", {}).get("containerStatuses", []):
            if container["imageID"]:
                seen[pod["metadata"]["uid"]] = container["imageID"]

    async with watching_pods(platform, note):
        yield seen


@asynccontextmanager
async def last_words(platform: PodPlatform) -> AsyncIterator[dict[str, str]]:
    """Keep the log of every pod whose container ends while the block runs, by the pod's name."""
    kept: dict[str, str] = {}

    async def note(pod: Json) -> None:
        name = pod["metadata"]["name"]
        states = pod.get("status", {}).get("containerStatuses", [])
        if name not in kept and any("terminated" in status["state"] for status in states):
            argv = ("logs", "-n", platform.namespace, name)
            done = await asyncio.to_thread(platform.kubectl.attempt, *argv)
            if done.returncode == 0:
                kept[name] = done.stdout

    async with watching_pods(platform, note):
        yield kept


@asynccontextmanager
async def open_platform(
    kube: Kube, kubectl: Kubectl, policy: Json, bundle: str, folder: Path
) -> AsyncIterator[PodPlatform]:
    """Make a namespace that enforces Pod Security "restricted"; it is deleted at the end."""
    space = f"runs-{uuid.uuid4().hex[:6]}"
    kubectl.apply(namespace(space))
    kubectl.apply(
        binding(space, REQUESTER, "upgraderun-editor"),
        binding(space, APPROVER, "upgraderun-approver"),
    )
    platform = PodPlatform(kube, space, policy, folder, kubectl=kubectl)
    await platform.apply_config("trust", {"ca.crt": bundle})
    try:
        yield platform
    finally:
        kubectl("delete", "namespace", space, "--timeout=120s")
