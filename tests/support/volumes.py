"""Volumes of a pod that runs as a process: folders of this machine with the pod's content.

What a kubelet does, for the volume types that our pods use: claims, emptyDir, Secrets, ConfigMaps,
projected tokens bound to the pod, and annotations through the downward API.
"""

import base64
import shutil
from pathlib import Path
from typing import Any

from support.kubeapi import CORE, Json, Kube, path_of
from support.ordinary_user import owned_by_ordinary_user


class Volumes:
    """Makes the folders of one pod below `directory`; claims live below `claims` and outlast it."""

    def __init__(self, kube: Kube, pod: Json, directory: Path, claims: Path) -> None:
        self._kube = kube
        self._pod = pod
        self._namespace = str(pod["metadata"]["namespace"])
        self._directory = directory
        self._claims = claims

    async def mounts(self, container: Json) -> dict[str, Path]:
        """Make every mount of a container: mount path → folder or file of this machine."""
        folders: dict[str, Path] = {}
        for volume in self._pod["spec"].get("volumes", []):
            folders[volume["name"]] = await self._make(volume)
        result = {}
        for mount in container.get("volumeMounts", []):
            folder = folders[mount["name"]]
            if sub := mount.get("subPath"):
                folder = owned_by_ordinary_user(folder / sub)
            result[mount["mountPath"]] = folder
        return result

    def remove(self) -> None:
        """Remove what belongs to the pod alone."""
        shutil.rmtree(self._directory, ignore_errors=True)

    async def _make(self, volume: Json) -> Path:
        if claim := volume.get("persistentVolumeClaim"):
            return await self._claim(claim["claimName"])
        folder = owned_by_ordinary_user(self._directory / volume["name"])
        if secret := volume.get("secret"):
            await self._secret(folder, secret["secretName"], secret.get("items"))
        if config := volume.get("configMap"):
            await self._config_map(folder, config["name"], config.get("items"))
        if downward := volume.get("downwardAPI"):
            self._downward(folder, downward["items"])
        for source in volume.get("projected", {}).get("sources", []):
            await self._projected(folder, source)
        return folder

    async def _claim(self, name: str) -> Path:
        path = path_of(CORE, self._namespace, "persistentvolumeclaims", name)
        claim = await self._kube.get(path)
        if claim.get("status", {}).get("phase") != "Bound":
            await self._kube.patch(f"{path}/status", {"status": {"phase": "Bound"}})
        return owned_by_ordinary_user(self._claims / f"{name}-{claim['metadata']['uid']}")

    async def _secret(self, folder: Path, name: str, items: Any) -> None:
        data = (await self._kube.get(path_of(CORE, self._namespace, "secrets", name)))["data"]
        for key, path in _chosen(data, items):
            (folder / path).write_bytes(base64.b64decode(data[key]))

    async def _config_map(self, folder: Path, name: str, items: Any) -> None:
        data = (await self._kube.get(path_of(CORE, self._namespace, "configmaps", name)))["data"]
        for key, path in _chosen(data, items):
            (folder / path).write_text(data[key])

    def _downward(self, folder: Path, items: list[Json]) -> None:
        for item in items:
            field = item["fieldRef"]["fieldPath"]
            key = field.removeprefix("metadata.annotations['").removesuffix("']")
            annotations = self._pod["metadata"].get("annotations", {})
            (folder / item["path"]).write_text(annotations.get(key, ""))

    async def _projected(self, folder: Path, source: Json) -> None:
        if token := source.get("serviceAccountToken"):
            (folder / token["path"]).write_text(await self._token(token))
        if downward := source.get("downwardAPI"):
            self._downward(folder, downward["items"])
        if config := source.get("configMap"):
            await self._config_map(folder, config["name"], config.get("items"))
        if secret := source.get("secret"):
            await self._secret(folder, secret["name"], secret.get("items"))

    async def _token(self, source: Json) -> str:
        account = self._pod["spec"].get("serviceAccountName", "default")
        path = path_of(CORE, self._namespace, "serviceaccounts", account)
        metadata = self._pod["metadata"]
        bound = {
            "kind": "Pod",
            "apiVersion": "v1",
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        spec = {
            "audiences": [source["audience"]] if source.get("audience") else [],
            "expirationSeconds": source.get("expirationSeconds", 3600),
            "boundObjectRef": bound,
        }
        answer = await self._kube.create(
            f"{path}/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
        )
        return str(answer["status"]["token"])


def _chosen(data: Json, items: Any) -> list[tuple[str, str]]:
    if items:
        return [(item["key"], item["path"]) for item in items]
    return [(key, key) for key in data]
