"""Sets the fault hook in one pod of a run, from outside the product: by an admission policy.

Callers: kill tests on the cluster. The run's image must be a test image; the product knows no field
for environment variables, and gets none for its tests.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from clusterlib.kubectl import Kubectl, Manifest
from clusterlib.processes import wait_until
from support.installation import OPERATOR_ACCOUNT
from support.kubeapi import Json
from support.podplatform import PodPlatform
from support.workloads import pod
from upgraderun_operator.model.names import ATTEMPT_LABEL, ROLE_LABEL, RUN_LABEL

VARIABLE: Final = "UPGRADERUN_FAULT"
ADMISSION: Final = "admissionregistration.k8s.io/v1beta1"
_SECONDS: Final = 60.0


@asynccontextmanager
async def fault_in_first_pod(
    platform: PodPlatform, run: str, role: str, fault: str
) -> AsyncIterator[None]:
    """Let the first `runner` or `publisher` pod of a run be created with the fault set."""
    name = f"fault-{platform.namespace}-{run}"
    labels = {RUN_LABEL: run, ROLE_LABEL: role, ATTEMPT_LABEL: "1"}
    platform.kubectl.apply(_policy(name, platform.namespace, labels, fault), _binding(name))
    try:
        await asyncio.to_thread(_wait_until_in_force, platform.kubectl, platform.namespace, labels)
        yield
    finally:
        platform.kubectl("delete", "mutatingadmissionpolicy", name)
        platform.kubectl("delete", "mutatingadmissionpolicybinding", name)


def _policy(name: str, space: str, labels: dict[str, str], fault: str) -> Manifest:
    variable = f'Object.spec.containers.env{{name: "{VARIABLE}", value: "{fault}"}}'
    path = '"/spec/containers/0/env/-"'
    expression = f'[JSONPatch{{op: "add", path: {path}, value: {variable}}}]'
    pods = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    return {
        "apiVersion": ADMISSION,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": space}},
                "objectSelector": {"matchLabels": labels},
                "resourceRules": [pods],
            },
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
        },
    }


def _binding(name: str) -> Manifest:
    return {
        "apiVersion": ADMISSION,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name},
    }


def _wait_until_in_force(kubectl: Kubectl, space: str, labels: dict[str, str]) -> None:
    """Ask with pods that are never made: the API server takes policies over from its own watch."""
    asked = pod(space, "asked", "none@sha256:" + "0" * 64, "pass")
    asked["metadata"]["labels"] = labels
    asked["spec"]["containers"][0]["env"] = [{"name": "HOME", "value": "/tmp"}]
    # Nobody else may make pods with the operator's labels.
    kubectl = kubectl.as_user(OPERATOR_ACCOUNT)
    argv = ("create", "--dry-run=server", "-f", "-", "-o", "json")

    def in_force() -> bool:
        answer: Json = json.loads(kubectl(*argv, stdin=json.dumps(asked)))
        variables = answer["spec"]["containers"][0]["env"]
        return any(variable["name"] == VARIABLE for variable in variables)

    assert wait_until(in_force, _SECONDS), "the admission policy never came into force"
