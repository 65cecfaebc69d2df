"""RBAC is exactly security.md §9: a matrix of what each account and shipped role can do (H26, H3)."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from support.chart import NAMESPACE, OPERATOR
from support.kinds import Kinds, make_namespace, role_binding
from support.kube import Kube, eventually

GROUP = "upgraderun.dev"
KINDS = ("upgraderuns", "upgradepolicies", "upgradeapprovals", "upgradereports")
READ = frozenset({"get", "list", "watch"})
CHILD = READ | {"create", "delete"}
VERBS = (
    *("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"),
    *("escalate", "bind", "impersonate"),
)
RESOURCES: tuple[tuple[str, str], ...] = (
    *((GROUP, kind) for kind in KINDS),
    *((GROUP, f"upgraderuns/{part}") for part in ("status", "finalizers")),
    *(("", name) for name in ("pods", "persistentvolumeclaims", "serviceaccounts", "secrets")),
    *(("", name) for name in ("configmaps", "nodes", "namespaces", "services", "events")),
    *(("", f"pods/{part}") for part in ("exec", "attach", "portforward", "log", "status")),
    *(("", f"pods/{part}") for part in ("ephemeralcontainers", "eviction", "binding")),
    *(("", f"serviceaccounts/{part}") for part in ("token",)),
    ("coordination.k8s.io", "leases"),
    ("networking.k8s.io", "networkpolicies"),
    ("events.k8s.io", "events"),
    ("apps", "deployments"),
    ("batch", "jobs"),
    ("authentication.k8s.io", "tokenreviews"),
    *(("rbac.authorization.k8s.io", name) for name in ("roles", "rolebindings")),
    *(("rbac.authorization.k8s.io", name) for name in ("clusterroles", "clusterrolebindings")),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
)
OPERATOR_RIGHTS: dict[tuple[str, str], frozenset[str]] = {
    (GROUP, "upgraderuns"): READ | {"update"},
    (GROUP, "upgraderuns/status"): frozenset({"update"}),
    (GROUP, "upgraderuns/finalizers"): frozenset({"update"}),
    (GROUP, "upgradepolicies"): READ,
    (GROUP, "upgradeapprovals"): READ,
    (GROUP, "upgradereports"): CHILD | {"update"},
    ("", "pods"): CHILD,
    ("", "persistentvolumeclaims"): CHILD,
    ("", "serviceaccounts"): CHILD,
    ("networking.k8s.io", "networkpolicies"): CHILD,
    ("coordination.k8s.io", "leases"): CHILD | {"update"},
    ("events.k8s.io", "events"): frozenset({"create", "patch"}),
    ("authentication.k8s.io", "tokenreviews"): frozenset({"create"}),
}
ROLE_RIGHTS: dict[str, dict[tuple[str, str], frozenset[str]]] = {
    "upgraderun-viewer": {(GROUP, kind): READ for kind in KINDS},
    "upgraderun-editor": {
        **{(GROUP, kind): READ for kind in KINDS},
        (GROUP, "upgraderuns"): CHILD | {"update", "patch", "deletecollection"},
    },
    "upgraderun-approver": {
        (GROUP, "upgraderuns"): READ,
        (GROUP, "upgradereports"): READ,
        (GROUP, "upgradeapprovals"): CHILD,
    },
    "upgraderun-policy-admin": {
        (GROUP, "upgradepolicies"): CHILD | {"update", "patch", "deletecollection"},
    },
}


def can(
    kube: Kube, user: str, verb: str, resource: tuple[str, str], namespace: str, name: str = ""
) -> bool:
    """Ask the API server itself, as `kubectl auth can-i --as` does."""
    group, full = resource
    plural, _, subresource = full.partition("/")
    groups = ["system:authenticated"]
    if user.startswith("system:serviceaccount:"):
        groups.append("system:serviceaccounts")
    answer = kube.send(
        "POST",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user,
                "groups": groups,
                "resourceAttributes": {
                    "namespace": namespace,
                    "verb": verb,
                    "group": group,
                    "resource": plural,
                    "subresource": subresource,
                    "name": name,
                },
            },
        },
    )
    assert answer.ok, answer.message
    return bool(answer.body["status"]["allowed"])


def matrix(kube: Kube, user: str, namespace: str) -> dict[tuple[str, str], frozenset[str]]:
    """Everything of the table that a user can do in a namespace."""
    found = {
        resource: frozenset(verb for verb in VERBS if can(kube, user, verb, resource, namespace))
        for resource in RESOURCES
    }
    return {resource: verbs for resource, verbs in found.items() if verbs}


class TestOperator:
    """§9, rows operator."""

    def test_it_can_do_exactly_this_in_a_watched_namespace(
        self, kinds: Kinds, namespace: str
    ) -> None:
        assert OPERATOR_RIGHTS == matrix(kinds.admin, OPERATOR, namespace)

    def test_it_reads_and_renews_one_secret_in_its_own(self, kinds: Kinds) -> None:
        secrets = ("", "secrets")
        of_name = {
            (verb, name): can(kinds.admin, OPERATOR, verb, secrets, NAMESPACE, name)
            for verb in VERBS
            for name in ("upgraderun-operator-tls", "other")
        }

        assert {
            ("get", "upgraderun-operator-tls"),
            ("update", "upgraderun-operator-tls"),
        } == {key for key, allowed in of_name.items() if allowed}

    def test_its_own_namespace_gives_nothing_else(self, kinds: Kinds) -> None:
        assert OPERATOR_RIGHTS == matrix(kinds.admin, OPERATOR, NAMESPACE)

    def test_no_wildcard_grants_what_the_table_forgot(self, kinds: Kinds, namespace: str) -> None:
        everything = (("*", "*"), ("", "*"), (GROUP, "*"), ("any.example", "things"))

        assert [] == [
            (verb, resource)
            for resource in everything
            for verb in ("*", "get", "list", "create")
            if can(kinds.admin, OPERATOR, verb, resource, namespace)
        ]


@pytest.mark.parametrize("role", ROLE_RIGHTS)
def test_shipped_role_gives_exactly_this(kinds: Kinds, namespace: str, role: str) -> None:
    """§9, row shipped roles; H5: none of them reaches exec and kin."""
    user = f"{role}@example.com"
    kinds.admin.apply(role_binding(user, role, namespace))
    resource, verbs = next(iter(ROLE_RIGHTS[role].items()))
    eventually(partial(can, kinds.admin, user, min(verbs), resource, namespace), f"{role} is bound")

    assert ROLE_RIGHTS[role] == matrix(kinds.admin, user, namespace)


def test_accounts_of_runners_can_do_nothing(kinds: Kinds, namespace: str) -> None:
    """H3: service accounts of runner and publisher have no binding."""
    for account in ("upgraderun-runner", "upgraderun-publisher"):
        user = f"system:serviceaccount:{namespace}:{account}"
        assert {} == matrix(kinds.admin, user, namespace)


def test_a_right_in_one_namespace_ends_at_its_border(
    kinds: Kinds, namespace: str, bind: Callable[[str, str, str], Kube]
) -> None:
    """H23: no reference crosses a namespace; nor do the shipped roles."""
    bind("erin@example.com", "upgraderun-editor", namespace)
    make_namespace(kinds.admin, "elsewhere")

    assert {} == matrix(kinds.admin, "erin@example.com", "elsewhere")


def test_roles_aggregate_to_the_usual_ones_but_the_approver(kinds: Kinds) -> None:
    """§9: aggregated to the usual cluster roles except approver."""
    prefix = "rbac.authorization.k8s.io/aggregate-to-"

    def targets(role: str) -> list[str]:
        found: dict[str, Any] = kinds.admin.get(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": {"name": role},
            }
        )
        labels = found["metadata"].get("labels", {})
        return [name.removeprefix(prefix) for name in labels if name.startswith(prefix)]

    assert {
        "upgraderun-viewer": ["view"],
        "upgraderun-editor": ["edit"],
        "upgraderun-approver": [],
        "upgraderun-policy-admin": ["admin"],
    } == {role: targets(role) for role in ROLE_RIGHTS}
