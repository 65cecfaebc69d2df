"""The chart on a real API server: helm installs it once per cluster, and its CEL is well typed."""

from functools import partial
from typing import Any

import pytest

from clusterlib.apiserver import ApiServer
from support.chart import CHART, NAMESPACE, RELEASE, HelmError, crds, helm
from support.kube import Kube, eventually

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"


@pytest.fixture(scope="module")
def notes(server: ApiServer, admin: Kube) -> str:
    """What helm prints after installing, on a server where somebody left a kind behind."""
    admin.apply(crds()[0])
    return install(server, RELEASE, NAMESPACE, "--take-ownership")


def install(server: ApiServer, release: str, namespace: str, *flags: str) -> str:
    return helm(
        *("install", release, str(CHART), "--namespace", namespace, "--create-namespace"),
        *("--kubeconfig", str(server.kubeconfig), *flags),
    )


def policies(admin: Kube) -> list[dict[str, Any]]:
    return list(admin.send("GET", POLICIES).body["items"])


def all_are_type_checked(admin: Kube) -> bool:
    return all("typeChecking" in policy.get("status", {}) for policy in policies(admin))


class TestInstall:
    """security.md §11: one installation per cluster, which the chart checks."""

    def test_helm_installs_it_and_says_what_to_do_next(self, notes: str) -> None:
        assert f"helm test {RELEASE} --namespace {NAMESPACE}" in notes
        assert "--clusterrole=upgraderun-approver" in notes
        assert "monitoring.prometheusRule.enabled is off" in notes
        assert "sandbox.allowInline is off" in notes
        assert "kubectl get runs --watch" in notes
        assert 'approver: "$(kubectl auth whoami' in notes

    def test_a_second_installation_is_refused(self, server: ApiServer, notes: str) -> None:
        with pytest.raises(HelmError, match="this cluster has an installation already"):
            install(server, "another", "elsewhere")

    def test_the_kinds_are_of_the_release(self, admin: Kube, notes: str) -> None:
        """So that `helm upgrade` upgrades them, which it doesn't do with a folder `crds/`."""
        for crd in crds():
            annotations = admin.get(crd)["metadata"]["annotations"]
            assert RELEASE == annotations["meta.helm.sh/release-name"]
            assert "keep" == annotations["helm.sh/resource-policy"]

    def test_an_upgrade_mends_the_kinds(self, server: ApiServer, admin: Kube, notes: str) -> None:
        run = next(crd for crd in crds() if "UpgradeRun" == crd["spec"]["names"]["kind"])
        names = run["spec"]["names"]
        older = {**names, "shortNames": names["shortNames"][:1]}
        assert admin.merge(run, {"spec": {"names": older}}).ok

        helm(
            *("upgrade", RELEASE, str(CHART), "--namespace", NAMESPACE),
            *("--kubeconfig", str(server.kubeconfig)),
        )

        assert names["shortNames"] == admin.get(run)["spec"]["names"]["shortNames"]

    def test_the_same_installation_can_be_upgraded(self, server: ApiServer, notes: str) -> None:
        told = helm(
            *("upgrade", RELEASE, str(CHART), "--namespace", NAMESPACE),
            *("--kubeconfig", str(server.kubeconfig), "--set", "sandbox.allowInline=true"),
        )

        assert "sandbox.allowInline is off" not in told

    def test_an_upgrade_keeps_the_certificate(
        self, server: ApiServer, admin: Kube, notes: str
    ) -> None:
        """security.md §9: the leader fills the Secret; helm must not empty it."""
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": f"{RELEASE}-tls", "namespace": NAMESPACE},
        }
        assert admin.merge(secret, {"stringData": {"ca.crt": "authority"}}).ok

        helm(
            *("upgrade", RELEASE, str(CHART), "--namespace", NAMESPACE),
            *("--kubeconfig", str(server.kubeconfig), "--set", "replicas=3"),
        )

        assert ["ca.crt"] == list(admin.get(secret)["data"])

    def test_the_servers_type_checker_has_nothing_to_say(self, admin: Kube, notes: str) -> None:
        eventually(partial(all_are_type_checked, admin), "the policies are type-checked")

        warnings = {
            policy["metadata"]["name"]: policy["status"]["typeChecking"].get("expressionWarnings")
            for policy in policies(admin)
        }

        assert 6 == len(warnings)
        assert dict.fromkeys(warnings) == warnings
