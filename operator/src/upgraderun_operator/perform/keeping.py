"""What an effect leaves true of what its pass has read: the next step needn't read it again.

A pass never decides on anything that was read before it began (DESIGN §6); inside a pass a reading
holds until an effect of ours touches what was read. Callers: `reconcile`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from upgraderun_operator.decide.decision import Need
from upgraderun_operator.decide.effects import (
    Announce,
    Append,
    CreateClaim,
    CreatePublisherPod,
    CreateRunLease,
    CreateRunnerPod,
    Effect,
    TakeRepositoryLease,
    WriteReport,
)
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.journal.run import RunView
from upgraderun_operator.perform.results import Applied, Exists
from upgraderun_protocol.ids import RunUid

_STARTING: Final = frozenset({Need.POD, Need.CLAIM, Need.LEASE, Need.FROZEN})
_STAYS_TRUE: Final[Mapping[type[Any], frozenset[Need]]] = {
    TakeRepositoryLease: frozenset({Need.POLICY, Need.DECISIONS}),
    Append: frozenset({Need.CLAIM, Need.LEASE, Need.REPOSITORY}),
    CreateClaim: _STARTING - {Need.CLAIM},
    CreateRunLease: _STARTING - {Need.LEASE},
    CreateRunnerPod: _STARTING - {Need.POD},
    CreatePublisherPod: _STARTING - {Need.POD},
}
"""Readings that an effect doesn't touch."""

_LEAVES_THE_RUN: Final = (
    TakeRepositoryLease,
    CreateClaim,
    CreateRunLease,
    CreateRunnerPod,
    CreatePublisherPod,
    WriteReport,
    Announce,
)
"""Effects on other objects that only make. Before each deletion and release the run itself is read:
the epoch of a later leader in it stops an older one."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What the next step of a pass may start from. All of it was read or written in this pass.

    `since`: when the oldest part was read, monotonic; after KEPT_SECONDS_MAX nothing of it counts.
    `view` None: the run is read anew.
    """

    since: float
    uid: RunUid
    view: RunView | None
    readings: Mapping[str, Any]


def kept_after(seen: Observation, effect: Effect, result: Applied | Exists, since: float) -> Kept:
    """Keep what still holds after this effect. `since`: when the pass read the oldest of it.

    Of what exists already, `seen` holds what was read since.
    """
    stays = set(_STAYS_TRUE.get(type(effect), frozenset()))
    if isinstance(effect, Append) and effect.records is not None:
        stays.add(Need.POD)  # the write recorded the very pod that this pass saw or made
    if isinstance(result, Exists):
        return _kept(seen, seen.view, stays | {result.need}, {}, since)
    view = seen.view if isinstance(effect, _LEAVES_THE_RUN) else result.view
    return _kept(seen, view, stays, result.found, since)


def _kept(
    seen: Observation,
    view: RunView | None,
    stays: set[Need],
    found: Mapping[Need, Any],
    since: float,
) -> Kept:
    readings = {need.value: getattr(seen, need.value) for need in stays}
    readings |= {need.value: value for need, value in found.items()}
    return Kept(since, seen.view.uid, view, readings)
