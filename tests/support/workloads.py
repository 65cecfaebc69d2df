"""Manifests of small pods, Services, claims and policies for tests of the cluster itself.

Callers: suites under `tests/cluster`. Pods satisfy the `restricted` profile of Pod Security.
"""

from typing import Any, Final

Manifest = dict[str, Any]
UID: Final = 65532
AUDIENCE: Final = "upgraderun.test"
HTTP_PORT: Final = 8080
# Serves the volume's files; the first line written there tells which pod incarnation wrote it.
SERVER: Final = """
import http.server, pathlib
page = pathlib.Path("/data/page")
if not page.exists():
    page.write_text("first")
http.server.test(http.server.SimpleHTTPRequestHandler, port=8080, bind="0.0.0.0")
"""


def namespace(name: str) -> Manifest:
    """A namespace that refuses pods outside the `restricted` profile."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def claim(space: str, name: str) -> Manifest:
    """A claim at the default StorageClass."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": space},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "16Mi"}},
        },
    }


def pod(
    space: str,
    name: str,
    image: str,
    program: str,
    *,
    node: str | None = None,
    claim_name: str | None = None,
    restart: str = "Always",
) -> Manifest:
    """A pod that runs a Python program, with a token for AUDIENCE and perhaps a claim at /data."""
    token = {"serviceAccountToken": {"path": "token", "audience": AUDIENCE}}
    volumes: list[Manifest] = [{"name": "token", "projected": {"sources": [token]}}]
    mounts = [{"name": "token", "mountPath": "/token", "readOnly": True}]
    if claim_name:
        volumes.append({"name": "data", "persistentVolumeClaim": {"claimName": claim_name}})
        mounts.append({"name": "data", "mountPath": "/data"})
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-c", program],
        "workingDir": "/data" if claim_name else "/",
        "volumeMounts": mounts,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    placement = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": space, "labels": {"app": name}},
        "spec": {
            "restartPolicy": restart,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": UID,
                "runAsGroup": UID,
                "fsGroup": UID,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": volumes,
            **placement,
        },
    }


def service(space: str, name: str) -> Manifest:
    """A Service in front of the pod of that name."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": space},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": HTTP_PORT}]},
    }


def deny_all(space: str) -> Manifest:
    """No traffic in or out for any pod of the namespace."""
    return _policy(space, "deny-all", {"policyTypes": ["Ingress", "Egress"]})


def allow(space: str, client: str, server: str) -> Manifest:
    """One client may talk to one server; DNS isn't part of it."""
    return _policy(
        space,
        f"{client}-to-{server}",
        {
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [_selected(client)]}],
            "egress": [{"to": [_selected(server)]}],
        },
    )


def _selected(name: str) -> Manifest:
    return {"podSelector": {"matchLabels": {"app": name}}}


def _policy(space: str, name: str, spec: Manifest) -> Manifest:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": space},
        "spec": {"podSelector": {}, **spec},
    }
