"""Ten ends on a real API server, as `kubectl describe` tells them: a colleague's note each.

`UPDATE_GOLDEN=1` writes the golden file anew; read the difference as somebody on call would.
"""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from clusterlib.apiserver import ApiServer
from support.described import described
from support.desk import Make, Play
from support.journal_story import draft
from upgraderun_operator.answers import Ok
from upgraderun_operator.resources import CLAIMS, EVENTS
from upgraderun_protocol.ids import RunUid
from upgraderun_protocol.records import to_bytes
from upgraderun_protocol.report import ReportRecord
from upgraderun_protocol.slugs import child_name

pytestmark = pytest.mark.api

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "describe.txt"
DRY = {"publication": {"enabled": False}}


async def started(make: Make, **spec: object) -> Play:
    """A run whose first runner works."""
    play = await make(**spec)
    await play.go()
    await play.runs("a1")
    await play.go()
    return play


async def asked(make: Make) -> Play:
    """A run that waits for people."""
    play = await started(make)
    await play.freeze()
    await play.go()
    return play


async def concluded(make: Make, outcome: str, message: str) -> Play:
    """A run that its runner ends with these words, in its verdict and in its report."""
    play = await started(make)
    epoch = await play.hello("a1")
    record = ReportRecord(version=1, outcome=outcome, message=message)
    report = await play.store(to_bytes(record))
    words = message[:160]
    end = draft("outcome", "outcome", "done", {"report": report}, outcome=outcome, message=words)
    await play.say(end, epoch=epoch)
    await play.exits("a1", 4)
    await play.go()
    return play


async def published(make: Make) -> Play:
    play = await asked(make)
    await play.approve()
    await play.go()
    await play.runs("d1")
    await play.go()
    await play.publish()
    await play.go()
    return play


async def prepared(make: Make) -> Play:
    play = await started(make, **DRY)
    await play.freeze()
    await play.go()
    return play


async def rejected(make: Make) -> Play:
    play = await asked(make)
    await play.approve("no", decision="Reject", comment="not in the week of the release")
    await play.go()
    return play


async def expired(make: Make) -> Play:
    play = await asked(make)
    play.desk.clock.passed += 8 * 24 * 3600
    await play.go()
    return play


async def cancelled(make: Make) -> Play:
    play = await asked(make)
    await play.wish(cancel=True)
    await play.go()
    return play


async def not_allowed(make: Make) -> Play:
    play = await make(policy={"repositories": ["https://git.example/other/*"]})
    await play.go()
    return play


async def no_token(make: Make) -> Play:
    secret = {"push": {"secretRef": {"name": "none", "key": "token"}}}
    play = await make(policy={"credentials": secret})
    await play.go()
    return play


async def lost(make: Make) -> Play:
    play = await started(make, limits={"consecutiveLostAttempts": 1})
    await play.hello("a1")
    await play.exits("a1", 137)
    await play.go()
    play.desk.clock.passed += 11
    await play.go()
    return play


async def contradicted(make: Make) -> Play:
    play = await make()
    body = {
        "apiVersion": CLAIMS.api_version,
        "kind": CLAIMS.kind,
        "metadata": {"name": child_name(play.name, RunUid(play.uid))},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    assert isinstance(await play.desk.client.create(CLAIMS, play.namespace, body), Ok)
    await play.go()
    return play


async def regressed(make: Make) -> Play:
    words = (
        "markupsafe 2.1.4 -> 3.0.0: new after the upgrade: 2 findings: "
        "test:tests/test_a.py:test_x, test:tests/test_a.py:test_y"
    )
    return await concluded(make, "regressed", words)


ENDS: tuple[tuple[str, Callable[[Make], Awaitable[Play]]], ...] = (
    ("Published", published),
    ("A dry run", prepared),
    ("Rejected", rejected),
    ("Cancelled while people were asked", cancelled),
    ("Not in the policy", not_allowed),
    ("No token", no_token),
    ("The upgrade breaks tests", regressed),
    ("The runner was lost", lost),
    ("A stranger's volume", contradicted),
    ("Nobody answered", expired),  # the last one: here a week passes
)


async def test_ten_ends_read_like_a_colleagues_note(make: Make) -> None:
    told = []
    for title, end in ENDS:
        play = await end(make)
        assert (await play.status())["finished"], title
        told.append(await described(play, title))

    page = "\n".join(told)
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(page, encoding="utf-8")
    assert page == GOLDEN.read_text(encoding="utf-8")


async def test_kubectl_describe_shows_conditions_and_events(make: Make, cluster: ApiServer) -> None:
    play = await not_allowed(make)

    shown = cluster.kubectl("describe", "run", play.name, "-n", play.namespace)

    status = await play.status()
    notes = [one["note"] for one in await play.listed(EVENTS)]
    assert 1 == len(notes)
    for text in (*notes, *(one["message"] for one in status["conditions"] if one["message"])):
        assert text in shown
