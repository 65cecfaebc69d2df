"""Events: one per transition, each says what happens next (DESIGN §3). Pure.

The name is computed from run UID and what happened, so the same transition never makes two.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from upgraderun_operator.model.names import API_VERSION, GROUP, RUN_KIND
from upgraderun_protocol.bundle import RunRef
from upgraderun_protocol.canonical import digest_of
from upgraderun_protocol.limits import MESSAGE_MAX
from upgraderun_protocol.redact import Redactor

COMPONENT: Final = "upgraderun-operator"


@dataclass(frozen=True, slots=True)
class EventText:
    """What is told. `key` makes it unique within the run: an entry id, a digest."""

    reason: str
    message: str
    key: str
    warning: bool = False


def event_name(run: RunRef, event: EventText) -> str:
    """Name of the object: run name (cut) and a digest of UID, reason and key."""
    digest = digest_of({"uid": run.uid, "reason": event.reason, "key": event.key})
    return f"{run.name[:200].rstrip('.-')}.{digest[:16]}"


def event_manifest(
    run: RunRef, event: EventText, *, at: str, reporter: str, redactor: Redactor
) -> Mapping[str, Any]:
    """Write an `events.k8s.io/v1` Event about a run. The note is redacted first, cut second."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": event_name(run, event), "namespace": run.namespace},
        "regarding": {
            "apiVersion": API_VERSION,
            "kind": RUN_KIND,
            "name": run.name,
            "namespace": run.namespace,
            "uid": run.uid,
        },
        "reason": event.reason,
        "action": event.reason,
        "note": redactor.redact(event.message, MESSAGE_MAX),
        "type": "Warning" if event.warning else "Normal",
        "eventTime": at,
        "reportingController": f"{GROUP}/{COMPONENT}",
        "reportingInstance": reporter[:128],
    }
