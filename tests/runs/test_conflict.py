"""Conflict by hand: a person's commit stands on our branch (upgrade-run.md §13.5).

Nothing is touched afterwards, and everybody who looks is told: status, Event, metrics, and an alert
in a real Prometheus that runs the shipped rule as it is.
"""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from support.fixtures.faults import Fault
from support.kubeapi import Json
from support.operators import OperatorProcess
from support.platform import Platform, until
from support.prometheus import Prometheus, instance_of, prometheus_of
from support.scenarios import load_table
from support.worlds import Outside, Scene, open_scene

ROW = next(row for row in load_table() if row.id == "patch-safe")
ALERT = "UpgradeRunConflict"
GAUGE = "upgraderun_runs_in_conflict"
COUNTER = "upgraderun_conflicts_total"

pytestmark = pytest.mark.asyncio(loop_scope="session")


@dataclass(frozen=True, slots=True)
class Watched:
    """Two replicas under a Prometheus; `leader` leads when a test begins."""

    leader: OperatorProcess
    standby: OperatorProcess
    prometheus: Prometheus


@pytest_asyncio.fixture(loop_scope="session")
async def watched(platform: Platform, tmp_path: Path) -> AsyncIterator[Watched]:
    """Add a standby to the session's operator, and a Prometheus that scrapes both."""
    leader = platform.operators[0]
    standby = OperatorProcess(
        "standby",
        leader.kubeconfig,
        leader.namespace,
        leader.artifacts,
        leader.logs,
        leader.variables,
    )
    async with standby, prometheus_of(tmp_path / "prometheus", (leader, standby)) as prometheus:
        await until(partial(leads, leader), "the first replica leads")
        for replica in (leader, standby):
            await prometheus.has_scraped(replica)
        yield Watched(leader, standby, prometheus)


async def sample(operator: OperatorProcess, name: str, **labels: str) -> float:
    """One value of a replica's /metrics."""
    families = text_string_to_metric_families(await operator.metrics())
    found = [
        row.value
        for family in families
        for row in family.samples
        if row.name == name and row.labels == labels
    ]
    assert 1 == len(found), f"{name}{labels}"
    return float(found[0])


async def leads(operator: OperatorProcess) -> bool:
    return await sample(operator, "upgraderun_leader") == 1.0


def traces(scene: Scene) -> dict[str, Any]:
    """Everything that somebody could have touched on the remote."""
    control = scene.outside.servers.host.control
    return {
        "refs": control.refs(scene.repository),
        "updates": control.ref_updates(scene.repository),
        "pulls": control.pulls(scene.repository),
    }


def writes_since(scene: Scene, number: int) -> list[str]:
    """Requests about this repository that could change something."""
    rows = scene.outside.servers.host.control.requests(number + 1)
    return [
        f"{row['method']} {row['path']}"
        for row in rows
        if scene.repository in row["path"]
        and (row["path"].endswith("/git-receive-pack") or row["path"].startswith("/api/"))
        and row["method"] != "GET"
    ]


def last_request(scene: Scene) -> int:
    rows = scene.outside.servers.host.control.requests()
    return int(rows[-1]["seq"]) if rows else 0


async def branch_of(platform: Platform, name: str) -> str:
    """The branch that an approval would let out, as the approver reads it."""
    report = await platform.report(name)
    return str(report["capability"]["destination"]["branch"])


async def check_told(platform: Platform, name: str, kind: str, foreign: str) -> None:
    """Status and Event name the contradiction and the commit that nobody will touch."""
    status = await platform.status(name)
    condition = next(c for c in status["conditions"] if c["type"] == "Conflict")
    assert ("PublicationConflict", 4) == (status["outcome"], status["exitCode"])
    assert ("True", kind) == (condition["status"], condition["reason"])
    assert foreign in condition["message"]
    assert "nothing was touched" in condition["message"]
    assert kind == status["conflict"]["kind"]
    assert foreign in status["conflict"]["observed"]
    events: list[Json] = [
        e for e in await platform.events(name) if e["reason"] == "PublicationConflict"
    ]
    assert ["Warning"] == [event["type"] for event in events]
    assert foreign in events[0]["message"]


def is_pushed(status: Json) -> bool:
    entries = status.get("journal", {}).get("entries", [])
    return any((e["id"], e["state"]) == ("push/1", "done") for e in entries)


async def test_a_foreign_branch_is_left_alone_and_everybody_is_told(
    platform: Platform, outside: Outside, folder: Path, watched: Watched
) -> None:
    """The commit is there before our push."""
    name, leader = "conflict-before", watched.leader
    scene = await open_scene(ROW, name, folder / "scenes", outside, platform)
    await platform.create_run(name, scene.spec("Rules"))
    await platform.asked(name)
    branch = await branch_of(platform, name)
    control = outside.servers.host.control
    foreign = control.commit(scene.repository, branch, {"mine.txt": "by hand\n"}, start="main")
    before, number = traces(scene), last_request(scene)

    await platform.answer(name)
    await platform.finished(name)

    assert before == traces(scene)
    assert [] == before["pulls"]
    assert foreign == before["refs"][f"refs/heads/{branch}"]
    assert [] == writes_since(scene, number)
    await check_told(platform, name, "ForeignBranch", foreign)
    assert 1.0 == await sample(leader, COUNTER, kind="foreign_branch")
    assert 1.0 == await sample(leader, GAUGE, kind="foreign_branch")
    await watched.prometheus.fires(ALERT, kind="foreign_branch", severity="page")


async def test_the_alert_comes_although_the_leader_is_killed_before_the_next_scrape(
    platform: Platform, outside: Outside, folder: Path, watched: Watched
) -> None:
    """The commit comes between our push and our pull request."""
    name, control = "conflict-after", outside.servers.host.control
    leader, standby, prometheus = watched.leader, watched.standby, watched.prometheus
    scene = await open_scene(ROW, name, folder / "scenes", outside, platform)
    await platform.create_run(name, scene.spec("Rules"))
    await platform.asked(name)
    ref = f"refs/heads/{await branch_of(platform, name)}"
    # No look at pull requests, no intent of one: the publisher waits with its branch pushed.
    pulls, publisher = f"/repos/{scene.repository}/pulls$", "^upgraderun-publisher"
    control.add_fault(Fault("status", path=pulls, method="GET", user_agent=publisher))
    await platform.answer(name)
    await platform.wait_for(name, is_pushed, "the push is recorded")
    with prometheus.paused():
        branch = ref.removeprefix("refs/heads/")
        foreign = control.commit(scene.repository, branch, {"mine.txt": "by hand\n"})
        before = traces(scene)
        control.clear_faults()
        await platform.wait_for(name, lambda s: bool(s.get("conflict")), "is in conflict")
        await leader.kill()
        killed_at = time.time()
        await until(partial(leads, standby), "the other replica leads", seconds=60)
        await leader.start()
    await platform.finished(name)

    assert before == traces(scene)
    assert [] == before["pulls"]
    assert ["create", "update"] == [u["kind"] for u in before["updates"] if u["ref"] == ref]
    await check_told(platform, name, "HeadMoved", foreign)
    await prometheus.fires(ALERT, kind="head_moved", severity="page")
    series = f'{GAUGE}{{kind="head_moved"}}'
    scraped = await prometheus.query(f"max_over_time({series}[1h] @ {killed_at:.3f})")
    assert {instance_of(leader): 0.0, instance_of(standby): 0.0} == scraped
    assert 1.0 == await sample(standby, GAUGE, kind="head_moved")
