"""Pods on a real API server: Pod Security of the sample namespace, and whose labels are whose.

H1: twelve manifests, each with one field weakened; H5: sixteen with a way out of the pod; H6: our
labels belong to the operator.
"""

from typing import Any

import pytest

from support.chart import render
from support.kinds import Kinds, container, pod

LABELS = {"upgraderun.dev/role": "runner"}


def weakened_context(**context: Any) -> dict[str, Any]:
    return {"containers": [container(securityContext=context)]}


WEAKENED: dict[str, dict[str, Any]] = {
    "root user": {
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 0,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
    },
    "root allowed": weakened_context(runAsNonRoot=False),
    "container as root": weakened_context(runAsUser=0),
    "escalation": weakened_context(allowPrivilegeEscalation=True),
    "escalation unsaid": weakened_context(allowPrivilegeEscalation=None),
    "capabilities kept": weakened_context(capabilities=None),
    "one capability added": weakened_context(capabilities={"drop": ["ALL"], "add": ["NET_ADMIN"]}),
    "seccomp unconfined": weakened_context(seccompProfile={"type": "Unconfined"}),
    "seccomp of the pod unconfined": {
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "Unconfined"}}
    },
    "init container escalates": {
        "initContainers": [container("init", securityContext={"allowPrivilegeEscalation": True})]
    },
    "volume of the host": {
        "volumes": [{"name": "v", "hostPath": {"path": "/var/run"}}],
    },
    "volume of a forbidden type": {
        "volumes": [{"name": "v", "nfs": {"server": "nfs.example", "path": "/"}}],
    },
}

PROC = {"procMount": "Unmasked", "allowPrivilegeEscalation": False}
WAYS_OUT: dict[str, dict[str, Any]] = {
    "host network": {"hostNetwork": True},
    "host processes": {"hostPID": True},
    "host ipc": {"hostIPC": True},
    "host path": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
    "unsafe sysctl": {
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
            "sysctls": [{"name": "kernel.msgmax", "value": "1"}],
        }
    },
    "host process windows": {
        "securityContext": {
            "runAsNonRoot": True,
            "windowsOptions": {"hostProcess": True},
        },
        "hostNetwork": True,
    },
    **{
        f"{place} {what}": {place: [container("c", **fields)], **more}
        for place in ("initContainers", "containers")
        for what, fields, more in (
            ("host port", {"ports": [{"containerPort": 80, "hostPort": 80}]}, {}),
            (
                "privileged",
                {"securityContext": {"privileged": True, "allowPrivilegeEscalation": None}},
                {},
            ),
            ("proc mount", {"securityContext": PROC}, {"hostUsers": False}),
        )
    },
}


@pytest.fixture
def plain_pod(kinds: Kinds, namespace: str) -> dict[str, Any]:
    """A pod of a tenant, without our labels."""
    answer = kinds.admin.create(pod(namespace))
    assert answer.ok, answer.message
    return dict(answer.body)


@pytest.fixture
def our_pod(kinds: Kinds, namespace: str) -> dict[str, Any]:
    """A pod that the operator made."""
    answer = kinds.operator.create(pod(namespace, "ours", labels=LABELS))
    assert answer.ok, answer.message
    return dict(answer.body)


def debugger(target: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The pod with one ephemeral container."""
    ephemeral = container("debug", **fields)
    return {**target, "spec": {**target["spec"], "ephemeralContainers": [ephemeral]}}


def test_the_starting_point_passes(plain_pod: dict[str, Any]) -> None:
    """Else every refusal below would prove nothing."""
    assert "Pod" == plain_pod["kind"]


def test_the_operators_own_pod_passes(kinds: Kinds, namespace: str) -> None:
    """H1 for the chart's Deployment."""
    (deployment,) = [obj for obj in render() if obj["kind"] == "Deployment"]
    template = deployment["spec"]["template"]["spec"]
    fields = {key: value for key, value in template.items() if key != "serviceAccountName"}

    answer = kinds.admin.create(pod(namespace, "operator", **fields), dryRun="All")

    assert answer.ok, answer.message


@pytest.mark.parametrize("case", WEAKENED)
def test_one_weakened_field_is_refused(kinds: Kinds, namespace: str, case: str) -> None:
    """H1, twelve cases."""
    answer = kinds.admin.create(pod(namespace, **WEAKENED[case]))

    assert 403 == answer.status
    assert 'violates PodSecurity "restricted:latest"' in answer.message


@pytest.mark.parametrize("case", WAYS_OUT)
def test_a_way_out_of_the_pod_is_refused(kinds: Kinds, namespace: str, case: str) -> None:
    """H5, for pods, init and main containers: twelve cases."""
    answer = kinds.admin.create(pod(namespace, **WAYS_OUT[case]))

    assert 403 == answer.status, answer.message
    assert 'violates PodSecurity "restricted:latest"' in answer.message


@pytest.mark.parametrize(
    "fields",
    [
        {"securityContext": {"privileged": True, "allowPrivilegeEscalation": None}},
        {"securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}}},
        {"securityContext": {"runAsUser": 0}},
        {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
    ],
    ids=["privileged", "capability", "root", "seccomp"],
)
def test_an_ephemeral_container_with_a_way_out_is_refused(
    kinds: Kinds, plain_pod: dict[str, Any], fields: dict[str, Any]
) -> None:
    """H5, for ephemeral containers: four cases."""
    answer = kinds.admin.replace(debugger(plain_pod, **fields), "ephemeralcontainers")

    assert 403 == answer.status
    assert 'violates PodSecurity "restricted:latest"' in answer.message


def test_the_numbers_are_those_of_the_checklist() -> None:
    """H1: 12 manifests; H5: 16 negative cases, 4 of them ephemeral containers."""
    assert (12, 16) == (len(WEAKENED), len(WAYS_OUT) + 4)


class TestLabels:
    """H6: only the operator's account may create pods with our labels."""

    @pytest.mark.parametrize("label", ["upgraderun.dev/role", "upgraderun.dev/anything"])
    def test_a_tenants_pod_with_our_label_is_refused(
        self, kinds: Kinds, namespace: str, label: str
    ) -> None:
        answer = kinds.admin.create(pod(namespace, labels={label: "x"}))

        assert 403 == answer.status
        assert "made and changed by the operator only" in answer.message

    def test_a_tenants_pod_cant_take_our_label_later(
        self, kinds: Kinds, plain_pod: dict[str, Any]
    ) -> None:
        answer = kinds.admin.merge(plain_pod, {"metadata": {"labels": LABELS}})

        assert 403 == answer.status

    def test_our_pod_cant_be_changed_by_others(self, kinds: Kinds, our_pod: dict[str, Any]) -> None:
        answers = [
            kinds.admin.merge(our_pod, {"metadata": {"labels": {"upgraderun.dev/role": None}}}),
            kinds.admin.merge(our_pod, {"metadata": {"annotations": {"x": "y"}}}),
        ]

        assert [403, 403] == [answer.status for answer in answers]

    def test_nobody_debugs_into_our_pod(self, kinds: Kinds, our_pod: dict[str, Any]) -> None:
        operator = kinds.admin.as_user(
            "system:serviceaccount:upgraderun-system:upgraderun-operator", ("system:masters",)
        )

        answers = [
            kinds.admin.replace(debugger(our_pod), "ephemeralcontainers"),
            operator.replace(debugger(our_pod), "ephemeralcontainers"),
        ]

        assert [403, 403] == [answer.status for answer in answers]
        assert "nobody debugs into a pod of a run" in answers[1].message

    def test_our_pod_can_be_deleted_by_whoever_may(
        self, kinds: Kinds, our_pod: dict[str, Any]
    ) -> None:
        """A node drain or an admin in need must not be stopped by us."""
        assert kinds.admin.delete(our_pod).ok

    def test_a_tenants_own_pods_are_left_alone(
        self, kinds: Kinds, plain_pod: dict[str, Any]
    ) -> None:
        assert kinds.admin.merge(plain_pod, {"metadata": {"labels": {"app": "mine"}}}).ok
