"""Manifests of the workspace volume and the run Lease (DESIGN §4a, §7). Pure."""

from collections.abc import Mapping
from typing import Any

from upgraderun_operator.build.owner import owner_reference
from upgraderun_operator.model.names import RUN_LABEL, RUN_UID_LABEL
from upgraderun_operator.model.policy_spec import Workspace
from upgraderun_protocol.bundle import RunRef
from upgraderun_protocol.limits import RUN_LEASE_SECONDS
from upgraderun_protocol.slugs import child_name


def workspace_claim(run: RunRef, workspace: Workspace) -> Mapping[str, Any]:
    """One volume per run, mounted by one node at a time."""
    spec: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": workspace.size}},
    }
    if workspace.storage_class_name is not None:
        spec["storageClassName"] = workspace.storage_class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": _metadata(run),
        "spec": spec,
    }


def run_lease(run: RunRef) -> Mapping[str, Any]:
    """The run Lease before anybody holds it; `hello` takes it."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": _metadata(run),
        "spec": {"leaseDurationSeconds": RUN_LEASE_SECONDS, "leaseTransitions": 0},
    }


def _metadata(run: RunRef) -> Mapping[str, Any]:
    return {
        "name": child_name(run.name, run.uid),
        "namespace": run.namespace,
        "labels": {RUN_LABEL: run.name[:63].rstrip("-."), RUN_UID_LABEL: run.uid},
        "ownerReferences": [owner_reference(run)],
    }
