"""The outside of whole runs as pods of a cluster: git host with forge over TLS, package registry.

Callers: tests of runs in pods, and the demo. Pods reach the forge by the name of its Service, the
machine of the tests by a node port, whatever the cluster is made of. The registry has the node port
alone, so that a lock made on this machine and one made in a pod name the same address.
"""

import ssl
from pathlib import Path
from typing import Final

from clusterlib import processes
from clusterlib.errors import ClusterError
from clusterlib.kubectl import Kubectl, Manifest
from support.certificates import Authority, make_authority
from support.fixtures.control import HostControl, RegistryControl
from support.fixtures.launch import Host, Registry, Servers
from support.scenarios import Seen
from support.workloads import UID, namespace
from support.worlds import Outside, system_authorities

FORGE: Final = "forge"
PACKAGES: Final = "packages"
FORGE_PORT: Final = 8443
PACKAGES_PORT: Final = 8080
_READY_SECONDS: Final = 120
_TLS: Final = "/tls"


def open_servers(kubectl: Kubectl, space: str, images: dict[str, str], folder: Path) -> Outside:
    """Start both servers in a namespace of their own; may be repeated with another namespace.

    `images` are references of `fixtures` and `runner`. The servers live as long as the namespace.
    """
    kubectl.apply(namespace(space))
    kubectl.apply(
        _service(space, FORGE, 443, FORGE_PORT), _service(space, PACKAGES, 80, PACKAGES_PORT)
    )
    address = _node_address(kubectl)
    authority = make_authority(folder / "authority")
    kubectl.apply(_certificate(authority, space, address))
    kubectl.apply(
        _server(space, FORGE, images["fixtures"], ["host", *_listen(FORGE_PORT), *_tls_flags()]),
        _server(space, PACKAGES, images["fixtures"], ["registry", *_listen(PACKAGES_PORT)]),
    )
    kubectl(
        "wait", "--for=condition=Ready", "pod", "--all", "-n", space, f"--timeout={_READY_SECONDS}s"
    )
    forge = f"https://{address}:{_node_port(kubectl, space, FORGE)}"
    packages = f"http://{address}:{_node_port(kubectl, space, PACKAGES)}"
    host = Host(forge, HostControl(forge, ssl.create_default_context(cafile=str(authority.bundle))))
    registry = Registry(packages, RegistryControl(packages))
    for control in (host.control, registry.control):
        # The kubelet says Ready before every proxy knows the way.
        if not processes.wait_until(control.answers, _READY_SECONDS):
            raise ClusterError(f"{control.url} doesn't answer; look at the pods of {space}")
    bundle = folder / "bundle.crt"
    bundle.write_text(authority.bundle.read_text() + system_authorities())
    return Outside(
        Servers(host, registry),
        bundle,
        Seen(f"https://{FORGE}.{space}.svc", packages),
        images["runner"],
    )


def _listen(port: int) -> list[str]:
    return ["--host", "0.0.0.0", "--port", str(port)]


def _tls_flags() -> list[str]:
    return ["--tls-cert", f"{_TLS}/tls.crt", "--tls-key", f"{_TLS}/tls.key"]


def _service(space: str, name: str, port: int, target: int) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": space},
        "spec": {
            "type": "NodePort",
            "selector": {"app": name},
            "ports": [{"port": port, "targetPort": target, "protocol": "TCP"}],
        },
    }


def _node_address(kubectl: Kubectl) -> str:
    addresses = kubectl.get("nodes")["items"][0]["status"]["addresses"]
    return str(next(a["address"] for a in addresses if a["type"] == "InternalIP"))


def _node_port(kubectl: Kubectl, space: str, name: str) -> int:
    return int(kubectl.get("service", name, "-n", space)["spec"]["ports"][0]["nodePort"])


def _certificate(authority: Authority, space: str, address: str) -> Manifest:
    tls = authority.issue(f"{FORGE}.{space}.svc", address)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": FORGE, "namespace": space},
        "stringData": {"tls.crt": tls.certificate.read_text(), "tls.key": tls.key.read_text()},
    }


def _server(space: str, name: str, image: str, arguments: list[str]) -> Manifest:
    """A pod of one server; repositories, wheels and its log live as long as the pod."""
    port = int(arguments[arguments.index("--port") + 1])
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": space, "labels": {"app": name}},
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": UID,
                "runAsGroup": UID,
                "fsGroup": UID,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": name,
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "args": ["support.fixtures", *arguments, "--root", "/data"],
                    "readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 1},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                        "readOnlyRootFilesystem": True,
                    },
                    "volumeMounts": [
                        {"name": "data", "mountPath": "/data"},
                        {"name": "scratch", "mountPath": "/tmp"},
                        {"name": "tls", "mountPath": _TLS, "readOnly": True},
                    ],
                }
            ],
            "volumes": [
                {"name": "data", "emptyDir": {}},
                {"name": "scratch", "emptyDir": {}},
                {"name": "tls", "secret": {"secretName": FORGE}},
            ],
        },
    }


def close_servers(kubectl: Kubectl, space: str) -> None:
    """Remove the servers with their namespace; the removal goes on by itself."""
    kubectl("delete", "namespace", space, "--wait=false", "--ignore-not-found")
