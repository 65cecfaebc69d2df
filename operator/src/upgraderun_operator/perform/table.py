"""The door to every effect: which function performs it, between which fault points (upgrade-run.md §14).

Callers: `operating`, which adds the table of `finalize`. Nothing else calls a performing function, so
that no effect is reached but between its points; the tidy test compares these tables with the closed
union and with the rows of `upgraderun_protocol.effects`.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

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
from upgraderun_operator.observe.world import World
from upgraderun_operator.perform.appending import Appending
from upgraderun_operator.perform.creating import Creating
from upgraderun_operator.perform.repository import Repository
from upgraderun_operator.perform.results import Applied, NoAnswer, Result
from upgraderun_operator.perform.telling import Telling
from upgraderun_protocol.effects import Position


@dataclass(frozen=True, slots=True)
class Binding:
    """How one effect is performed and looked for.

    `name`: its row in the table of effects; an append has its own. `look`: what the next pass reads to
    see whether it stands; None: the run itself, which every pass reads. `after`: what follows it
    for people's sake and may be missed.
    """

    name: str
    perform: Callable[[Observation, Any], Awaitable[Result]]
    look: Need | None = None
    after: Callable[[Observation, Any], Awaitable[None]] | None = None


Table = Mapping[type[Any], Binding]


def table(world: World, telling: Telling) -> Table:
    """Everything that starts or goes on."""
    creating, repository = Creating(world), Repository(world)
    appending = Appending(world, telling)
    return {
        Append: Binding("append", appending.append, after=appending.tell),
        TakeRepositoryLease: Binding("repository_lease", repository.take, Need.REPOSITORY),
        CreateClaim: Binding("pvc", creating.claim, Need.CLAIM),
        CreateRunLease: Binding("run_lease", creating.run_lease, Need.LEASE),
        CreateRunnerPod: Binding("runner_pod", creating.pod, Need.POD),
        CreatePublisherPod: Binding("publisher_pod", creating.pod, Need.POD),
        WriteReport: Binding("report", creating.report, Need.REPORT),
        Announce: Binding("event", telling.announce),
    }


class Performer:
    """Performs one effect and decides nothing."""

    def __init__(self, world: World, bindings: Table) -> None:
        self._world = world
        self._bindings = bindings

    async def perform(self, seen: Observation, effect: Effect) -> Result:
        """Carry one effect out, passing its fault points."""
        binding = self._bindings[type(effect)]
        name = effect.name if isinstance(effect, Append) else binding.name
        self._world.fault(name, Position.BEFORE)
        result = await binding.perform(seen, effect)
        if not isinstance(result, Applied):
            return result
        if self._world.fault(name, Position.REPLY_LOST):
            return NoAnswer("cluster", "the reply was lost")
        self._world.fault(name, Position.APPLIED)
        if binding.after is not None:
            await binding.after(seen, effect)
        if isinstance(effect, Append):
            # An append is its own record; it may be that of a pod, too.
            for recorded in (name, *((effect.records,) if effect.records else ())):
                self._world.fault(recorded, Position.RECORDED)
        return result
