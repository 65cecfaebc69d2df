"""Facts beside the journal: guards and heartbeats that aren't history (DESIGN §3).

They live in `status` next to the projections, are read back (unlike those), and change only
through the guarded write. A loss stamp belongs to the pod beside it: another pod has none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from upgraderun_protocol.ids import Epoch


@dataclass(frozen=True, slots=True)
class Wait:
    """Why nothing moves: a WaitReason or StalledReason of `model.conditions`."""

    reason: str
    message: str
    since: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What a status holds beside journal and projections.

    `attempt_lost_at`, `delivery_lost_at`: first sight of a missing pod (RFC 3339), of the last
    attempt and the last delivery. `renewed_at`: last step of the finalization.
    """

    leader_epoch: Epoch | None = None
    attempt_lost_at: str | None = None
    delivery_lost_at: str | None = None
    renewed_at: str | None = None
    wait: Wait | None = None


def facts_of(status: Mapping[str, Any]) -> Facts:
    """Read the facts of a stored status.

    What has another type than we write counts as absent: a stamp that can't be read opens the
    window anew (runner-protocol.md §5.2).
    """
    leader_epoch = status.get("leaderEpoch")
    return Facts(
        leader_epoch=Epoch(leader_epoch) if isinstance(leader_epoch, int) else None,
        attempt_lost_at=_text(status, "attempt", "lossObservedAt"),
        delivery_lost_at=_text(status, "publication", "lossObservedAt"),
        renewed_at=_text(status, "finalization", "renewedAt"),
        wait=_wait(status.get("wait")),
    )


def _text(status: Mapping[str, Any], part: str, key: str) -> str | None:
    block = status.get(part)
    value = block.get(key) if isinstance(block, Mapping) else None
    return value if isinstance(value, str) else None


def _wait(block: object) -> Wait | None:
    if not isinstance(block, Mapping):
        return None
    texts = tuple(block.get(key) for key in ("reason", "message", "since"))
    if not all(isinstance(text, str) for text in texts):
        return None
    return Wait(*map(str, texts))
