"""One active run per repository in the whole cluster (DESIGN §7): the second waits, then goes on.

The first run holds the repository while it works; once it is over, or asks people, the second goes
on by itself. A target that the first has frozen is none for the second (upgrade-run.md §5.1).
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from support.ends import check_remote
from support.journals import Story, read_story
from support.kubeapi import Json, Kube
from support.ordinary_user import RunnerEnvironment
from support.platform import Platform, open_namespace
from support.scenarios import load_table
from support.worlds import Outside, Scene, open_scene
from upgraderun_protocol.entries import Entry

ROW = next(row for row in load_table() if row.id == "patch-safe")
TARGET = ("tinylib", "1.0.1")

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def neighbour(
    platform: Platform, kube: Kube, runner: RunnerEnvironment, outside: Outside, folder: Path
) -> AsyncIterator[Platform]:
    """Another team's namespace under the same operator."""
    async with open_namespace(
        kube, "team-b", runner, outside.policy(), folder / "team-b", platform.operators
    ) as opened:
        await opened.apply_config("trust", {"ca.crt": outside.bundle.read_text()})
        yield opened


def condition(status: Json, kind: str) -> Json:
    found: Json = next((c for c in status.get("conditions", []) if c["type"] == kind), {})
    return found


def works(status: Json) -> bool:
    """A runner has said hello, so the run is far from its end and holds its repository."""
    return any(e["id"] == "a1/i1" for e in status.get("journal", {}).get("entries", []))


def waits_for_the_repository(status: Json) -> bool:
    return condition(status, "Succeeded").get("reason") == "RepositoryBusy"


async def second_behind_first(first: Scene, mode: str, second: Scene, name: str) -> Json:
    """Start a run, then one of the same repository; give back the wait that the second shows."""
    await first.platform.create_run(first.name, first.spec(mode))
    await first.platform.wait_for(first.name, works, "works")
    await second.platform.create_run(name, second.spec("Rules"))
    status = await second.platform.wait_for(name, waits_for_the_repository, "waits for its turn")
    assert not (await first.platform.status(first.name)).get("outcome")
    return status


def check_wait(status: Json, holder: str) -> None:
    """The wait names who holds the repository, and nothing of the waiting run exists yet."""
    assert holder in condition(status, "Succeeded")["message"]
    assert "RepositoryBusy" == status["wait"]["reason"]
    assert [] == status.get("journal", {}).get("entries", [])


def check_order(second: Story, freed: Entry | None) -> None:
    """A run was admitted after the other one had come to an entry."""
    admitted = second.fold.done("admit")
    assert admitted is not None
    assert freed is not None
    assert freed.at <= admitted.at


async def test_the_second_run_of_a_namespace_goes_on_when_the_first_asks_people(
    platform: Platform, outside: Outside, folder: Path
) -> None:
    scene = await open_scene(ROW, "busy-here", folder / "scenes", outside, platform)

    waiting = await second_behind_first(scene, "Rules", scene, "busy-here-second")
    check_wait(waiting, "team-a/busy-here")
    await platform.asked("busy-here")
    second = await platform.finished("busy-here-second")

    assert "NoCandidate" == second["outcome"], platform.story(second)
    assert "RepositoryBusy" in {e["reason"] for e in await platform.events("busy-here-second")}
    await platform.answer("busy-here")
    first = await platform.finished("busy-here")
    assert "Published" == first["outcome"], platform.story(first)
    stories = [await read_story(platform, name) for name in ("busy-here", "busy-here-second")]
    assert {"already_proposed"} == stories[1].reasons_of(*TARGET)
    check_order(stories[1], stories[0].fold.intent("req/1"))
    check_remote(scene, ROW.cell("Rules"), stories[0])


async def test_the_second_run_from_another_namespace_goes_on_when_the_first_is_over(
    platform: Platform, neighbour: Platform, outside: Outside, folder: Path
) -> None:
    scene = await open_scene(ROW, "busy-there", folder / "scenes", outside, platform)
    theirs = replace(scene, platform=neighbour)
    await theirs.apply()

    waiting = await second_behind_first(scene, "Baseline", theirs, "busy-there")
    check_wait(waiting, "team-a/busy-there")
    first = await platform.finished("busy-there")
    await neighbour.asked("busy-there")
    await neighbour.answer("busy-there")
    second = await neighbour.finished("busy-there")

    assert ["ProposalPrepared", "Published"] == [first["outcome"], second["outcome"]]
    stories = [await read_story(team, "busy-there") for team in (platform, neighbour)]
    check_order(stories[1], stories[0].fold.done("outcome"))
    check_remote(theirs, ROW.cell("Rules"), stories[1])
