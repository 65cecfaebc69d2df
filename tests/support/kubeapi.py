"""A plain Kubernetes client for tests: JSON in, JSON out, no opinions.

Tests act through it as users, schedulers and strangers. The product has its own client.
"""

import base64
import copy
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx
import yaml

Json = dict[str, Any]

CORE: Final = "/api/v1"
OURS: Final = "/apis/upgraderun.dev/v1alpha1"
LEASES: Final = "/apis/coordination.k8s.io/v1"


class KubeError(AssertionError):
    """The API server said no; `status` is its code, `reason` its reason."""

    def __init__(self, method: str, path: str, status: int, body: str) -> None:
        super().__init__(f"{method} {path}: {status} {body[:600]}")
        self.status = status
        self.body = body

    @property
    def message(self) -> str:
        """What the API server tells a person."""
        try:
            return str(json.loads(self.body).get("message", self.body))
        except ValueError:
            return self.body


def path_of(prefix: str, namespace: str | None, plural: str, name: str | None = None) -> str:
    """Spell the path of a collection or an object."""
    scope = f"{prefix}/namespaces/{namespace}/{plural}" if namespace else f"{prefix}/{plural}"
    return f"{scope}/{name}" if name else scope


class Kube:
    """One identity at one API server. Use it as an async context manager."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cadata=_pem(cluster, "certificate-authority"))
        headers = {}
        if "token" in user:
            headers["Authorization"] = f"Bearer {user['token']}"
        else:
            _load_identity(context, user)
        self._client = httpx.AsyncClient(
            base_url=cluster["server"],
            verify=context,
            headers=headers,
            trust_env=False,
            timeout=httpx.Timeout(30.0),
        )

        self._user = ""

    def as_user(self, name: str) -> "Kube":
        """Act as somebody else on the same connections, by impersonation."""
        other = copy.copy(self)
        other._user = name
        return other

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client.aclose()

    async def call(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        content_type: str = "application/json",
        params: Mapping[str, str] | None = None,
    ) -> Json:
        """Send one request. Raises KubeError for every status from 400 on."""
        who = {"Impersonate-User": self._user} if self._user else {}
        answer = await self._client.request(
            method,
            path,
            content=None if body is None else json.dumps(body),
            headers={"Content-Type": content_type, **who},
            params=dict(params or {}),
        )
        if answer.status_code >= 400:
            raise KubeError(method, path, answer.status_code, answer.text)
        return dict(answer.json())

    async def get(self, path: str) -> Json:
        """Read an object."""
        return await self.call("GET", path)

    async def find(self, path: str) -> Json | None:
        """Read an object that may be absent."""
        try:
            return await self.get(path)
        except KubeError as error:
            if error.status == 404:
                return None
            raise

    async def items(self, path: str, **params: str) -> list[Json]:
        """List a collection."""
        return list((await self.call("GET", path, params=params))["items"])

    async def create(self, path: str, body: Json) -> Json:
        """Create an object in a collection."""
        return await self.call("POST", path, body)

    async def replace(self, path: str, body: Json) -> Json:
        """Put a whole object."""
        return await self.call("PUT", path, body)

    async def patch(self, path: str, body: Json) -> Json:
        """Merge a patch."""
        return await self.call("PATCH", path, body, content_type="application/merge-patch+json")

    async def delete(self, path: str, *, grace: int | None = None) -> None:
        """Delete an object; absent is fine."""
        body = None if grace is None else {"gracePeriodSeconds": grace}
        try:
            await self.call("DELETE", path, body)
        except KubeError as error:
            if error.status != 404:
                raise

    async def apply(self, manifest: Json) -> Json:
        """Server-side apply of any manifest, as `kubectl apply --server-side` does."""
        path = await self._path_for(manifest)
        return await self.call(
            "PATCH",
            path,
            manifest,
            content_type="application/apply-patch+yaml",
            params={"fieldManager": "tests", "force": "true"},
        )

    async def watch(self, path: str, version: str = "", **params: str) -> AsyncIterator[Json]:
        """Stream events of a collection from a version on, until the server ends the stream."""
        query = {"watch": "1", "resourceVersion": version, **params}
        async with self._client.stream("GET", path, params=query, timeout=None) as answer:
            async for line in answer.aiter_lines():
                yield json.loads(line)

    async def _path_for(self, manifest: Json) -> str:
        version, kind = manifest["apiVersion"], manifest["kind"]
        prefix = CORE if version == "v1" else f"/apis/{version}"
        resources = (await self.get(prefix))["resources"]
        row = next(r for r in resources if r["kind"] == kind and "/" not in r["name"])
        metadata = manifest["metadata"]
        namespace = metadata.get("namespace", "default") if row["namespaced"] else None
        return path_of(prefix, namespace, row["name"], metadata["name"])


def _pem(section: Mapping[str, Any], field: str) -> str:
    if f"{field}-data" in section:
        return base64.b64decode(section[f"{field}-data"]).decode()
    return Path(section[field]).read_text()


def _load_identity(context: ssl.SSLContext, user: Mapping[str, Any]) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(_pem(user, "client-certificate") + "\n" + _pem(user, "client-key"))
        file.flush()
        context.load_cert_chain(file.name)
