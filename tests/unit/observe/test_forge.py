"""The forge reader against the fixture forge: every destination check, outages, strangers."""

from collections.abc import AsyncIterator, Iterator

import pytest

from support.fixtures.faults import Fault
from support.fixtures.launch import Host, host_in_process
from upgraderun_operator.adapters.forge import GitHubReader
from upgraderun_operator.adapters.forge_http import ForgeCalls
from upgraderun_operator.decide.readings import Unreadable
from upgraderun_operator.decide.views import (
    DestinationRefused,
    DestinationView,
    FoundPull,
    RemoteView,
)
from upgraderun_operator.observe.ports import ForgeTarget
from upgraderun_protocol.ids import CommitId, RunUid
from upgraderun_protocol.slugs import marker

NAME = "team/lib"
TOKEN = "fixture-push-token-0002"
UID = RunUid("3f1c9a2b-0000-4000-8000-000000000001")
BRANCH = "upgraderun/lib-1.1-3f1c9a2b"
OURS = marker(UID, "d" * 64, "Python", "lib", "1.1")


@pytest.fixture
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with host_in_process(tmp_path_factory.mktemp("host")) as running:
        running.control.put_repository(NAME)
        running.control.add_token(TOKEN, "upgraderun-bot", contents="write", pull_requests="write")
        yield running


@pytest.fixture
async def reader() -> AsyncIterator[GitHubReader]:
    async with ForgeCalls() as calls:
        yield GitHubReader(calls)


@pytest.fixture
def head(host: Host) -> CommitId:
    return CommitId(host.control.commit(NAME, "main", {"a": "1\n"}))


def target(host: Host, name: str = NAME, token: str | None = TOKEN) -> ForgeTarget:
    return ForgeTarget(host.api_url, name, token)


async def seen(
    reader: GitHubReader,
    host: Host,
    branch: str | None = "main",
    commit: CommitId | None = None,
) -> DestinationView:
    found = await reader.destination(target(host), branch, commit)
    assert isinstance(found, DestinationView), found
    return found


async def test_a_fine_destination(reader: GitHubReader, host: Host, head: CommitId) -> None:
    found = await seen(reader, host)
    assert (found.exists, found.archived, found.head, found.may_push) == (True, False, head, True)
    assert found.commit_on_branch is None
    assert found.creation_forbidden is None


async def test_the_default_branch_is_the_forges(
    reader: GitHubReader, host: Host, head: CommitId
) -> None:
    found = await seen(reader, host, branch=None)
    assert (found.branch, found.head) == ("main", head)


async def test_a_missing_repository(reader: GitHubReader, host: Host) -> None:
    found = await reader.destination(target(host, "team/none"), "main", None)
    assert found == DestinationView(exists=False)


async def test_a_missing_branch(reader: GitHubReader, host: Host, head: CommitId) -> None:
    found = await seen(reader, host, branch="none", commit=head)
    assert (found.head, found.commit_on_branch) == (None, False)


async def test_an_archived_repository(reader: GitHubReader, host: Host, head: CommitId) -> None:
    host.control.put_repository(NAME, archived=True)
    assert (await seen(reader, host)).archived


async def test_a_commit_is_on_the_branch_if_the_head_is_ahead(
    reader: GitHubReader, host: Host, head: CommitId
) -> None:
    newer = CommitId(host.control.commit(NAME, "main", {"a": "2\n"}))
    aside = CommitId(host.control.commit(NAME, "aside", {"b": "2\n"}, start=head))
    expected = {newer: True, head: True, aside: False, CommitId("9" * 40): False}
    for commit, holds in expected.items():
        assert (await seen(reader, host, commit=commit)).commit_on_branch is holds


async def test_a_rule_that_forbids_our_branches(
    reader: GitHubReader, host: Host, head: CommitId
) -> None:
    rule = {"type": "creation", "glob": "upgraderun/*", "ruleset_id": 7}
    host.control.set_rules(NAME, rule)
    assert (await seen(reader, host)).creation_forbidden == "ruleset 7 forbids to create branches"


async def test_a_wrong_token_is_a_refusal(reader: GitHubReader, host: Host, head: CommitId) -> None:
    found = await reader.destination(target(host, token="wrong-token-0000"), "main", None)
    assert isinstance(found, DestinationRefused)
    assert "401" in found.message


async def test_earlier_proposals_are_this_products_own(
    reader: GitHubReader, host: Host, head: CommitId
) -> None:
    for number, body in enumerate(("open", "declined", "merged", "stranger")):
        branch = f"upgraderun/{body}"
        host.control.commit(NAME, branch, {"c": f"{number}\n"}, start=head)
        text = "hello" if body == "stranger" else marker(UID, "d" * 64, "Python", body, "1")
        pull = host.control.open_pull(
            NAME, user="upgraderun-bot", title=body, head=branch, base="main", body=text
        )
        if body == "declined":
            host.control.close_pull(NAME, pull["number"])
        if body == "merged":
            host.control.merge_pull(NAME, pull["number"])
    earlier = (await seen(reader, host)).earlier
    assert earlier is not None
    assert (earlier.proposed, earlier.declined) == (("open@1",), ("declined@1",))


async def test_the_remote_says_branch_and_pull_requests(
    reader: GitHubReader, host: Host, head: CommitId
) -> None:
    ours = (str(UID), "d" * 64)
    assert await reader.remote(target(host), BRANCH, ours) == RemoteView(None)
    commit = CommitId(host.control.commit(NAME, BRANCH, {"c": "1\n"}, start=head))
    host.control.open_pull(
        NAME, user="upgraderun-bot", title="t", head=BRANCH, base="main", body=OURS
    )
    expected = RemoteView(commit, (FoundPull(1, "open", commit, ours=True),))
    assert await reader.remote(target(host), BRANCH, ours) == expected
    stranger = (str(UID), "e" * 64)
    found = await reader.remote(target(host), BRANCH, stranger)
    assert isinstance(found, RemoteView)
    assert not found.pulls[0].ours


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (Fault("status", status=500), None),
        (Fault("status", status=503, headers={"Retry-After": "7"}), 7.0),
        (Fault("status", status=429, headers={"Retry-After": "soon"}), 60.0),
        (Fault("status", status=403, headers={"Retry-After": "60"}), 60.0),
        (Fault("status", status=403, headers={"X-RateLimit-Remaining": "0"}), 60.0),
        (Fault("status", status=418), None),
        (Fault("status", status=200, body="<html>"), None),
        (Fault("status", status=200, body="1"), None),
    ],
)
async def test_an_outage_or_a_limit_is_no_verdict(
    reader: GitHubReader, host: Host, head: CommitId, answer: Fault, seconds: float | None
) -> None:
    host.control.add_fault(answer)
    found = await reader.destination(target(host), "main", None)
    assert isinstance(found, Unreadable)
    assert (found.where, found.retry_after) == ("forge", seconds)


@pytest.mark.parametrize(("status", "words"), [(403, "contents and pull"), (301, "renamed")])
async def test_a_definite_no_says_what_to_mend(
    reader: GitHubReader, host: Host, head: CommitId, status: int, words: str
) -> None:
    host.control.add_fault(Fault("status", status=status, body="{}"))
    found = await reader.destination(target(host), "main", None)
    assert isinstance(found, DestinationRefused)
    assert words in found.message


async def test_no_connection_is_no_verdict(reader: GitHubReader, host: Host) -> None:
    host.control.refuse_connections(refuse=True)
    found = await reader.remote(target(host), BRANCH, ("a", "b"))
    assert isinstance(found, Unreadable)
