"""The operator as a platform team installs it: the chart, by helm, on a whole cluster.

Callers: tests of runs in pods, and the demo. There is one installation per cluster, so installing
again upgrades what is there.
"""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from clusterlib import binaries
from clusterlib.errors import ClusterError
from clusterlib.kubectl import Kubectl, Manifest
from support.podservers import FORGE_PORT
from support.toolchain import ROOT

RELEASE: Final = "upgraderun-operator"
SYSTEM: Final = "upgraderun-system"
OPERATOR: Final = "deployment/upgraderun-operator"
OPERATOR_ACCOUNT: Final = f"system:serviceaccount:{SYSTEM}:upgraderun-operator"
CHART: Final = ROOT / "charts" / "upgraderun-operator"
AUTHORITIES: Final = "forge-ca"
_ROLLOUT_SECONDS: Final = 180


@dataclass(frozen=True, slots=True)
class Installation:
    """What differs between installations. `bundle`: whom the operator trusts.

    `secrets` and `config_maps` are the names that the operator may read; `variables` are added to
    the environment of its container.
    """

    image: str
    bundle: Path
    secrets: tuple[str, ...]
    config_maps: tuple[str, ...] = ()
    replicas: int = 1
    variables: Mapping[str, str] | None = None
    soft_bytes: int | None = None

    def values(self) -> dict[str, Any]:
        """The chart's values."""
        repository, digest = self.image.split("@")
        port = {"port": FORGE_PORT, "protocol": "TCP"}
        values: dict[str, Any] = {
            "image": {"repository": repository, "digest": digest},
            "replicas": self.replicas,
            "sandbox": {"allowInline": True},
            "credentials": {"secretNames": list(self.secrets)},
            "scripted": {"configMapNames": list(self.config_maps)},
            "trust": {"caBundle": {"configMap": AUTHORITIES, "key": "ca.crt"}},
            "networkPolicy": {"extraEgress": [{"ports": [port]}]},
            "extraEnv": [{"name": k, "value": v} for k, v in (self.variables or {}).items()],
        }
        if self.soft_bytes is not None:
            values["engine"] = {"statusSoftBytes": self.soft_bytes}
        return values


def install(kubectl: Kubectl, installation: Installation) -> None:
    """Install or upgrade, and wait until every replica is ready with these values."""
    namespace: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}
    authorities: Manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": AUTHORITIES, "namespace": SYSTEM},
        "data": {"ca.crt": installation.bundle.read_text()},
    }
    kubectl.apply(namespace, authorities)
    flags = [
        part
        for key, value in installation.values().items()
        for part in ("--set-json", f"{key}={json.dumps(value)}")
    ]
    chart = ["upgrade", "--install", RELEASE, str(CHART), "--namespace", SYSTEM, "--reset-values"]
    # Kinds outlive a release, and may have been there before the first one.
    helm(kubectl, *chart, "--take-ownership", *flags)
    # The authorities may have changed, and a process reads them once.
    kubectl("rollout", "restart", OPERATOR, "-n", SYSTEM)
    wait = f"--timeout={_ROLLOUT_SECONDS}s"
    kubectl("rollout", "status", OPERATOR, "-n", SYSTEM, wait)


def uninstall(kubectl: Kubectl) -> None:
    """Remove the operator. The kinds, their objects and the artifacts stay."""
    helm(kubectl, "uninstall", RELEASE, "--namespace", SYSTEM, "--ignore-not-found", "--wait")


def helm(kubectl: Kubectl, *arguments: str) -> str:
    """Run helm as the administrator; give back stdout."""
    program = str(binaries.path_of("helm"))
    done = subprocess.run(
        [program, f"--kubeconfig={kubectl.kubeconfig}", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ClusterError(f"helm {arguments[0]}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
