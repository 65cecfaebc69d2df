"""Golden files of the chart, and the kustomize base: equal to what helm makes of the chart today."""

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import manifests
from clusterlib import binaries
from renderings import BASE, GOLDEN, NAMESPACE, ROOT, VALUES, renderings
from support.chart import CHART, RELEASE, crds, helm

NAMES = [*(f"{name}.yaml" for name in VALUES)]


@cache
def fresh() -> dict[Path, str]:
    return dict(renderings())


@pytest.mark.parametrize("path", [*(GOLDEN / name for name in NAMES), BASE], ids=str)
def test_the_file_is_what_helm_makes(path: Path) -> None:
    """Run `make generate`, read the difference, and commit it if it is meant."""
    assert fresh()[path] == (ROOT / path).read_text(encoding="utf-8")


def test_no_golden_file_is_left_behind() -> None:
    assert set(NAMES) == {path.name for path in (ROOT / GOLDEN).iterdir()}


@pytest.mark.parametrize("name", [name for name in VALUES if name != "default"])
def test_each_set_of_values_makes_a_difference(name: str) -> None:
    assert len(list(manifests.read_all(fresh()[GOLDEN / f"{name}.yaml"]))) >= 1


def built(folder: str) -> dict[tuple[str, str], dict[str, Any]]:
    """What `kubectl kustomize` makes of a folder, by kind and name."""
    binaries.ensure(["kubectl"])
    done = subprocess.run(
        [str(binaries.path_of("kubectl")), "kustomize", str(ROOT / "kustomize" / folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    return named(done.stdout)


def named(text: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Objects of a text, by kind and name."""
    return {(obj["kind"], obj["metadata"]["name"]): obj for obj in manifests.read_all(text)}


class TestKustomize:
    """For who builds without helm: the same objects as the chart's defaults."""

    def test_the_base_has_the_objects_of_the_chart_and_their_namespace(self) -> None:
        text = helm(
            *("template", RELEASE, str(CHART), "--namespace", NAMESPACE, "--skip-tests"),
            *("--kube-version", "1.34.4"),
        )
        charted = named(text)
        base = built("base")

        assert {*charted, ("Namespace", NAMESPACE)} == set(base)
        deployment = ("Deployment", RELEASE)
        assert (
            charted[deployment]["spec"]["template"]["spec"]
            == base[deployment]["spec"]["template"]["spec"]
        )

    def test_the_kinds_are_the_generated_ones(self) -> None:
        base = built("base")

        for crd in crds():
            made = base[("CustomResourceDefinition", crd["metadata"]["name"])]
            assert crd["spec"] == made["spec"]

    def test_nothing_says_helm(self) -> None:
        assert "helm" not in (ROOT / BASE).read_text(encoding="utf-8").lower().partition("\n")[2]

    def test_the_example_changes_what_it_says(self) -> None:
        objects = built("example")
        (container,) = objects[("Deployment", RELEASE)]["spec"]["template"]["spec"]["containers"]
        values = {entry["name"]: entry.get("value") for entry in container["env"]}
        rules = objects[("ClusterRole", f"{RELEASE}-runs")]["rules"]

        assert container["image"].startswith("registry.example.com/upgraderun-operator@sha256:")
        assert "true" == values["UPGRADERUN_ALLOW_INLINE"]
        assert "forge-read,forge-write" == values["UPGRADERUN_CREDENTIAL_SECRETS"]
        assert {"forge-read", "forge-write"} == {
            name
            for rule in rules
            if "secrets" in rule["resources"]
            for name in rule["resourceNames"]
        }
        assert len(values) > 10
