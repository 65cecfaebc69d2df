"""A Kubernetes client for tests: any user by impersonation, whole answers, nothing hidden.

Callers: tests that ask an API server what it allows. Uses the administrator's certificate and
`Impersonate-User`, so that admission and RBAC see exactly the named user.
"""

import json
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from clusterlib.apiserver import ApiServer
from clusterlib.controlplane import admin_certificate

PATIENCE_SECONDS = 30.0
_PLURALS = {
    "NetworkPolicy": "networkpolicies",
    "UpgradePolicy": "upgradepolicies",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
}
_CLUSTER_SCOPED = frozenset(
    {
        *("Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
        *("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"),
    }
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said; `message` is the text of a refusal."""

    status: int
    body: Mapping[str, Any]

    @property
    def ok(self) -> bool:
        """Whether the request took effect."""
        return self.status < 300

    @property
    def message(self) -> str:
        """Text of a refusal, empty for success."""
        return "" if self.ok else str(self.body.get("message", ""))


@dataclass(frozen=True, slots=True)
class Kube:
    """One server, one identity. `as_user` gives another identity on the same connection."""

    client: httpx.Client
    headers: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[str, ...] = ()

    def as_user(self, name: str, groups: Iterable[str] = ()) -> "Kube":
        """Act as a user; `groups` besides `system:authenticated`."""
        return replace(
            self,
            headers={"Impersonate-User": name},
            groups=("system:authenticated", *groups),
        )

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        **query: str,
    ) -> Answer:
        """Send one request and give back the whole answer."""
        headers = [
            *self.headers.items(),
            *(("Impersonate-Group", group) for group in self.groups if self.headers),
            ("Content-Type", content_type),
        ]
        content = None if body is None else json.dumps(body)
        response = self.client.request(method, path, content=content, headers=headers, params=query)
        is_json = response.headers.get("Content-Type", "").startswith("application/json")
        return Answer(
            response.status_code, response.json() if is_json else {"message": response.text}
        )

    def create(self, obj: Mapping[str, Any], **query: str) -> Answer:
        """Create an object; unknown fields are refused."""
        return self.send("POST", collection(obj), obj, fieldValidation="Strict", **query)

    def replace(self, obj: Mapping[str, Any], subresource: str = "") -> Answer:
        """Replace an object, or one of its subresources."""
        return self.send("PUT", path_of(obj, subresource), obj)

    def merge(
        self, obj: Mapping[str, Any], patch: Mapping[str, Any], subresource: str = ""
    ) -> Answer:
        """Apply a merge patch."""
        return self.send(
            "PATCH",
            path_of(obj, subresource),
            patch,
            content_type="application/merge-patch+json",
        )

    def get(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Read an object anew; it must be there."""
        answer = self.send("GET", path_of(obj))
        assert answer.ok, answer.message
        return dict(answer.body)

    def delete(self, obj: Mapping[str, Any]) -> Answer:
        """Delete an object."""
        return self.send("DELETE", path_of(obj))

    def apply(self, obj: Mapping[str, Any]) -> None:
        """Server-side apply as the suite itself; must succeed."""
        answer = self.send(
            "PATCH",
            path_of(obj),
            obj,
            content_type="application/apply-patch+yaml",
            fieldManager="tests",
            force="true",
        )
        assert answer.ok, f"{obj['kind']} {obj['metadata']['name']}: {answer.message}"


def collection(obj: Mapping[str, Any]) -> str:
    """Path of the collection that an object belongs to."""
    group = obj["apiVersion"]
    root = f"/apis/{group}" if "/" in group else f"/api/{group}"
    kind = obj["kind"]
    plural = _PLURALS.get(kind, kind.lower() + "s")
    if kind in _CLUSTER_SCOPED:
        return f"{root}/{plural}"
    return f"{root}/namespaces/{obj['metadata']['namespace']}/{plural}"


def path_of(obj: Mapping[str, Any], subresource: str = "") -> str:
    """Path of an object or of one of its subresources."""
    path = f"{collection(obj)}/{obj['metadata']['name']}"
    return f"{path}/{subresource}" if subresource else path


@contextmanager
def connected(server: ApiServer) -> Iterator[Kube]:
    """A client with the administrator's certificate; closed at the end."""
    identity = admin_certificate(server.directory / "pki")
    context = ssl.create_default_context(cafile=str(server.ca))
    context.load_cert_chain(identity.crt, identity.key)
    with httpx.Client(base_url=server.url, verify=context, timeout=30.0) as client:
        yield Kube(client)


def eventually(holds: Callable[[], bool], what: str) -> None:
    """Ask again until it holds: for what a server takes over from its own watch, with a deadline."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS:.0f} s: {what}"
