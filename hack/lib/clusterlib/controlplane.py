"""Command lines of etcd and of the Kubernetes control plane; the same for API mode and a cluster.

Callers: `apiserver` and `local`. Pure but for the small files that the API server reads.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clusterlib.certificates import Certificate, ensure_certificate, ensure_key_pair

LOOPBACK = "127.0.0.1"
ISSUER = "https://kubernetes.default.svc.cluster.local"
DEFAULT_FEATURE_GATES: Mapping[str, bool] = {"MutatingAdmissionPolicy": True}
# Beta APIs that a gate needs; the API server serves no beta API by itself.
RUNTIME_CONFIG = {"MutatingAdmissionPolicy": "admissionregistration.k8s.io/v1beta1=true"}
# Reads are left out: the log is for counting and attributing writes.
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "verbs": ["create", "update", "patch", "delete", "deletecollection"]},
        {"level": "None"},
    ],
}


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What differs between API servers."""

    address: str
    port: int
    etcd_port: int
    service_cidr: str
    first_service_ip: str
    feature_gates: Mapping[str, bool]
    advertise: bool


def etcd_argv(binary: Path, data: Path, port: int, peer_port: int, *, fsync: bool) -> list[str]:
    """One member on loopback. Without fsync it is faster and loses data when the machine stops."""
    client, peer = f"http://{LOOPBACK}:{port}", f"http://{LOOPBACK}:{peer_port}"
    return [
        str(binary),
        "--name=etcd",
        f"--data-dir={data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=etcd={peer}",
        "--log-level=warn",
        *([] if fsync else ["--unsafe-no-fsync"]),
    ]


def api_server_argv(binary: Path, pki: Path, audit_log: Path, options: ServerOptions) -> list[str]:
    """An API server with RBAC, token issuing, default admission and an audit log of writes."""
    serving = ensure_certificate(
        pki,
        f"apiserver-{options.address}",
        "kube-apiserver",
        hosts=(
            *("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"),
            "kubernetes.default.svc.cluster.local",
            *dict.fromkeys((options.address, LOOPBACK, options.first_service_ip)),
        ),
    )
    to_kubelet = ensure_certificate(pki, "apiserver-kubelet", "kube-apiserver", ["system:masters"])
    signer = ensure_key_pair(pki, "service-accounts")
    policy = pki / "audit-policy.json"
    policy.write_text(json.dumps(AUDIT_POLICY))
    audit_log.parent.mkdir(parents=True, exist_ok=True)
    gates, apis = _features(options.feature_gates)
    return [
        str(binary),
        f"--etcd-servers=http://{LOOPBACK}:{options.etcd_port}",
        f"--bind-address={options.address}",
        f"--secure-port={options.port}",
        *_endpoint_flags(options),
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--tls-cert-file={serving.crt}",
        f"--tls-private-key-file={serving.key}",
        f"--kubelet-client-certificate={to_kubelet.crt}",
        f"--kubelet-client-key={to_kubelet.key}",
        f"--kubelet-certificate-authority={pki / 'ca.crt'}",
        "--kubelet-preferred-address-types=InternalIP",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        f"--service-cluster-ip-range={options.service_cidr}",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-signing-key-file={signer}",
        f"--service-account-key-file={signer.with_suffix('.pub')}",
        f"--audit-policy-file={policy}",
        f"--audit-log-path={audit_log}",
        "--audit-log-maxsize=100",
        "--audit-log-maxbackup=1",
        *gates,
        *apis,
    ]


def controller_manager_argv(binary: Path, pki: Path, kubeconfig: Path, port: int) -> list[str]:
    """All controllers, each with its own service account. Node loss shows after 16 s, not 50 s."""
    signer = ensure_key_pair(pki, "service-accounts")
    return [
        str(binary),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--cert-dir={pki / 'controller-manager'}",
        "--leader-elect=false",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={signer}",
        f"--root-ca-file={pki / 'ca.crt'}",
        f"--cluster-signing-cert-file={pki / 'ca.crt'}",
        f"--cluster-signing-key-file={pki / 'ca.key'}",
        "--node-monitor-grace-period=16s",
    ]


def scheduler_argv(binary: Path, pki: Path, kubeconfig: Path, port: int) -> list[str]:
    """The scheduler with its defaults."""
    return [
        str(binary),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--cert-dir={pki / 'scheduler'}",
        "--leader-elect=false",
    ]


def admin_certificate(pki: Path) -> Certificate:
    """The identity that may do everything."""
    return ensure_certificate(pki, "admin", "kubernetes-admin", ["system:masters"])


def _endpoint_flags(options: ServerOptions) -> list[str]:
    if options.advertise:
        return [f"--advertise-address={options.address}"]
    # A loopback address can't be an endpoint of the `kubernetes` Service; nothing needs it here.
    return ["--endpoint-reconciler-type=none"]


def _features(gates: Mapping[str, bool]) -> tuple[list[str], list[str]]:
    if not gates:
        return [], []
    names = ",".join(f"{name}={str(on).lower()}" for name, on in sorted(gates.items()))
    apis = [RUNTIME_CONFIG[name] for name, on in gates.items() if on and name in RUNTIME_CONFIG]
    return [f"--feature-gates={names}"], [f"--runtime-config={','.join(apis)}"] if apis else []
