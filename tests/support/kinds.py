"""The product's kinds on an API server: installing them, and valid objects to start from.

Callers: `tests/api/kinds`. A builder gives the smallest valid object; a test names what matters.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from clusterlib.apiserver import ApiServer
from support.chart import MUTATING, NAMESPACE, OPERATOR, crds, render
from support.kube import Kube, eventually

API_VERSION: Final = "upgraderun.dev/v1alpha1"
ALICE: Final = "alice@example.com"
BOB: Final = "bob@example.com"
DIGEST: Final = "a" * 64
IMAGE: Final = "registry.example/runner@sha256:" + "b" * 64
RUN_UID: Final = "3f1c9a2b-7d41-4c58-9a63-5be0a1c2d3e4"
INSTALLED: Final = frozenset(
    {
        *("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
        *("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"),
    }
)


@dataclass(frozen=True, slots=True)
class Kinds:
    """A server where the product's kinds are installed."""

    server: ApiServer
    admin: Kube

    @property
    def operator(self) -> Kube:
        """The operator's service account."""
        return self.admin.as_user(OPERATOR, ("system:serviceaccounts",))


def install(
    server: ApiServer, admin: Kube, values: dict[str, Any], api_versions: tuple[str, ...]
) -> Kinds:
    """Install CRDs, RBAC and admission policies and wait until the last of them refuses."""
    for crd in crds():
        admin.apply(crd)
    make_namespace(admin, NAMESPACE)
    for obj in render(values, api_versions):
        if obj["kind"] in INSTALLED:
            admin.apply(obj)
    make_namespace(admin, "probe")
    for crd in crds():
        path = f"/apis/upgraderun.dev/v1alpha1/{crd['spec']['names']['plural']}"
        eventually(partial(_may_list, admin, path), f"{path} is served")
    kinds = Kinds(server, admin)
    for path in ("/api/v1/pods", "/apis/upgraderun.dev/v1alpha1/upgraderuns"):
        eventually(partial(_may_list, kinds.operator, path), f"the operator may list {path}")
    spoofed = pod("probe", labels={"upgraderun.dev/role": "runner"})
    foreign = run("probe", requested_by="nobody")
    eventually(
        lambda: (
            "made and changed by the operator" in admin.create(spoofed, dryRun="All").message
            and "you are" in admin.create(foreign, dryRun="All").message
        ),
        "the admission policies are in force",
    )
    unsigned, filled = run("probe", requested_by=None), MUTATING in api_versions
    eventually(
        lambda: admin.create(unsigned, dryRun="All").ok == filled,
        "the server fills in who asks, where it can",
    )
    return kinds


def _may_list(client: Kube, path: str) -> bool:
    return client.send("GET", path).ok


def make_namespace(admin: Kube, name: str, **labels: str) -> None:
    """Make a namespace with the service account that a controller would add."""
    admin.apply(namespace_object(name, **labels))
    admin.apply(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": name},
        }
    )


def namespace_object(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": labels},
    }


def run(
    namespace: str, name: str = "wish", *, requested_by: str | None = ALICE, **spec: Any
) -> dict[str, Any]:
    """A run; `requested_by` None leaves the annotation out."""
    annotations = {} if requested_by is None else {"upgraderun.dev/requested-by": requested_by}
    return {
        "apiVersion": API_VERSION,
        "kind": "UpgradeRun",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": {"repository": {"url": "https://forge.example/team/app"}, **spec},
    }


def policy(namespace: str, name: str = "default", **spec: Any) -> dict[str, Any]:
    """A policy."""
    return {
        "apiVersion": API_VERSION,
        "kind": "UpgradePolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "repositories": ["https://forge.example/team/app"],
            "images": {"runner": IMAGE, "python": [{"version": "3.11", "image": IMAGE}]},
            "sandbox": {"type": "Inline"},
            **spec,
        },
    }


def approval(
    namespace: str, name: str = "answer", *, requester: str | None = ALICE, **spec: Any
) -> dict[str, Any]:
    """An approval by Bob of a run by Alice; `requester` None leaves the annotation out."""
    annotations = {} if requester is None else {"upgraderun.dev/requester": requester}
    return {
        "apiVersion": API_VERSION,
        "kind": "UpgradeApproval",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": {
            "runRef": {"name": "wish", "uid": RUN_UID},
            "digest": DIGEST,
            "decision": "Approve",
            "approver": BOB,
            **spec,
        },
    }


def report(namespace: str, name: str = "wish") -> dict[str, Any]:
    """A report."""
    return {
        "apiVersion": API_VERSION,
        "kind": "UpgradeReport",
        "metadata": {"name": name, "namespace": namespace},
        "outcome": "ProposalPrepared",
        "message": "frozen",
    }


def pod(
    namespace: str, name: str = "pod", *, labels: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    """A pod that passes Pod Security `restricted`."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container()],
            **spec,
        },
    }


def container(name: str = "main", **fields: Any) -> dict[str, Any]:
    """A container that passes Pod Security `restricted`; `securityContext` is merged."""
    context = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
        **fields.pop("securityContext", {}),
    }
    return {
        "name": name,
        "image": "registry.example/any",
        "securityContext": {key: value for key, value in context.items() if value is not None},
        **fields,
    }


def role_binding(user: str, role: str, namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"{role}-{user.partition('@')[0]}", "namespace": namespace},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": role,
        },
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
