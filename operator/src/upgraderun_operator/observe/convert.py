"""From decoded Kubernetes objects to the views that decisions rest on. Pure.

Everything here was written by others: what has an odd type counts as absent. Callers:
`observe.readers`.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from upgraderun_operator import limits
from upgraderun_operator.decide.observation import read_time
from upgraderun_operator.decide.views import (
    ApprovalView,
    ChildView,
    PodView,
    ReportView,
    Terminated,
    Waiting,
)
from upgraderun_operator.model.approval import ApprovalDecision
from upgraderun_operator.model.objects import UpgradeApproval
from upgraderun_protocol.ids import PodUid, ResourceVersion, RunUid
from upgraderun_protocol.redact import Redactor

Raw = Mapping[str, Any]
WORDS_MAX = 300


def owner_uid(raw: Raw) -> str | None:
    """UID of the controller of an object."""
    for reference in raw["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return str(reference.get("uid"))
    return None


def child_view(raw: Raw) -> ChildView:
    """Read a volume claim or a Lease."""
    metadata = raw["metadata"]
    return ChildView(
        name=metadata["name"],
        uid=metadata["uid"],
        owner_uid=owner_uid(raw),
        deleted_at=metadata.get("deletionTimestamp"),
        lost=(raw.get("status") or {}).get("phase") == "Lost",
    )


def report_view(raw: Raw) -> ReportView:
    """Read an UpgradeReport as far as it is compared."""
    metadata = raw["metadata"]
    return ReportView(
        uid=metadata["uid"],
        owner_uid=owner_uid(raw),
        outcome=str(raw.get("outcome", "")),
        digest=raw.get("presentationSha256"),
        version=ResourceVersion(metadata["resourceVersion"]),
        message=str(raw.get("message", "")),
    )


def approval_view(approval: UpgradeApproval) -> ApprovalView:
    """Read an UpgradeApproval."""
    spec, metadata = approval.spec, approval.metadata
    return ApprovalView(
        name=metadata.name,
        uid=metadata.uid,
        run_uid=RunUid(spec.run_ref.uid),
        kind=spec.kind.value,
        digest=spec.digest,
        approves=spec.decision is ApprovalDecision.APPROVE,
        approver=spec.approver,
        requester=approval.claimed_requester,
        comment=spec.comment or "",
        created_at=metadata.creation_timestamp or "",
    )


def pod_view(raw: Raw, now: datetime, redactor: Redactor) -> PodView:
    """Read a pod. Texts of the cluster are redacted; the termination message stays as it is."""
    metadata, status = raw["metadata"], raw.get("status") or {}
    conditions = {item.get("type"): item for item in status.get("conditions") or ()}
    container = _container(status, redactor)
    phase = str(status.get("phase", "Pending"))
    deleted_at = metadata.get("deletionTimestamp")
    return PodView(
        name=metadata["name"],
        uid=PodUid(metadata["uid"]),
        owner_uid=owner_uid(raw),
        created_at=metadata["creationTimestamp"],
        phase=phase,
        container=container,
        deleted_at=deleted_at,
        disrupted=_is_true(conditions.get("DisruptionTarget")) or status.get("reason") == "Evicted",
        silent_at=_silent_at(phase, container, conditions, deleted_at, now),
        unschedulable=_unschedulable(conditions.get("PodScheduled"), redactor),
        version=str(metadata.get("resourceVersion", "")),
    )


def _container(status: Raw, redactor: Redactor) -> Terminated | Waiting | str | None:
    """State of the one container; a pod that failed before it started has none."""
    statuses = status.get("containerStatuses") or ()
    state = (statuses[0].get("state") or {}) if statuses else {}
    if ended := state.get("terminated"):
        return Terminated(
            exit_code=int(ended.get("exitCode", 255)),
            reason=str(ended.get("reason", "")),
            message=str(ended.get("message", "")),
        )
    if "running" in state:
        return "running"
    if waiting := state.get("waiting"):
        message = redactor.redact(str(waiting.get("message", "")), WORDS_MAX)
        return Waiting(str(waiting.get("reason", "")), str(message))
    return None


def _is_true(condition: Raw | None) -> bool:
    return condition is not None and condition.get("status") == "True"


def _unschedulable(condition: Raw | None, redactor: Redactor) -> str | None:
    if condition is None or condition.get("status") != "False":
        return None
    return str(redactor.redact(str(condition.get("message", "no node takes it")), WORDS_MAX))


def _silent_at(
    phase: str,
    container: object,
    conditions: Mapping[Any, Raw],
    deleted_at: str | None,
    now: datetime,
) -> str | None:
    """Since when the pod's node says nothing (runner-protocol.md §5.1), or None.

    Three signs: phase Unknown; Ready False while the container is recorded as running (the node
    controller's mark: our pods have no readiness probe); 60 s past the deletion without an end.
    """
    ready = conditions.get("Ready")
    marked = ready is not None and ready.get("status") == "False" and container == "running"
    if ready is not None and (marked or phase == "Unknown"):
        return str(ready.get("lastTransitionTime", "")) or _rfc3339(now)
    if phase == "Unknown":
        return _rfc3339(now)
    at = read_time(deleted_at) if deleted_at is not None else None
    if at is None or isinstance(container, Terminated) or phase in {"Failed", "Succeeded"}:
        return None
    since = at + timedelta(seconds=limits.DELETED_SILENT_SECONDS)
    return _rfc3339(since) if now >= since else None


def _rfc3339(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
