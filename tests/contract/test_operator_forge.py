"""What the operator's forge reader makes of a forge: destination checks of upgrade-run.md §12."""

import ssl
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from support.fixtures.faults import Fault, primary_rate_limit, secondary_rate_limit
from support.forgeclient import REPO, Api
from support.gitclient import try_git
from support.shop import BRANCH, FORGE, PUSH, READ, REPOSITORY, Clone
from upgraderun_operator.adapters.forge import GitHubReader
from upgraderun_operator.adapters.forge_http import ForgeCalls
from upgraderun_operator.decide.readings import Unreadable
from upgraderun_operator.decide.views import DestinationRefused, DestinationView, RemoteView
from upgraderun_operator.observe.ports import ForgeTarget
from upgraderun_protocol.ids import CommitId, RunUid
from upgraderun_protocol.slugs import marker

UID = RunUid("0a1b2c3d-0000-4000-8000-000000000001")
DIGEST = "d" * 64


@pytest.fixture
async def reader() -> AsyncIterator[GitHubReader]:
    async with ForgeCalls(ssl.create_default_context()) as calls:
        yield GitHubReader(calls)


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
    assert "push token (401)" in refused.message


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


class TestLimits:
    """https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit."""

    async def test_the_primary_one_ends_at_its_reset(
        self, reader: GitHubReader, clone: Clone
    ) -> None:
        clone.host.control.add_fault(primary_rate_limit(int(time.time()) + 300))

        found = await reader.destination(target(clone), None, None)

        assert isinstance(found, Unreadable)
        assert found.limited
        assert found.retry_after is not None
        assert 295 <= found.retry_after <= 302

    async def test_whoever_is_limited_isn_t_asked_for_again(
        self, reader: GitHubReader, clone: Clone
    ) -> None:
        """The documentation warns of bans for those who go on; another account may ask."""
        clone.host.control.add_fault(secondary_rate_limit(60))
        await reader.destination(target(clone), None, None)
        clone.host.control.forget_requests()

        again = await reader.destination(target(clone), None, None)
        other = replace(target(clone), account="team/other-token")

        assert isinstance(again, Unreadable)
        assert again.limited
        assert [] == clone.host.control.requests()
        assert isinstance(await reader.destination(other, None, None), DestinationView)

    async def test_a_limit_may_show_by_its_link_alone(
        self, reader: GitHubReader, clone: Clone
    ) -> None:
        link = '{"documentation_url": "https://docs.github.com/x/rate-limits"}'
        clone.host.control.add_fault(Fault("status", status=403, body=link))

        found = await reader.destination(target(clone), None, None)

        assert isinstance(found, Unreadable)
        assert (True, 60.0) == (found.limited, found.retry_after)


class TestRenamed:
    """https://docs.github.com/rest/using-the-rest-api/best-practices-for-using-the-rest-api#follow-redirects."""

    def test_the_forge_answers_by_number_and_keeps_the_method(self, clone: Clone) -> None:
        clone.host.control.rename_repository(REPOSITORY, "acme/store")

        read = Api(clone)("GET", REPO)
        written = Api(clone).create()

        assert (301, 307) == (read.status_code, written.status_code)
        assert read.headers["Location"].endswith("/api/v3/repositories/1")

    def test_git_is_sent_to_the_new_name(self, clone: Clone) -> None:
        """https://docs.github.com/repositories/creating-and-managing-repositories/renaming-a-repository."""
        clone.host.control.rename_repository(REPOSITORY, "acme/store")
        clone.host.control.add_token(PUSH, "pusher", "acme/store", contents="write")

        followed = try_git(clone.path, "ls-remote", clone.url())
        refused = try_git(clone.path, "-c", "http.followRedirects=false", "ls-remote", clone.url())

        assert (0, True) == (followed.code, "redirecting to" in followed.err)
        assert (128, True) == (refused.code, "error: 301" in refused.err)

    async def test_the_new_name_is_told_and_no_token_follows(
        self, reader: GitHubReader, clone: Clone
    ) -> None:
        """H22: the number is asked for at the policy's host; a location is never followed."""
        clone.host.control.add_token(
            FORGE, "publisher", f"{REPOSITORY} acme/store", contents="write"
        )
        clone.host.control.rename_repository(REPOSITORY, "acme/store")

        found = await reader.destination(target(clone), None, None)

        assert isinstance(found, DestinationRefused)
        assert "is called acme/store now" in found.message
        assert "spec.repository.url" in found.message

    async def test_a_location_elsewhere_is_left_alone(
        self, reader: GitHubReader, clone: Clone
    ) -> None:
        away = {"Location": "https://evil.example/repos/acme/shop"}
        clone.host.control.add_fault(Fault("status", status=301, headers=away, body="{}"))

        found = await reader.destination(target(clone), None, None)

        assert isinstance(found, DestinationRefused)
        assert "evil" not in found.message


class TestRules:
    """https://docs.github.com/rest/repos/rules#get-rules-for-a-branch."""

    @pytest.mark.parametrize(
        ("rule", "words"),
        [
            ({"type": "creation"}, "ruleset 1 forbids to create branches"),
            ({"type": "required_signatures"}, "ruleset 1 wants signed commits"),
            ({"type": "creation", "bypass": "pull_requests_only"}, "ruleset 1 forbids"),
            ({"type": "creation", "bypass": "always"}, None),
            ({"type": "creation", "bypass": "exempt"}, None),
            ({"type": "non_fast_forward"}, None),
            ({"type": "creation", "glob": "release/*"}, None),
        ],
    )
    async def test_what_forbids_our_branch_and_what_doesn_t(
        self, reader: GitHubReader, clone: Clone, rule: dict[str, str], words: str | None
    ) -> None:
        """A ruleset that lets only our App create these branches is what the runbook recommends."""
        clone.host.control.set_rules(REPOSITORY, {"glob": "upgraderun/*", **rule})

        found = await reader.destination(target(clone), None, None)

        assert isinstance(found, DestinationView)
        assert (words is None) == (found.creation_forbidden is None)
        assert (words or "") in (found.creation_forbidden or "")


class TestRepository:
    """https://docs.github.com/rest/repos/repos#get-a-repository."""

    async def test_one_that_the_forge_disabled_is_told(
        self, reader: GitHubReader, clone: Clone
    ) -> None:
        clone.host.control.put_repository(REPOSITORY, disabled=True)

        found = await reader.destination(target(clone), None, None)

        assert isinstance(found, DestinationView)
        assert found.disabled

    async def test_a_fork_is_a_repository_like_any_other(
        self, reader: GitHubReader, clone: Clone
    ) -> None:
        """Its pull requests are opened in itself, never upstream."""
        clone.host.control.put_repository(REPOSITORY, fork=True)

        found = await reader.destination(target(clone), None, None)

        assert isinstance(found, DestinationView)
        assert (clone.base, None) == (found.head, found.creation_forbidden)

    async def test_a_web_address_for_the_api_is_pointed_out(
        self, reader: GitHubReader, clone: Clone
    ) -> None:
        """https://docs.github.com/enterprise-server@latest/rest/enterprise-admin: /api/v3."""
        where = replace(target(clone), api_url=clone.host.url)
        clone.host.control.add_fault(Fault("garbage"))

        found = await reader.destination(where, None, None)

        assert isinstance(found, Unreadable)
        assert "https://HOST/api/v3" in found.cause
