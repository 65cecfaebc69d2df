"""Which function performs which effect, with the fault points around it (upgrade-run.md §14).

Callers: `operating`, which adds the table of `finalize`. An effect without a function fails mypy's
exhaustiveness in `reconcile` no less than the tidy test of fault points.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

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
from upgraderun_operator.perform.results import Applied, Result
from upgraderun_operator.perform.telling import Telling

Table = Mapping[type[Any], Callable[[Observation, Any], Awaitable[Result]]]

_RECORDED_LATER = frozenset({"runner_pod", "publisher_pod"})
"""Effects whose outcome is an entry of its own: that append passes their `recorded`."""


def table(world: World, telling: Telling) -> Table:
    """Functions for everything that starts or goes on."""
    creating, repository = Creating(world), Repository(world)
    return {
        Append: Appending(world, telling).append,
        TakeRepositoryLease: repository.take,
        CreateClaim: creating.claim,
        CreateRunLease: creating.run_lease,
        CreateRunnerPod: creating.pod,
        CreatePublisherPod: creating.pod,
        WriteReport: creating.report,
        Announce: telling.announce,
    }


class Performer:
    """Performs one effect and decides nothing."""

    def __init__(self, world: World, functions: Table) -> None:
        self._world = world
        self._functions = functions

    async def perform(self, seen: Observation, effect: Effect) -> Result:
        """Carry one effect out, passing its fault points."""
        point: str | None = getattr(effect, "POINT", None)
        if point is None:
            return await self._functions[type(effect)](seen, effect)
        self._world.fault(f"{point}.before")
        result = await self._functions[type(effect)](seen, effect)
        if isinstance(result, Applied):
            self._world.fault(f"{point}.applied")
            if point not in _RECORDED_LATER:
                self._world.fault(f"{point}.recorded")
        return result
