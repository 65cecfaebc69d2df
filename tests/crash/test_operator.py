"""An operator process struck at every fault point of the table: the next one ends the run the same.

Real processes against a real API server (reliability.md Q10); the test plays pods, kubelet and people.
Killed, the process is started again without the fault, and takes the leader Lease once it has expired.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clusterlib.apiserver import ApiServer
from support.crash import (
    MINTED,
    OPERATOR_KILLS,
    REFUSED,
    Kill,
    Scenario,
    Struck,
    loses_reply,
    note,
    proof,
)
from support.desk import OPERATOR_NAMESPACE, Desk, Make, Play
from support.operators import OperatorProcess
from support.platform import until
from support.plays import cluster as cluster  # noqa: PLC0414  a fixture, made visible
from support.plays import desk as desk  # noqa: PLC0414  as above
from support.plays import host as host  # noqa: PLC0414  as above
from support.plays import make as make  # noqa: PLC0414  as above
from support.plays import put
from upgraderun_operator.resources import NAMESPACES, SECRETS, UPGRADE_RUNS
from upgraderun_protocol.effects import EFFECTS

pytestmark = [pytest.mark.api, pytest.mark.slow]
WAIT_SECONDS = 120
KILLS = {
    point: kill for point, kill in OPERATOR_KILLS.items() if point.rpartition(".")[0] not in MINTED
}
ENDS: dict[Scenario, "End"] = {}


@dataclass(frozen=True, slots=True)
class End:
    """What people see of a run that is over, and what stands beside it."""

    outcome: str
    exit_code: int
    conditions: frozenset[tuple[str, str, str]]
    entries: tuple[str, ...]
    left: tuple[str, ...]
    finalizers: tuple[str, ...]


@dataclass(slots=True)
class Stage:
    """One run under one operator process, which is started again where it was killed."""

    play: Play
    operator: OperatorProcess
    found: str = ""
    revived: bool = False

    async def until(self, holds: Callable[[], Awaitable[bool]], what: str) -> None:
        """Wait for a state of the world; whoever is dead by then is started again."""

        async def holds_or_revived() -> bool:
            if await holds():
                return True
            await self.revive()
            return False

        try:
            await until(holds_or_revived, what, WAIT_SECONDS)
        except AssertionError as error:
            entries = await self.play.entries()
            raise AssertionError(f"{error}: {entries}\n{self.operator.tail()}") from None

    async def revive(self) -> None:
        """Start a killed process again, without the fault, and keep what it left behind."""
        process = self.operator.process
        if process is None or process.returncode is None:
            return
        assert -9 == process.returncode, self.operator.tail()
        self.found = (await self.play.entries() or ["nothing"])[-1]
        self.operator.variables = {}
        self.revived = True
        await self.operator.start()

    async def says(self, entry: str) -> None:
        """Wait for an entry of the journal."""

        async def stands() -> bool:
            return entry in await self.play.entries()

        await self.until(stands, entry)

    async def struck(self, line: str) -> None:
        """Wait until the hook says that the point was hit, and the process has come back."""

        async def told() -> bool:
            return line in self.operator.log.read_text(errors="replace")

        await self.until(told, line)
        if "SIGKILL" in line and not self.revived:
            await self.operator.ended()
            await self.revive()

    async def over(self) -> None:
        """Wait until the run is over, and all that has to go is gone."""

        async def cleared() -> bool:
            raw = await self.play.get(UPGRADE_RUNS, self.play.name)
            done = bool(raw.get("status", {}).get("finished"))
            held = raw["metadata"].get("finalizers")
            left = await self.play.left() if done and not held else ["?"]
            return all(one.startswith("UpgradeReport") for one in left)

        await self.until(cleared, "over")


async def live(stage: Stage) -> None:
    """The whole life up to the publisher's verdict."""
    play = stage.play

    async def asked() -> bool:
        return (await play.view()).state.pending_request is not None

    await stage.says("a1 done")
    await play.runs("a1")
    await play.freeze()
    await stage.until(asked, "people are asked")
    await play.approve()
    await stage.says("d1 done")
    await play.runs("d1")
    await play.publish()


async def end_of(play: Play) -> End:
    """Read the end."""
    raw = await play.get(UPGRADE_RUNS, play.name)
    status: dict[str, Any] = raw["status"]
    return End(
        status["outcome"],
        status["exitCode"],
        frozenset((one["type"], one["status"], one["reason"]) for one in status["conditions"]),
        tuple(await play.entries()),
        tuple(one.split()[0] for one in await play.left()),
        tuple(raw["metadata"].get("finalizers") or ()),
    )


async def played(
    scenario: Scenario, make: Make, operator: OperatorProcess, line: str = ""
) -> tuple[End, str]:
    """Play one run to its end, and what a killed process had left in the journal."""
    async with operator:
        if scenario == REFUSED:
            policy = {"repositories": ["https://git.example/other/*"]}
            stage = Stage(await make(policy=policy), operator)
        else:
            stage = Stage(await make(), operator)
            await live(stage)
        if line:
            await stage.struck(line)
        await stage.over()
        return await end_of(stage.play), stage.found


@pytest.fixture
async def operator(
    cluster: ApiServer, desk: Desk, place: Path, tmp_path: Path, hook: Path
) -> OperatorProcess:
    """A process that is not yet started; it shares its artifacts with the desk."""
    await put(desk, NAMESPACES, None, metadata={"name": OPERATOR_NAMESPACE})
    await put(desk, SECRETS, OPERATOR_NAMESPACE, metadata={"name": "upgraderun-operator-tls"})
    store = tmp_path / "store"
    config = cluster.kubeconfig
    return OperatorProcess("crash", config, OPERATOR_NAMESPACE, store, place, hook=hook)


@pytest.mark.parametrize(("point", "kill"), KILLS.items(), ids=KILLS)
async def test_an_operator_struck_at(
    point: str, kill: Kill, make: Make, operator: OperatorProcess
) -> None:
    if kill.scenario not in ENDS:
        ENDS[kill.scenario], _ = await played(kill.scenario, make, operator)
    operator.variables = {"UPGRADERUN_FAULT": kill.spelt(point)}

    end, found = await played(kill.scenario, make, operator, proof(point, kill))

    assert ENDS[kill.scenario] == end
    assert len(end.entries) == len(set(end.entries))
    row = EFFECTS[point.rpartition(".")[0]]
    did = row.not_applied if point.endswith(".before") else row.applied
    where = "it lived on" if loses_reply(point) else f"last entry {found}"
    scenario = f"{kill.scenario.row} {kill.scenario.mode}"
    note(Struck("operator", kill.spelt(point), scenario, f"{where}; {did}", end.outcome))
