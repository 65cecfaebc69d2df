"""Creates children of a run: volume, Leases, pods, report. One effect per function.

AlreadyExists isn't an error and no adoption: what stands under the name is read then, and its
owner compared. A refusal of what wasn't looked for may mean the same: a quota that the object itself
fills refuses before the name is compared. Callers: `perform.table`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from upgraderun_operator.answers import (
    AlreadyExists,
    Conflict,
    CreateAnswer,
    Denied,
    KubeObject,
    NotFound,
    Ok,
    PutAnswer,
    Unknown,
)
from upgraderun_operator.build.reports import report_manifest
from upgraderun_operator.decide.decision import Need
from upgraderun_operator.decide.effects import (
    CreateClaim,
    CreatePublisherPod,
    CreateRunLease,
    CreateRunnerPod,
    WriteReport,
)
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.readings import NOT_READ
from upgraderun_operator.decide.views import PodView
from upgraderun_operator.model.conditions import StalledReason
from upgraderun_operator.observe.convert import child_view, pod_view
from upgraderun_operator.observe.world import World
from upgraderun_operator.perform.results import Applied, Exists, Moved, NoAnswer, Refusal, Result
from upgraderun_operator.resources import (
    CLAIMS,
    LEASES,
    PODS,
    SERVICE_ACCOUNTS,
    UPGRADE_REPORTS,
)

_WORDS_MAX: Final = 400
_MEND: Final = (
    "mend what it names, such as a quota, an admission policy or a right; it is tried again every "
    "five minutes"
)


@dataclass(frozen=True, slots=True)
class _Child:
    """What is made: under which reason its refusal stalls a run, and in which words."""

    reason: StalledReason
    words: str


_VOLUME: Final = _Child(StalledReason.STORAGE_UNAVAILABLE, "the workspace volume")
_LEASE: Final = _Child(StalledReason.POD_UNSCHEDULABLE, "the run Lease")
_POD: Final = _Child(StalledReason.POD_UNSCHEDULABLE, "the pod")
_ACCOUNT: Final = _Child(StalledReason.POD_UNSCHEDULABLE, "the pod's service account")
_REPORT: Final = _Child(StalledReason.STORAGE_UNAVAILABLE, "the UpgradeReport")


class Creating:
    """Remembers which service accounts it has seen, nothing else."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._accounts: set[tuple[str, str]] = set()

    async def claim(self, seen: Observation, effect: CreateClaim) -> Result:
        """Make the workspace volume."""
        answer = await self._world.cluster.create(CLAIMS, seen.view.ref.namespace, effect.manifest)
        if isinstance(answer, Denied) and seen.claim is NOT_READ:
            return Exists(Need.CLAIM)
        return _child(answer, _VOLUME, Need.CLAIM, child_view)

    async def run_lease(self, seen: Observation, effect: CreateRunLease) -> Result:
        """Make the run Lease."""
        answer = await self._world.cluster.create(LEASES, seen.view.ref.namespace, effect.manifest)
        if isinstance(answer, Denied) and seen.lease is NOT_READ:
            return Exists(Need.LEASE)
        return _child(answer, _LEASE, Need.LEASE, child_view)

    async def pod(self, seen: Observation, effect: CreateRunnerPod | CreatePublisherPod) -> Result:
        """Make a pod, and before it the account it runs under, which has no rights at all."""
        namespace = seen.view.ref.namespace
        account = str(effect.manifest["spec"]["serviceAccountName"])
        ready = await self._account(namespace, account)
        if not isinstance(ready, Applied):
            return ready
        answer = await self._world.cluster.create(PODS, namespace, effect.manifest)
        if isinstance(answer, Denied):
            # The account may have been deleted meanwhile: look for it again the next time.
            self._accounts.discard((namespace, account))

        def view(raw: KubeObject) -> PodView:
            return pod_view(raw, seen.now, self._world.redactor)

        return _child(answer, _POD, Need.POD, view)

    async def report(self, seen: Observation, effect: WriteReport) -> Result:
        """Create the UpgradeReport, or replace the version that was seen."""
        manifest = dict(report_manifest(seen.view.ref, effect.content))
        if effect.seen is None:
            answer = await self._world.cluster.create(
                UPGRADE_REPORTS, seen.view.ref.namespace, manifest
            )
            return _created(answer, _REPORT)
        metadata = {
            **manifest["metadata"],
            "uid": effect.seen.uid,
            "resourceVersion": effect.seen.version,
        }
        return replaced(
            await self._world.cluster.put(UPGRADE_REPORTS, {**manifest, "metadata": metadata})
        )

    async def _account(self, namespace: str, name: str) -> Result:
        if (namespace, name) in self._accounts:
            return Applied()
        found = await self._world.cluster.get(SERVICE_ACCOUNTS, namespace, name)
        if isinstance(found, NotFound):
            manifest = _account_manifest(namespace, name)
            answer = await self._world.cluster.create(SERVICE_ACCOUNTS, namespace, manifest)
            made = _created(answer, _ACCOUNT)
            if not isinstance(made, Applied):
                return made
        elif not isinstance(found, Ok):
            return NoAnswer("cluster", str(found))
        self._accounts.add((namespace, name))
        return Applied()


def _account_manifest(namespace: str, name: str) -> Mapping[str, Any]:
    """An account without any binding: the pods' tokens are for the runner API alone (H3)."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": namespace},
        "automountServiceAccountToken": False,
    }


def _child(
    answer: CreateAnswer, child: _Child, need: Need, view: Callable[[KubeObject], object]
) -> Result:
    """Say how the creation of a child ended that a rule may ask for."""
    match answer:
        case Ok(raw):
            return Applied(found={need: view(raw)})
        case AlreadyExists():
            return Exists(need)
        case _:
            return _created(answer, child)


def _created(answer: CreateAnswer, child: _Child) -> Result:
    match answer:
        case Ok() | AlreadyExists():
            return Applied()
        case NotFound():
            return NoAnswer("cluster", "the namespace is gone or going")
        case Denied(status, message):
            words = f"the API server refused to make {child.words} ({status}): {message}"
            return Refusal(child.reason.value, f"{words[:_WORDS_MAX]}; {_MEND}")
        case Unknown(cause, retry_after):
            return NoAnswer("cluster", cause, retry_after)


def replaced(answer: PutAnswer) -> Result:
    """Say how a compare-and-set ended."""
    match answer:
        case Ok():
            return Applied()
        case NotFound() | Conflict():
            return Moved("the object changed meanwhile")
        case Denied(status, message):
            return NoAnswer("cluster", f"refused ({status}): {message}"[:_WORDS_MAX])
        case Unknown(cause, retry_after):
            return NoAnswer("cluster", cause, retry_after)
