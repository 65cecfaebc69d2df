"""The rules by which kstatus judges a custom resource, restated for tests.

Flux, `kpt` and others wait for objects by them. Source: sigs.k8s.io/cli-utils, pkg/kstatus/status,
`checkGenericProperties` and `checkGeneration` (generic.go), `Compute` (status.go), and
`checkReadyCondition` of later versions. Built-in kinds have further rules; ours is none.
"""

from collections.abc import Mapping
from typing import Any, Final

IN_PROGRESS: Final = "InProgress"
FAILED: Final = "Failed"
CURRENT: Final = "Current"
TERMINATING: Final = "Terminating"


def judge(obj: Mapping[str, Any]) -> tuple[str, str]:
    """Status and message, as `status.Compute` gives them. The order of the checks is theirs."""
    metadata, status = obj["metadata"], obj.get("status", {})
    if metadata.get("deletionTimestamp"):
        return TERMINATING, "Resource scheduled for deletion"
    generation, observed = metadata.get("generation"), status.get("observedGeneration")
    if generation is not None and observed is not None and generation != observed:
        return IN_PROGRESS, f"generation is {generation}, but latest observed is {observed}"
    conditions = status.get("conditions", [])
    for item in conditions:
        if item["type"] == "Reconciling" and item["status"] == "True":
            return IN_PROGRESS, item.get("message", "")
        if item["type"] == "Stalled" and item["status"] == "True":
            return FAILED, item.get("message", "")
    for item in conditions:
        if item["type"] == "Ready":
            return (CURRENT if item["status"] == "True" else IN_PROGRESS), item.get("message", "")
    return CURRENT, "Resource is current"
