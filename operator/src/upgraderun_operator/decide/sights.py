"""What one live look at a pod means, and what an ended container tells (runner-protocol.md §5).

    A silent    no information: no stamp, no clearing, no verdict
    B starting  recorded UID, container waiting: never a loss
    C alive     recorded UID, container running, also while it is being deleted
    D exited    recorded UID, container terminated or pod Failed or Succeeded
    E lost      404 by a live read
    F foreign   same name, other UID: lost, and the stranger isn't touched

Pure. Callers: `decide.loss`, `decide.stopping`.
"""

from dataclasses import dataclass
from enum import Enum

from upgraderun_operator.decide.readings import ABSENT, Reading
from upgraderun_operator.decide.views import PodView, Terminated, Waiting
from upgraderun_operator.model.conditions import StalledReason
from upgraderun_protocol.ends import EndCause
from upgraderun_protocol.ids import PodUid
from upgraderun_protocol.outcomes import FENCED_EXIT, GAVE_UP_EXIT


class Sight(Enum):
    """The letters of the drawing above."""

    SILENT = "A"
    STARTING = "B"
    ALIVE = "C"
    EXITED = "D"
    LOST = "E"
    FOREIGN = "F"


def sight(pod: Reading[PodView], uid: PodUid) -> Sight:
    """Classify a reading of the recorded pod. The caller made sure that it was readable."""
    if pod is ABSENT:
        return Sight.LOST
    assert isinstance(pod, PodView)
    if pod.uid != uid:
        return Sight.FOREIGN
    if isinstance(pod.container, Terminated) or pod.phase in {"Failed", "Succeeded"}:
        return Sight.EXITED
    if pod.silent_at is not None:
        return Sight.SILENT
    if pod.container is None or isinstance(pod.container, Waiting):
        return Sight.STARTING
    return Sight.ALIVE


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a pod ended, as its container's state tells it."""

    cause: EndCause
    exit_code: int | None
    reason: str
    message: str


def evidence(pod: Reading[PodView], uid: PodUid) -> Evidence:
    """Read the row of runner-protocol.md §5.4. A pod that isn't there, or is another, is gone."""
    if not isinstance(pod, PodView) or pod.uid != uid:
        return Evidence(EndCause.POD_GONE, None, "NotFound", "the pod is gone")
    container = pod.container
    if not isinstance(container, Terminated):
        if pod.disrupted:
            return Evidence(EndCause.DISRUPTED, None, "Disrupted", "the pod was evicted")
        return Evidence(EndCause.POD_GONE, None, pod.phase, "no record of the container is left")
    code, reason = container.exit_code, container.reason
    if code == GAVE_UP_EXIT:
        return Evidence(EndCause.GAVE_UP, code, reason, "the runner didn't reach the operator")
    if code == FENCED_EXIT:
        return Evidence(EndCause.FENCED, code, reason, "another incarnation took over")
    if reason == "ContainerStatusUnknown" or (code == 255 and reason == "Unknown"):
        return Evidence(EndCause.POD_GONE, code, reason, "the node lost track of the container")
    if reason == "OOMKilled":
        return Evidence(EndCause.OUT_OF_MEMORY, code, reason, "more memory than the pod's limit")
    if code in {137, 143} and (pod.disrupted or pod.deleted_at is not None):
        return Evidence(EndCause.DISRUPTED, code, reason, "the pod was evicted or deleted")
    if reason in _START_REASONS:
        text = f"the container couldn't start ({reason}): is it the right image?"
        return Evidence(EndCause.CRASHED, code, reason, text)
    return Evidence(EndCause.CRASHED, code, reason, f"the process ended with {code}")


_START_REASONS = frozenset({"StartError", "ContainerCannotRun", "RunContainerError"})


_IMAGE_REASONS = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
)


def held_back_by(pod: PodView) -> tuple[StalledReason, str]:
    """Say what keeps a pod from starting: image, volume, or no node that takes it."""
    container = pod.container
    if isinstance(container, Waiting) and container.reason in _IMAGE_REASONS:
        return StalledReason.IMAGE_UNAVAILABLE, _said(container)
    if pod.unschedulable is not None:
        return _unscheduled(pod.unschedulable)
    words = f" ({_said(container)})" if isinstance(container, Waiting) else ""
    return StalledReason.STORAGE_UNAVAILABLE, f"its volumes aren't mounted yet{words}"


def _said(container: Waiting) -> str:
    return f"{container.reason}: {container.message}" if container.message else container.reason


def _unscheduled(message: str) -> tuple[StalledReason, str]:
    volume = "PersistentVolumeClaim" in message or "volume" in message.lower()
    reason = StalledReason.STORAGE_UNAVAILABLE if volume else StalledReason.POD_UNSCHEDULABLE
    return reason, message
