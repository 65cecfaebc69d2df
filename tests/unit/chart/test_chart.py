"""The chart, rendered by the real helm: shapes, safety, and agreement with the code."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import manifests
from support.chart import (
    CHART,
    MUTATING,
    NAMESPACE,
    OPERATOR,
    RELEASE,
    HelmError,
    crds,
    helm,
    render,
)
from upgraderun_operator.model import names
from upgraderun_operator.settings import PREFIX, read_settings

GOLDEN = Path(__file__).resolve().parent / "rbac.golden.yaml"
NAME = "upgraderun-operator"
READ_WRITE_MANY = {"artifacts": {"accessMode": "ReadWriteMany"}}


@cache
def defaults() -> list[dict[str, Any]]:
    return render()


def one(kind: str, objects: list[dict[str, Any]] | None = None, name: str = NAME) -> dict[str, Any]:
    found = [
        obj
        for obj in (defaults() if objects is None else objects)
        if obj["kind"] == kind and obj["metadata"]["name"] == name
    ]
    assert 1 == len(found), f"{kind} {name}: {len(found)}"
    return found[0]


def pod_spec(objects: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = one("Deployment", objects)["spec"]["template"]["spec"]
    return spec


def environment(objects: list[dict[str, Any]] | None = None) -> dict[str, str]:
    (container,) = pod_spec(objects)["containers"]
    return {entry["name"]: entry.get("value", "") for entry in container["env"]}


class TestDeployment:
    """DESIGN §4, §4a: two replicas, one volume, nothing that `restricted` refuses."""

    def test_two_replicas_serve(self) -> None:
        assert 2 == one("Deployment")["spec"]["replicas"]

    def test_the_pod_is_restricted(self) -> None:
        """H1, H2 for our own pod; an API server judges it in tests/api/kinds/test_pods.py."""
        spec = pod_spec()
        (container,) = spec["containers"]

        assert {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "fsGroup": 65532,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        } == spec["securityContext"]
        assert {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        } == container["securityContext"]
        assert {"cpu", "memory", "ephemeral-storage"} == set(container["resources"]["limits"])
        assert {"cpu", "memory", "ephemeral-storage"} == set(container["resources"]["requests"])
        assert not spec["enableServiceLinks"]
        assert all("sizeLimit" in v["emptyDir"] for v in spec["volumes"] if "emptyDir" in v)

    def test_one_volume_keeps_replicas_on_one_node(self) -> None:
        """DESIGN §4a: ReadWriteOnce sets required affinity on the host name."""
        (term,) = pod_spec()["affinity"]["podAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]

        assert "kubernetes.io/hostname" == term["topologyKey"]
        assert one("Deployment")["spec"]["selector"] == term["labelSelector"]
        assert ["ReadWriteOnce"] == one("PersistentVolumeClaim", name=f"{NAME}-artifacts")["spec"][
            "accessModes"
        ]

    def test_a_shared_volume_spreads_replicas(self) -> None:
        """DESIGN §4a: ReadWriteMany: anti-affinity and a PodDisruptionBudget."""
        objects = render(READ_WRITE_MANY)

        assert {"podAntiAffinity"} == set(pod_spec(objects)["affinity"])
        assert 1 == one("PodDisruptionBudget", objects)["spec"]["maxUnavailable"]
        assert not [obj for obj in defaults() if obj["kind"] == "PodDisruptionBudget"]

    def test_affinity_of_the_user_is_added_to(self) -> None:
        """DESIGN §4a: the replicas stay together on a volume of one node, whatever is asked."""
        zone = {"topologyKey": "zone", "labelSelector": {}}
        own: dict[str, Any] = {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [zone]}
        }

        terms = pod_spec(render({"affinity": own}))["affinity"]["podAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]

        assert ["zone", "kubernetes.io/hostname"] == [term["topologyKey"] for term in terms]

    def test_own_anti_affinity_replaces_ours(self) -> None:
        own: dict[str, Any] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}
        }

        assert own == pod_spec(render({**READ_WRITE_MANY, "affinity": own}))["affinity"]

    def test_spread_constraints_mean_the_operators_pods(self) -> None:
        spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        values = {"topologySpreadConstraints": [spread]}
        selector = one("Deployment")["spec"]["selector"]

        (made,) = pod_spec(render({**READ_WRITE_MANY, **values}))["topologySpreadConstraints"]

        assert {**spread, "labelSelector": selector} == made
        assert "topologySpreadConstraints" not in pod_spec(render(values))

    def test_the_disruption_budget_is_the_users(self) -> None:
        budget = {"maxUnavailable": "50%"}
        objects = render({**READ_WRITE_MANY, "podDisruptionBudget": budget})

        assert "50%" == one("PodDisruptionBudget", objects)["spec"]["maxUnavailable"]
        off = render({**READ_WRITE_MANY, "podDisruptionBudget": {"enabled": False}})
        assert not [obj for obj in off if obj["kind"] == "PodDisruptionBudget"]

    def test_pods_and_account_take_what_users_add(self) -> None:
        objects = render(
            {
                "podAnnotations": {"a": "1"},
                "podLabels": {"team": "x"},
                "serviceAccount": {"annotations": {"b": "2"}},
                "priorityClassName": "high",
                "securityContext": {"runAsUser": 7},
                "podSecurityContext": {"fsGroup": None},
            }
        )
        metadata = one("Deployment", objects)["spec"]["template"]["metadata"]
        spec = pod_spec(objects)

        assert {"a": "1"} == metadata["annotations"]
        assert "x" == metadata["labels"]["team"]
        assert {"b": "2"} == one("ServiceAccount", objects)["metadata"]["annotations"]
        assert "high" == spec["priorityClassName"]
        assert 7 == spec["containers"][0]["securityContext"]["runAsUser"]
        assert spec["containers"][0]["securityContext"]["readOnlyRootFilesystem"]
        assert "fsGroup" not in spec["securityContext"]

    def test_another_name_is_the_name_of_everything(self) -> None:
        objects = render({"fullnameOverride": "upgrades"})

        assert f"system:serviceaccount:{NAMESPACE}:upgrades" in str(
            one("ValidatingAdmissionPolicy", objects, "upgraderun-pods")
        )
        (container,) = one("Deployment", objects, "upgrades")["spec"]["template"]["spec"][
            "containers"
        ]
        assert {"upgrades", "upgrades-tls"} <= {entry.get("value") for entry in container["env"]}

    def test_an_image_by_digest_ignores_the_tag(self) -> None:
        digest = "sha256:" + "a" * 64
        objects = render({"image": {"repository": "r.example/o", "tag": "1", "digest": digest}})

        assert f"r.example/o@{digest}" == pod_spec(objects)["containers"][0]["image"]


class TestSettings:
    """The environment of the pod is what the operator reads."""

    def test_the_operator_starts_with_it(self) -> None:
        values = environment()
        values |= {f"{PREFIX}NAMESPACE": NAMESPACE, f"{PREFIX}IDENTITY": f"{NAME}-1"}

        settings = read_settings(values)

        assert f"https://{NAME}.{NAMESPACE}.svc:8443" == settings.operator_url
        assert f"{NAME}-tls" == settings.tls_secret
        assert not settings.allow_inline
        assert () == settings.watch_namespaces

    def test_values_reach_the_operator(self) -> None:
        objects = render(
            {
                "sandbox": {"allowInline": True},
                "watchNamespaces": ["a", "b"],
                "credentials": {"secretNames": ["forge"]},
                "engine": {"workers": 3, "writesPerSecond": 50, "statusSoftBytes": 4096},
                "trust": {"caBundle": {"configMap": "ca", "key": "bundle.pem"}},
            }
        )
        values = environment(objects)
        values |= {f"{PREFIX}NAMESPACE": NAMESPACE, f"{PREFIX}IDENTITY": f"{NAME}-1"}

        settings = read_settings(values)

        assert settings.allow_inline
        assert ("a", "b") == settings.watch_namespaces
        assert ("forge",) == settings.credential_secrets
        assert (3, 50, 4096) == (
            settings.worker_count,
            settings.write_rate,
            settings.status_soft_bytes,
        )
        assert Path("/etc/upgraderun/trust/bundle.pem") == settings.forge_ca

    def test_every_variable_is_one_that_the_operator_knows(self) -> None:
        """A misspelt variable would be ignored in silence."""
        source = (CHART.parents[1] / "operator/src/upgraderun_operator/settings.py").read_text(
            encoding="utf-8"
        )
        known = set(re.findall(r'read\.\w+\(\s*"([A-Z_]+)"', source))

        assert {name.removeprefix(PREFIX) for name in environment()} <= known

    @pytest.mark.parametrize(
        "values",
        [
            {"replica": 2},
            {"artifacts": {"type": "S3"}},
            {"image": {"repository": "x", "digest": "latest"}},
            {"admission": {"approverServiceAccounts": ["robot"]}},
            {"podLabels": {"upgraderun.dev/role": "runner"}},
            {"podLabels": {"app.kubernetes.io/name": "other"}},
        ],
        ids=str,
    )
    def test_values_that_nothing_reads_are_refused(self, values: dict[str, Any]) -> None:
        with pytest.raises(HelmError, match="values don't meet the specifications"):
            render(values)


class TestAdmission:
    """security.md §11: the policies, and what a server's version changes."""

    def test_every_policy_is_bound_and_denies(self) -> None:
        policies = {
            obj["metadata"]["name"]: obj
            for obj in defaults()
            if obj["kind"] == "ValidatingAdmissionPolicy"
        }
        bindings = [obj for obj in defaults() if obj["kind"] == "ValidatingAdmissionPolicyBinding"]

        assert sorted(policies) == sorted(obj["spec"]["policyName"] for obj in bindings)
        assert {"Fail"} == {obj["spec"]["failurePolicy"] for obj in policies.values()}
        assert all(["Deny"] == obj["spec"]["validationActions"] for obj in bindings)

    def test_they_match_our_kinds_and_pods_only(self) -> None:
        """H24: no other kind."""
        resources = {
            (group, resource.partition("/")[0])
            for obj in defaults()
            if obj["kind"] == "ValidatingAdmissionPolicy"
            for rule in obj["spec"]["matchConstraints"]["resourceRules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        }

        assert {("", "pods")} == {entry for entry in resources if entry[0] != names.GROUP}

    @pytest.mark.parametrize(
        ("api_versions", "expected"),
        [
            ((), None),
            ((MUTATING,), "admissionregistration.k8s.io/v1beta1"),
            (
                ("admissionregistration.k8s.io/v1/MutatingAdmissionPolicy", MUTATING),
                "admissionregistration.k8s.io/v1",
            ),
        ],
    )
    def test_the_requester_is_filled_in_where_the_server_can(
        self, api_versions: tuple[str, ...], expected: str | None
    ) -> None:
        found = [
            obj["apiVersion"]
            for obj in render(api_versions=api_versions)
            if obj["kind"] == "MutatingAdmissionPolicy"
        ]

        assert ([expected] if expected else []) == found

    def test_self_approval_can_be_left_to_policies(self) -> None:
        objects = render({"admission": {"denySelfApproval": False}})
        texts = {
            name: str(one("ValidatingAdmissionPolicy", objects, name)["spec"]["validations"])
            for name in ("upgraderun-requester", "upgraderun-approver")
        }

        assert "add this line" not in texts["upgraderun-requester"]
        assert "requested the run" not in texts["upgraderun-approver"]
        assert "is not you" in texts["upgraderun-approver"]

    def test_names_are_those_of_the_models(self) -> None:
        text = (CHART / "templates" / "admission.yaml").read_text(encoding="utf-8")

        used = set(re.findall(r"upgraderun\.dev/[a-z-]+", text))

        assert {names.FINALIZER, names.REQUESTED_BY, names.REQUESTER} == used
        assert OPERATOR in str(defaults())


class TestRights:
    """H26: RBAC is exactly security.md §9."""

    def test_rights_are_the_golden_ones(self) -> None:
        objects = render(
            {
                "credentials": {"secretNames": ["forge"]},
                "scripted": {"configMapNames": ["decisions"]},
            }
        )
        rights = {
            f"{obj['kind']} {obj['metadata']['name']}": obj["rules"]
            for obj in objects
            if obj["kind"] in {"Role", "ClusterRole"}
        }

        assert yaml.safe_load(GOLDEN.read_text(encoding="utf-8")) == rights

    def test_nothing_forbidden_is_granted(self) -> None:
        rules = [
            rule
            for obj in defaults()
            if obj["kind"] in {"Role", "ClusterRole"}
            for rule in obj["rules"]
        ]
        words = {word for rule in rules for key in rule for word in rule[key]}

        assert not words & {
            *("*", "escalate", "bind", "impersonate"),
            *("pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers"),
        }
        assert all(
            rule.get("resourceNames") and set(rule["verbs"]) <= {"get", "update"}
            for rule in rules
            if "secrets" in rule["resources"]
        )

    def test_watched_namespaces_get_a_binding_each_and_the_cluster_none(self) -> None:
        objects = render({"watchNamespaces": ["a", "b"]})
        bindings = [
            obj["metadata"]["namespace"]
            for obj in objects
            if obj["kind"] == "RoleBinding" and obj["roleRef"]["name"] == f"{NAME}-runs"
        ]

        assert ["a", "b"] == bindings
        assert [f"{NAME}-token-reviews"] == [
            obj["metadata"]["name"] for obj in objects if obj["kind"] == "ClusterRoleBinding"
        ]

    def test_roles_for_people_can_be_left_out_or_alone(self) -> None:
        label = "rbac.authorization.k8s.io/aggregate-to-"

        assert not [
            obj["metadata"]["name"]
            for obj in render({"roles": {"create": False}})
            if obj["kind"] == "ClusterRole" and not obj["metadata"]["name"].startswith(NAME)
        ]
        assert label in str(defaults())
        assert label not in str(render({"roles": {"aggregate": False}}))


class TestKinds:
    """The CRDs as templates: they upgrade with the chart, and stay when it goes."""

    def test_they_are_those_of_the_generated_files(self) -> None:
        assert [crd["spec"] for crd in crds()] == [crd["spec"] for crd in rendered_kinds()]

    def test_they_are_kept_unless_the_user_says_otherwise(self) -> None:
        policies = [crd["metadata"].get("annotations") for crd in rendered_kinds()]

        assert [{"helm.sh/resource-policy": "keep"}] * 4 == policies
        assert [None] * 4 == [
            crd["metadata"].get("annotations") for crd in rendered_kinds("crds.keep=false")
        ]

    def test_they_can_be_somebody_elses(self) -> None:
        assert [] == rendered_kinds("crds.install=false")

    def test_helm_has_no_second_copy(self) -> None:
        """A folder `crds/` would be installed first, without owner, and then refused."""
        assert not (CHART / "crds").exists()


def rendered_kinds(*values: str) -> list[dict[str, Any]]:
    flags = ["--kube-version=1.34.4", *(f"--set={value}" for value in values)]
    text = helm("template", RELEASE, str(CHART), *flags)
    objects = manifests.read_all(text)
    return [obj for obj in objects if obj["kind"] == "CustomResourceDefinition"]


class TestEverythingElse:
    """Secret, Service, network, monitoring, notes."""

    def test_the_certificate_secret_is_empty_and_kept(self) -> None:
        """security.md §9: which the chart creates empty and keeps."""
        secret = one("Secret", name=f"{NAME}-tls")

        assert "data" not in secret
        assert "keep" == secret["metadata"]["annotations"]["helm.sh/resource-policy"]

    def test_cert_manager_fills_a_secret_that_the_operator_only_reads(self) -> None:
        objects = render({"certificates": {"type": "CertManager"}})
        leaf = one("Certificate", objects)["spec"]
        authority = one("Certificate", objects, f"{NAME}-authority")["spec"]
        values = environment(objects)
        (rule,) = [r for r in one("Role", objects)["rules"] if "secrets" in r["resources"]]

        assert [] == [obj for obj in objects if obj["kind"] == "Secret"]
        assert leaf["secretName"] == values[f"{PREFIX}TLS_SECRET"]
        assert "false" == values[f"{PREFIX}TLS_RENEW"]
        assert [f"{NAME}.{NAMESPACE}.svc"] == leaf["dnsNames"]
        assert ([leaf["secretName"]], ["get"]) == (rule["resourceNames"], rule["verbs"])
        assert "Never" == authority["privateKey"]["rotationPolicy"]
        issuers = {obj["metadata"]["name"]: obj for obj in objects if obj["kind"] == "Issuer"}
        used = {cert["issuerRef"]["name"] for cert in (leaf, authority)}
        assert set(issuers) == used
        assert (
            authority["secretName"]
            == (issuers[leaf["issuerRef"]["name"]]["spec"]["ca"]["secretName"])
        )

    def test_another_issuer_signs_alone(self) -> None:
        issuer = {"name": "company", "kind": "ClusterIssuer", "group": "cert-manager.io"}
        objects = render({"certificates": {"type": "CertManager", "issuerRef": issuer}})

        assert [issuer] == [o["spec"]["issuerRef"] for o in objects if o["kind"] == "Certificate"]
        assert not [obj for obj in objects if obj["kind"] == "Issuer"]

    def test_the_service_leads_to_the_api(self) -> None:
        service = one("Service")

        assert [("api", 8443)] == [(p["name"], p["port"]) for p in service["spec"]["ports"]]
        labels = one("Deployment")["spec"]["template"]["metadata"]["labels"]
        assert service["spec"]["selector"].items() <= labels.items()

    def test_the_network_is_that_of_the_table(self) -> None:
        """security.md §10, row operator."""
        spec = one("NetworkPolicy")["spec"]

        assert ["Ingress", "Egress"] == spec["policyTypes"]
        assert [[8443], [8080]] == [[p["port"] for p in r["ports"]] for r in spec["ingress"]]
        assert [(53, "UDP"), (53, "TCP"), (443, "TCP"), (6443, "TCP")] == [
            (port["port"], port["protocol"]) for port in spec["egress"][0]["ports"]
        ]

    def test_further_egress_is_added(self) -> None:
        rule = {"ports": [{"port": 3000, "protocol": "TCP"}]}

        objects = render({"networkPolicy": {"extraEgress": [rule]}})

        assert rule == one("NetworkPolicy", objects)["spec"]["egress"][1]

    def test_the_rule_object_holds_the_rule_file(self) -> None:
        objects = render(
            {"monitoring": {"prometheusRule": {"enabled": True, "labels": {"a": "b"}}}}
        )
        rule = one("PrometheusRule", objects)
        text = (CHART / "rules" / "upgraderun.rules.yaml").read_text(encoding="utf-8")

        assert yaml.safe_load(text) == rule["spec"]
        assert "b" == rule["metadata"]["labels"]["a"]

    def test_every_replica_is_scraped(self) -> None:
        objects = render({"monitoring": {"serviceMonitor": {"enabled": True}}})
        monitor = one("ServiceMonitor", objects)["spec"]
        service = one("Service", name=f"{NAME}-metrics")

        assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        assert "None" == service["spec"]["clusterIP"]

    def test_without_the_prometheus_operator_its_kinds_are_absent(self) -> None:
        assert not [obj for obj in defaults() if "monitoring.coreos.com" in obj["apiVersion"]]

    def test_an_older_server_is_refused(self) -> None:
        """DESIGN §3: Kubernetes 1.31 or newer."""
        with pytest.raises(HelmError, match=r"requires kubeVersion: >=1\.31"):
            helm("template", RELEASE, str(CHART), "--kube-version", "1.30.9")

    def test_the_chart_lints(self) -> None:
        assert "0 chart(s) failed" in helm("lint", str(CHART), "--kube-version", "1.34.4")
