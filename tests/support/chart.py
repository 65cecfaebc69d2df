"""Render the chart with the real helm, for tests of manifests and for suites that install it."""

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

import manifests
from clusterlib import binaries

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "upgraderun-operator"
RELEASE = "upgraderun-operator"
NAMESPACE = "upgraderun-system"
OPERATOR = f"system:serviceaccount:{NAMESPACE}:{RELEASE}"
MUTATING = "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy"


class HelmError(Exception):
    """helm refused; the message is its own."""


def helm(*arguments: str, stdin: str | None = None) -> str:
    """Run helm and give back stdout. Raises HelmError."""
    binaries.ensure(["helm"])
    done = subprocess.run(
        [str(binaries.path_of("helm")), *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise HelmError(done.stderr.strip())
    return done.stdout


def render(
    values: Mapping[str, Any] | None = None, api_versions: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """Objects of the chart without its CRDs. Raises HelmError for values that it refuses."""
    arguments = [
        *("template", RELEASE, str(CHART), "--namespace", NAMESPACE, "--kube-version", "1.34.4"),
        *("--values", "-"),
        *(f"--api-versions={version}" for version in api_versions),
    ]
    text = helm(*arguments, stdin=yaml.safe_dump(dict(values or {})))
    kinds = "CustomResourceDefinition"
    return [obj for obj in manifests.read_all(text) if obj["kind"] != kinds]


def crds() -> list[dict[str, Any]]:
    """The CRDs that the chart carries."""
    return [
        manifests.read(path.read_text(encoding="utf-8"))
        for path in sorted((CHART / "files" / "crds").iterdir())
    ]
