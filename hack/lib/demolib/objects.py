"""Manifests that the demo applies: what a platform team, a requester and an approver write.

Callers: `demolib.show`.
"""

from typing import Any, Final

from demolib.tools import Manifest

OURS: Final = "upgraderun.dev/v1alpha1"
TOKEN_KEY: Final = "token"  # noqa: S105 - the key in a Secret, not a secret


def namespace(name: str) -> Manifest:
    """A namespace that enforces Pod Security "restricted"."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def plain(kind: str, name: str, space: str, **fields: Any) -> Manifest:
    """An object of the core group."""
    metadata = {"name": name, "namespace": space}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}


def outside(name: str, space: str, address: str, port: int) -> list[Manifest]:
    """A Service that leads to a server outside of the cluster."""
    metadata = {
        "name": name,
        "namespace": space,
        "labels": {"kubernetes.io/service-name": name},
    }
    ports = [{"name": "main", "port": port, "protocol": "TCP"}]
    return [
        plain("Service", name, space, spec={"ports": [{**ports[0], "targetPort": port}]}),
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": metadata,
            "addressType": "IPv4",
            "ports": ports,
            "endpoints": [{"addresses": [address]}],
        },
    ]


def binding(user: str, role: str, space: str) -> Manifest:
    """Give a person one of the chart's roles in one namespace."""
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"{user}-{role}", "namespace": space},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": user, "apiGroup": group}],
    }


def ours(kind: str, name: str, space: str, spec: Manifest, **annotations: str) -> Manifest:
    """An object of one of our kinds."""
    notes = {f"upgraderun.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    metadata = {"name": name, "namespace": space, "annotations": notes}
    return {"apiVersion": OURS, "kind": kind, "metadata": metadata, "spec": spec}


def secret_of(name: str) -> Manifest:
    """How a policy names a token."""
    return {"secretRef": {"name": name, "key": TOKEN_KEY}}
