"""Kubelet, kube-proxy and kube-router of one node: configuration files and command lines.

Callers: `local`. All three run on the host, in the node's network namespace.
"""

import json
from pathlib import Path
from typing import Any

from clusterlib import binaries, kubeconfig
from clusterlib.certificates import ensure_certificate
from clusterlib.files import write_changed
from clusterlib.layout import Layout, Node


def kubelet_argv(layout: Layout, node: Node) -> list[str]:
    """The kubelet, under its own folder and its own cgroup."""
    identity = ensure_certificate(
        layout.pki,
        f"kubelet-{node.name}",
        f"system:node:{node.name}",
        ["system:nodes"],
        [node.name, node.address],
    )
    access = kubeconfig.write(
        node.home / "kubelet.kubeconfig", layout.server, layout.pki / "ca.crt", identity
    )
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "readOnlyPort": 0,
        "tlsCertFile": str(identity.crt),
        "tlsPrivateKeyFile": str(identity.key),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(layout.pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{node.socket}",
        "clusterDNS": [layout.dns_ip],
        "clusterDomain": "cluster.local",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.cgroup}",
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "makeIPTablesUtilChains": False,
        "podLogsDir": str(node.home / "pod-logs"),
        "volumePluginDir": str(node.home / "plugins"),
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "nodefs.inodesFree": "1%",
            "imagefs.available": "1%",
        },
        # Images come from no registry: one that is collected can't be pulled again.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
    }
    return [
        str(binaries.path_of("kubelet")),
        f"--config={_write(node.home / 'kubelet.json', config)}",
        f"--kubeconfig={access}",
        f"--root-dir={node.home / 'kubelet'}",
        f"--cert-dir={node.home / 'kubelet-pki'}",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
    ]


def proxy_argv(layout: Layout, node: Node) -> list[str]:
    """kube-proxy with nftables; it leaves the connection tracking limits of the host alone."""
    identity = ensure_certificate(layout.pki, "kube-proxy", "system:kube-proxy")
    access = kubeconfig.write(
        node.home / "proxy.kubeconfig", layout.server, layout.pki / "ca.crt", identity
    )
    config = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "hostnameOverride": node.name,
        "clusterCIDR": layout.pod_cidr,
        "clientConnection": {"kubeconfig": str(access)},
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }
    return [
        str(binaries.path_of("kube-proxy")),
        f"--config={_write(node.home / 'proxy.json', config)}",
    ]


def router_argv(layout: Layout, node: Node) -> list[str]:
    """kube-router for NetworkPolicy alone."""
    identity = ensure_certificate(layout.pki, "kube-router", "kube-router")
    access = kubeconfig.write(
        node.home / "router.kubeconfig", layout.server, layout.pki / "ca.crt", identity
    )
    return [
        str(binaries.path_of("kube-router")),
        f"--kubeconfig={access}",
        f"--hostname-override={node.name}",
        f"--service-cluster-ip-range={layout.service_cidr}",
        "--run-firewall=true",
        "--run-router=false",
        "--run-service-proxy=false",
        "--run-loadbalancer=false",
        "--enable-cni=false",
        "--health-port=0",
        "--metrics-port=0",
    ]


def _write(path: Path, config: dict[str, Any]) -> Path:
    return write_changed(path, json.dumps(config, indent=2))
