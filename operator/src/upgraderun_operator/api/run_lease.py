"""Takes and renews the run Lease by compare-and-set (runner-protocol.md §1.6, DESIGN §7).

Expiry is judged by "unchanged for its duration on this replica's monotonic clock" alone. `Sightings`
remembers when each state of a Lease was first seen; `adapters.lease_watch` feeds it, so that the
time doesn't start only with the first refused `hello`. Callers: the endpoints hello and lease.
"""

from collections import OrderedDict
from typing import Final

from upgraderun_operator.answers import Conflict, Denied, KubeObject, NotFound, Ok, Unknown
from upgraderun_operator.api.context import Call, Tools
from upgraderun_operator.api.errors import ApiError
from upgraderun_operator.build.leases import (
    Held,
    LeaseView,
    Replay,
    Take,
    claim,
    lease_view,
    renewed,
    taken,
)
from upgraderun_operator.journal.run import RunView
from upgraderun_operator.resources import LEASES, PODS
from upgraderun_protocol.ids import Epoch
from upgraderun_protocol.limits import RUN_LEASE_SECONDS
from upgraderun_protocol.messages import ErrorCode
from upgraderun_protocol.slugs import child_name

LEASE_TRIES: Final = 4
SIGHTINGS_MAX: Final = 10_000
RETRY_AFTER_MAX: Final = 10


class Sightings:
    """When this replica first saw each Lease as it is now. Bounded; losing one costs waiting."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[tuple[str, str, int, str], float]] = OrderedDict()

    def saw(self, lease: LeaseView, now: float) -> float:
        """Note a Lease at a monotonic time; give back for how many seconds it is unchanged."""
        uid = lease.fingerprint[0]
        known = self._seen.get(uid)
        if known is None or known[0] != lease.fingerprint:
            self._seen[uid] = (lease.fingerprint, now)
            self._seen.move_to_end(uid)
            if len(self._seen) > SIGHTINGS_MAX:
                self._seen.popitem(last=False)
            return 0.0
        return now - known[1]

    def forget(self, uid: str) -> None:
        """Drop a deleted Lease."""
        self._seen.pop(uid, None)


class RunLeases:
    """The run Leases as one replica handles them."""

    def __init__(self, tools: Tools, sightings: Sightings) -> None:
        self._tools = tools
        self._sightings = sightings

    async def take(self, call: Call, holder: str) -> Epoch:
        """Take the Lease for this process, or find that it has it. Gives the epoch.

        Raises ApiError `run_leased` while another incarnation holds it, `not_ready` without Lease.
        """
        for _ in range(LEASE_TRIES):
            lease = await self._read(call.view)
            may_take_over = await self._may_take_over(call.view, lease)
            match claim(lease, holder, call.view.state.epoch, may_take_over=may_take_over):
                case Replay(epoch):
                    return epoch
                case Held() as held:
                    raise _leased(held, self._unchanged(lease))
                case Take(epoch):
                    body = taken(lease, holder, epoch, self._tools.clock.now())
                    if await self._put(body):
                        return epoch
        raise ApiError(ErrorCode.CONTENDED, "others write the run Lease; try again", 1)

    async def renew(self, call: Call, holder: str) -> None:
        """Move the time of our Lease. Raises ApiError `lease_lost` if it isn't ours any more.

        A Lease that is free under our epoch, since somebody re-created it, is ours to take again:
        nobody else took it, and the journal's epoch still fences (DESIGN §9).
        """
        for _ in range(LEASE_TRIES):
            lease = await self._read(call.view)
            now = self._tools.clock.now()
            if lease.holder == holder and lease.epoch == call.epoch:
                body = renewed(lease, now)
            elif not lease.holder and lease.epoch <= call.epoch:
                body = taken(lease, holder, call.epoch, now)
            else:
                raise ApiError(ErrorCode.LEASE_LOST, f"the Lease is held by {lease.holder or '-'}")
            if await self._put(body):
                return
        raise ApiError(ErrorCode.CONTENDED, "others write the run Lease; try again", 1)

    async def _read(self, view: RunView) -> LeaseView:
        ref = view.ref
        match await self._tools.cluster.get(LEASES, ref.namespace, child_name(ref.name, ref.uid)):
            case Ok(raw) if _is_owned(raw, ref.uid):
                return lease_view(raw)
            case Ok() | NotFound():
                raise ApiError(ErrorCode.NOT_READY, "the run Lease isn't there yet", 1)
            case Denied(_, cause) | Unknown(cause):
                raise ApiError(ErrorCode.STORE_UNAVAILABLE, f"the run Lease: {cause}", 2)

    async def _put(self, body: KubeObject) -> bool:
        """Write; False: somebody was faster or nothing is known, so read again."""
        match await self._tools.cluster.put(LEASES, body):
            case Ok():
                return True
            case Denied(_, message):
                raise ApiError(ErrorCode.STORE_UNAVAILABLE, f"the run Lease: {message}", 2)
            case Conflict() | NotFound() | Unknown():
                return False

    def _unchanged(self, lease: LeaseView) -> float:
        return self._sightings.saw(lease, self._tools.clock.monotonic())

    async def _may_take_over(self, view: RunView, lease: LeaseView) -> bool:
        """Expired by our own clock; or the holder's end is journaled and its pod is gone."""
        if self._unchanged(lease) >= RUN_LEASE_SECONDS:
            return True
        pods = (*view.state.attempts, *view.state.deliveries)
        ended = [pod for pod in pods if pod.pod_uid == lease.pod_uid and pod.end is not None]
        if not ended:
            return False
        match await self._tools.cluster.get(PODS, view.ref.namespace, ended[0].pod_name):
            case NotFound():
                return True
            case Ok(raw):
                return bool(raw["metadata"]["uid"] != lease.pod_uid)
            case _:
                return False


def _is_owned(raw: KubeObject, run_uid: str) -> bool:
    owners = raw["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == run_uid for owner in owners)


def _leased(held: Held, unchanged: float) -> ApiError:
    left = max(1, min(RETRY_AFTER_MAX, int(RUN_LEASE_SECONDS - unchanged) + 1))
    return ApiError(
        ErrorCode.RUN_LEASED,
        f"pod {held.pod_uid} holds the run Lease; it expires at {held.expires_at} if not renewed",
        left,
    )
