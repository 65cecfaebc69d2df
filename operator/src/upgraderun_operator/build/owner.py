"""Whose child an object is: the run, by UID. Callers: every manifest of `build`."""

from collections.abc import Mapping
from typing import Any

from upgraderun_operator.model.names import API_VERSION, RUN_KIND
from upgraderun_protocol.bundle import RunRef


def owner_reference(run: RunRef) -> Mapping[str, Any]:
    """The controller reference that garbage collection and adoption rest on."""
    return {
        "apiVersion": API_VERSION,
        "kind": RUN_KIND,
        "name": run.name,
        "uid": run.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
