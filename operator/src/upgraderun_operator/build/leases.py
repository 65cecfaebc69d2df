"""The run Lease: what it says, who may take it, and the object after taking or renewing it. Pure.

Callers: `api.run_lease`; the empty Lease is `build.claims.run_lease`. The holder is
`<pod UID>/<boot nonce>`, the epoch is `leaseTransitions` (DESIGN §7, runner-protocol.md §1.6):

    free                                   take, epoch + 1
    ours (same pod, same nonce)            replay, epoch unchanged; above a later journal's
    another's, unchanged for its duration  take
    another's, whose end is journaled and whose pod is gone   take at once
    another's otherwise                    held, by whom and until when
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from upgraderun_protocol.ids import Epoch, PodUid
from upgraderun_protocol.limits import RUN_LEASE_SECONDS

_TIME: Final = "%Y-%m-%dT%H:%M:%S.%fZ"


@dataclass(frozen=True, slots=True)
class LeaseView:
    """A Lease at one version. `holder` empty: free. `renewed_at` is the holder's own word."""

    raw: Mapping[str, Any]
    holder: str
    epoch: Epoch
    renewed_at: str

    @property
    def pod_uid(self) -> PodUid:
        """The pod of the holder."""
        return PodUid(self.holder.partition("/")[0])

    @property
    def fingerprint(self) -> tuple[str, str, int, str]:
        """What changes with each renewal: equal fingerprints mean that nobody renewed."""
        uid = str(self.raw["metadata"]["uid"])
        return uid, self.holder, self.epoch, self.renewed_at

    def expires_at(self) -> str:
        """When it expires if nobody renews it: for messages only, never a verdict."""
        try:
            moment = datetime.fromisoformat(self.renewed_at)
        except ValueError:
            return "unknown"
        return (moment + timedelta(seconds=RUN_LEASE_SECONDS)).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class Take:
    """Write the Lease under this epoch."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Replay:
    """It is ours already."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Held:
    """Another incarnation holds it."""

    pod_uid: PodUid
    expires_at: str


Claim = Take | Replay | Held


def holder_of(pod_uid: PodUid, boot_nonce: str) -> str:
    """Identity of one process of one pod."""
    return f"{pod_uid}/{boot_nonce}"


def lease_view(raw: Mapping[str, Any]) -> LeaseView:
    """Read a Lease. What isn't of our form counts as absent: free, epoch 0."""
    spec = raw.get("spec") or {}
    transitions = spec.get("leaseTransitions")
    return LeaseView(
        raw,
        str(spec.get("holderIdentity") or ""),
        Epoch(transitions if isinstance(transitions, int) else 0),
        str(spec.get("renewTime") or ""),
    )


def claim(lease: LeaseView, holder: str, journal_epoch: Epoch, *, may_take_over: bool) -> Claim:
    """Decide who has the Lease after this `hello`. The new epoch is above both known ones.

    `may_take_over`: the present holder is expired, or ended and gone. A Lease that somebody
    re-created counts from 0; the journal's highest epoch keeps ours from falling.
    """
    if lease.holder == holder and lease.epoch >= journal_epoch:
        return Replay(lease.epoch)
    if lease.holder not in {"", holder} and not may_take_over:
        return Held(lease.pod_uid, lease.expires_at())
    return Take(Epoch(max(lease.epoch, journal_epoch) + 1))


def taken(lease: LeaseView, holder: str, epoch: Epoch, now: datetime) -> Mapping[str, Any]:
    """The Lease in another's hand, at the version that was read."""
    at = now.strftime(_TIME)
    return _changed(
        lease,
        {
            "holderIdentity": holder,
            "leaseTransitions": epoch,
            "leaseDurationSeconds": RUN_LEASE_SECONDS,
            "acquireTime": at,
            "renewTime": at,
        },
    )


def renewed(lease: LeaseView, now: datetime) -> Mapping[str, Any]:
    """The same Lease with its time moved, at the version that was read."""
    return _changed(lease, {"renewTime": now.strftime(_TIME)})


def _changed(lease: LeaseView, changes: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = lease.raw.get("spec") or {}
    return {**lease.raw, "spec": {**spec, **changes}}
