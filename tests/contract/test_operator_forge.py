"""What the operator's forge reader makes of a forge: destination checks of upgrade-run.md §12."""

import ssl
from collections.abc import AsyncIterator

import pytest

from support.fixtures.faults import Fault, secondary_rate_limit
from support.shop import BRANCH, FORGE, READ, REPOSITORY, Clone
from upgraderun_operator.adapters.forge import GitHubReader
from upgraderun_operator.decide.readings import Unreadable
from upgraderun_operator.decide.views import DestinationRefused, DestinationView, RemoteView
from upgraderun_operator.observe.ports import ForgeTarget
from upgraderun_protocol.ids import CommitId, RunUid
from upgraderun_protocol.slugs import marker

UID = RunUid("0a1b2c3d-0000-4000-8000-000000000001")
DIGEST = "d" * 64


@pytest.fixture
async def reader() -> AsyncIterator[GitHubReader]:
    async with GitHubReader(ssl.create_default_context()) as opened:
        yield opened


def target(clone: Clone, token: str | None = FORGE, repository: str = REPOSITORY) -> ForgeTarget:
    return ForgeTarget(clone.host.api_url, repository, token)


def body(version: str = "1.0.1") -> str:
    return f"text\n\n{marker(UID, DIGEST, 'Python', 'tinylib', version)}"


async def test_a_sound_destination_names_branch_and_head(
    reader: GitHubReader, clone: Clone
) -> None:
    found = await reader.destination(target(clone), None, None)

    assert isinstance(found, DestinationView)
    assert (True, False, "main", clone.base) == (
        found.exists,
        found.archived,
        found.branch,
        found.head,
    )
    assert found.commit_on_branch is None
    assert found.creation_forbidden is None
    assert found.earlier is not None
    assert () == found.earlier.proposed


async def test_what_is_wrong_is_said_and_not_guessed(reader: GitHubReader, clone: Clone) -> None:
    absent = await reader.destination(target(clone, repository="acme/none"), None, None)
    assert DestinationView(exists=False) == absent

    branchless = await reader.destination(target(clone), "no-such-branch", None)
    assert isinstance(branchless, DestinationView)
    assert branchless.head is None

    clone.host.control.put_repository(REPOSITORY, archived=True)
    archived = await reader.destination(target(clone), None, None)
    assert isinstance(archived, DestinationView)
    assert archived.archived

    refused = await reader.destination(target(clone, "a-wrong-token"), None, None)
    assert isinstance(refused, DestinationRefused)
    assert "push token (401: Bad credentials)" in refused.message


async def test_a_commit_counts_only_if_the_branch_contains_it(
    reader: GitHubReader, clone: Clone
) -> None:
    stray = clone.commit()
    assert 0 == clone.push_create_only(stray).code
    head = clone.host.control.commit(REPOSITORY, "main", {"a": "b"})

    on_branch = await reader.destination(target(clone), "main", CommitId(clone.base))
    off_branch = await reader.destination(target(clone), "main", CommitId(stray))
    itself = await reader.destination(target(clone), "main", CommitId(head))
    unknown = await reader.destination(target(clone), "main", CommitId("9" * 40))

    answers = (on_branch, off_branch, itself, unknown)
    assert all(isinstance(answer, DestinationView) for answer in answers)
    assert [True, False, True, False] == [getattr(a, "commit_on_branch", None) for a in answers]


async def test_a_rule_that_forbids_creation_is_named(reader: GitHubReader, clone: Clone) -> None:
    clone.host.control.set_rules(REPOSITORY, {"type": "creation", "glob": "upgraderun/*"})

    found = await reader.destination(target(clone), None, None)

    assert isinstance(found, DestinationView)
    assert "ruleset 1 forbids to create branches" == found.creation_forbidden


async def test_open_and_declined_proposals_are_known_by_their_marker(
    reader: GitHubReader, clone: Clone
) -> None:
    """upgrade-run.md §5.1: already_proposed, declined_by_human; a merged one is neither."""
    control = clone.host.control
    branches = [f"upgraderun/tinylib-1.0.{n}-0a1b2c3d" for n in range(4)]
    for n, branch in enumerate(branches):
        control.commit(REPOSITORY, branch, {f"f{n}": "x"}, start=clone.base)
        text = body(f"1.0.{n}") if n else "a person's own branch below our prefix"
        control.open_pull(
            REPOSITORY, title="t", head=branch, base="main", body=text, user="someone"
        )
    numbers = [pull["number"] for pull in control.pulls(REPOSITORY)]
    control.close_pull(REPOSITORY, numbers[2])
    control.merge_pull(REPOSITORY, numbers[3])

    found = await reader.destination(target(clone), None, None)

    assert isinstance(found, DestinationView)
    assert found.earlier is not None
    assert ("tinylib@1.0.1",) == found.earlier.proposed
    assert ("tinylib@1.0.2",) == found.earlier.declined


async def test_the_remote_is_our_branch_and_its_pull_requests(
    reader: GitHubReader, clone: Clone
) -> None:
    nothing = await reader.remote(target(clone), BRANCH, (UID, DIGEST))
    assert RemoteView(None) == nothing

    commit = clone.commit()
    assert 0 == clone.push_create_only(commit).code
    control = clone.host.control
    control.open_pull(REPOSITORY, title="t", head=BRANCH, base="main", body=body(), user="someone")
    found = await reader.remote(target(clone), BRANCH, (UID, DIGEST))
    stranger = await reader.remote(target(clone), BRANCH, (UID, "e" * 64))

    assert isinstance(found, RemoteView)
    assert commit == found.commit
    assert [("open", commit, True)] == [(p.state, p.head, p.ours) for p in found.pulls]
    assert isinstance(stranger, RemoteView)
    assert [False] == [pull.ours for pull in stranger.pulls]


@pytest.mark.parametrize("kind", ["status", "rate limit", "refused"])
async def test_an_answer_that_tells_nothing_is_no_verdict(
    reader: GitHubReader, clone: Clone, kind: str
) -> None:
    control = clone.host.control
    if kind == "status":
        control.add_fault(Fault(action="status", status=503))
    elif kind == "rate limit":
        control.add_fault(secondary_rate_limit(60))
    where = target(clone, READ)
    if kind == "refused":
        where = ForgeTarget("http://127.0.0.1:9", REPOSITORY, READ)

    assert isinstance(await reader.destination(where, None, None), Unreadable)
