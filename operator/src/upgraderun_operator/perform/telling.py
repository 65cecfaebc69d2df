"""Creates Events. Their names are computed, so telling twice makes one (runner-protocol.md §6.4).

Remembers per run what was told, so that a pass with nothing new makes no request. Callers:
`perform.appending` (best effort after a transition), `reconcile` (waits, the end of a run).
"""

from collections import OrderedDict
from typing import Final

from upgraderun_operator.answers import AlreadyExists, Denied, NotFound, Ok, Unknown
from upgraderun_operator.build.events import EventText, event_manifest
from upgraderun_operator.decide.effects import Announce
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.observe.world import World
from upgraderun_operator.perform.results import Applied, NoAnswer, Result
from upgraderun_operator.resources import EVENTS
from upgraderun_protocol.bundle import RunRef
from upgraderun_protocol.ids import RunUid

TRIES_MAX: Final = 5
RUNS_MAX: Final = 4096


class Telling:
    """What was told, per run; a fresh process may try once more and finds the Event there."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._told: OrderedDict[RunUid, set[str]] = OrderedDict()
        self._tries: dict[tuple[RunUid, str], int] = {}

    def told(self, uid: RunUid) -> frozenset[str]:
        """Keys of Events of a run that are known to exist, or were given up."""
        return frozenset(self._told.get(uid, ()))

    def forget(self, uid: RunUid) -> None:
        """Drop what is kept of a run that is over."""
        self._told.pop(uid, None)

    async def announce(self, seen: Observation, effect: Announce) -> Result:
        """Tell for sure: five tries, then the pass goes on without it."""
        return await self.tell(seen.view.ref, effect.event)

    async def tell(self, run: RunRef, event: EventText) -> Result:
        """Create one Event."""
        at = self._world.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        manifest = event_manifest(
            run, event, at=at, reporter=self._world.identity, redactor=self._world.redactor
        )
        answer = await self._world.cluster.create(EVENTS, run.namespace, manifest)
        match answer:
            case Ok() | AlreadyExists() | Denied() | NotFound():
                # A refusal doesn't change by repeating: the run must not hang on an Event.
                self._remember(run.uid, event.key)
                return Applied()
            case Unknown(cause, retry_after):
                return self._failed(run.uid, event.key, cause, retry_after)

    def _failed(self, uid: RunUid, key: str, cause: str, retry_after: float | None) -> Result:
        tries = self._tries.get((uid, key), 0) + 1
        if tries >= TRIES_MAX:
            self._tries.pop((uid, key), None)
            self._remember(uid, key)
            return Applied()
        self._tries[uid, key] = tries
        return NoAnswer("cluster", cause, retry_after)

    def _remember(self, uid: RunUid, key: str) -> None:
        self._tries.pop((uid, key), None)
        self._told.setdefault(uid, set()).add(key)
        self._told.move_to_end(uid)
        if len(self._told) > RUNS_MAX:
            self._told.popitem(last=False)
