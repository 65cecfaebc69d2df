"""Manifests of runner and publisher pods (security.md H1 to H3, H6, H16, H17). Pure.

Everything comes from policy, installation and journal; of the run's metadata only name and UID. No
secret value is here: credentials are mounted by reference, as files on memory volumes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from upgraderun_operator.build.context import BuildOptions
from upgraderun_operator.build.owner import owner_reference
from upgraderun_operator.model.names import (
    ATTEMPT_LABEL,
    GROUP,
    ROLE_LABEL,
    RUN_LABEL,
    RUN_UID_LABEL,
)
from upgraderun_operator.model.policy_spec import Credential, UpgradePolicySpec
from upgraderun_protocol.bundle import RunRef
from upgraderun_protocol.messages import TOKEN_AUDIENCE

CA_ANNOTATION: Final = f"{GROUP}/operator-ca"
POD_USER: Final = 65532
WORKSPACE_PATH: Final = "/workspace"
_OPERATOR: Final = "/var/run/upgraderun/operator"
_CREDENTIAL: Final = "/var/run/upgraderun/credential"
_TRUST: Final = "/var/run/upgraderun/trust"
_TERMINATION_LOG: Final = "/dev/termination-log"
_TOKEN_SECONDS: Final = 3600
_GRACE_SECONDS: Final = 60
_DEADLINE_SLACK_SECONDS: Final = 3600
_PUBLISHER_DEADLINE_SECONDS: Final = 7200


@dataclass(frozen=True, slots=True)
class PodPlan:
    """What differs between pods. `seconds` bounds the pod's life; `tag` is its writer tag."""

    name: str
    tag: str
    image: str
    seconds: int
    claim: str | None


def runner_pod(
    run: RunRef, plan: PodPlan, policy: UpgradePolicySpec, options: BuildOptions
) -> Mapping[str, Any]:
    """Pod of an attempt: clone token, workspace volume, no rights on the forge or the cluster."""
    assert plan.claim is not None
    parts = _Parts("runner", options.runner_account, "2Gi")
    parts.arguments += ["run", *_identity(run, options), "--workspace", WORKSPACE_PATH]
    claim = {"claimName": plan.claim}
    parts.add({"name": "workspace", "persistentVolumeClaim": claim}, WORKSPACE_PATH)
    _add_credential(parts, "clone", policy.credentials.clone)
    _add_trust(parts, policy)
    return _pod(run, plan, parts, options)


def publisher_pod(
    run: RunRef, plan: PodPlan, policy: UpgradePolicySpec, options: BuildOptions
) -> Mapping[str, Any]:
    """Pod of a delivery: push token, no volume of the run; it works from artifacts alone."""
    parts = _Parts("publisher", options.publisher_account, "4Gi")
    parts.arguments += ["publish", *_identity(run, options)]
    _add_credential(parts, "push", policy.credentials.push)
    _add_trust(parts, policy)
    return _pod(run, plan, parts, options)


def attempt_seconds(active_deadline_seconds: int) -> int:
    """Bound of a runner pod's life: beyond the run's own deadline, which the operator judges."""
    return active_deadline_seconds + _DEADLINE_SLACK_SECONDS


def delivery_seconds() -> int:
    """Bound of a publisher pod's life."""
    return _PUBLISHER_DEADLINE_SECONDS


def _identity(run: RunRef, options: BuildOptions) -> list[str]:
    return [
        *("--operator-url", options.operator_url),
        *("--namespace", run.namespace),
        *("--run", run.name),
        *("--run-uid", run.uid),
        *("--token-file", f"{_OPERATOR}/token"),
        *("--ca-file", f"{_OPERATOR}/ca.crt"),
        *("--termination-log", _TERMINATION_LOG),
    ]


@dataclass(slots=True)
class _Parts:
    """A pod in the making: what role, account and policy add to it."""

    role: str
    account: str
    scratch: str
    arguments: list[str] = field(default_factory=list)
    volumes: list[Mapping[str, Any]] = field(default_factory=list)
    mounts: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, volume: Mapping[str, Any], path: str, *, read_only: bool = False) -> None:
        """Mount a volume."""
        self.volumes.append(volume)
        mount: dict[str, Any] = {"name": volume["name"], "mountPath": path}
        self.mounts.append(mount | {"readOnly": True} if read_only else mount)


def _add_credential(parts: _Parts, purpose: str, credential: Credential | None) -> None:
    """Mount one key of one Secret as one file and name the file to the process."""
    if credential is None:
        return
    reference = credential.secret_ref
    items = [{"key": reference.key, "path": "token"}]
    secret = {"secretName": reference.name, "items": items, "defaultMode": 0o440}
    parts.add({"name": "credential", "secret": secret}, _CREDENTIAL, read_only=True)
    parts.arguments += [f"--{purpose}-token-file", f"{_CREDENTIAL}/token"]


def _add_trust(parts: _Parts, policy: UpgradePolicySpec) -> None:
    """Mount the policy's bundle of authorities, if it has one."""
    if policy.trust.ca_bundle is None:
        return
    reference = policy.trust.ca_bundle.config_map_ref
    items = [{"key": reference.key, "path": "bundle.crt"}]
    bundle = {"name": reference.name, "items": items}
    parts.add({"name": "trust", "configMap": bundle}, _TRUST, read_only=True)
    parts.arguments += ["--trust-bundle", f"{_TRUST}/bundle.crt"]


def _pod(run: RunRef, plan: PodPlan, parts: _Parts, options: BuildOptions) -> Mapping[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": plan.name,
            "namespace": run.namespace,
            "labels": labels(run, parts.role, plan.tag),
            "annotations": {CA_ANNOTATION: options.authority},
            "ownerReferences": [owner_reference(run)],
        },
        "spec": {
            "serviceAccountName": parts.account,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "restartPolicy": "Never",
            "activeDeadlineSeconds": plan.seconds,
            "terminationGracePeriodSeconds": _GRACE_SECONDS,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": POD_USER,
                "runAsGroup": POD_USER,
                "fsGroup": POD_USER,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [_container(parts, plan.image)],
            "volumes": [
                _operator_volume(),
                {"name": "scratch", "emptyDir": {"sizeLimit": parts.scratch}},
                *parts.volumes,
            ],
        },
    }


def labels(run: RunRef, role: str, tag: str) -> Mapping[str, str]:
    """Labels of our pods: for people and watches, never an identity."""
    return {
        RUN_LABEL: run.name[:63].rstrip("-."),
        RUN_UID_LABEL: run.uid,
        ROLE_LABEL: role,
        ATTEMPT_LABEL: tag[1:],
    }


def _container(parts: _Parts, image: str) -> Mapping[str, Any]:
    return {
        "name": parts.role,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        # No command: the image's entry point knows where its Python is.
        "args": parts.arguments,
        "env": [{"name": "HOME", "value": "/tmp"}],  # noqa: S108 - an emptyDir of this pod alone
        "terminationMessagePath": _TERMINATION_LOG,
        "terminationMessagePolicy": "File",
        "resources": {
            "requests": {"cpu": "100m", "memory": "256Mi", "ephemeral-storage": "256Mi"},
            "limits": {"cpu": "2", "memory": "4Gi", "ephemeral-storage": "8Gi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "operator", "mountPath": _OPERATOR, "readOnly": True},
            {"name": "scratch", "mountPath": "/tmp"},  # noqa: S108 - as above
            *parts.mounts,
        ],
    }


def _operator_volume() -> Mapping[str, Any]:
    """One token for the runner API and the CA that signs the API: nothing of the cluster's own."""
    token = {
        "audience": TOKEN_AUDIENCE,
        "expirationSeconds": _TOKEN_SECONDS,
        "path": "token",
    }
    authority = {
        "path": "ca.crt",
        "fieldRef": {"fieldPath": f"metadata.annotations['{CA_ANNOTATION}']"},
    }
    return {
        "name": "operator",
        "projected": {
            "defaultMode": 0o440,
            "sources": [
                {"serviceAccountToken": token},
                {"downwardAPI": {"items": [authority]}},
            ],
        },
    }
