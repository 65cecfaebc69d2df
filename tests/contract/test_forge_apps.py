"""GitHub Apps: what the forge documents, what the fixture does, what the operator makes of it.

https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/about-authentication-with-a-github-app
"""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import jwt
import pytest

from support.apps import APP_ID, FULL, WHERE, Installed, grant, install_app, pem
from support.fixtures.faults import Fault, secondary_rate_limit
from support.forgeclient import PULLS, REPO, WANTED, Api
from support.gitclient import try_git
from support.replicas import JumpingClock
from support.shop import BRANCH, REPOSITORY, Clone
from upgraderun_operator.adapters.forge_http import ForgeCalls
from upgraderun_operator.adapters.forge_tokens import InstallationTokens
from upgraderun_operator.decide.readings import Unreadable
from upgraderun_operator.decide.views import DestinationRefused
from upgraderun_operator.observe.ports import Minted, Purpose
from upgraderun_protocol.limits import OUTCOME_DATA_MESSAGE_MAX
from upgraderun_protocol.redact import SecretText

INSTALLATION = f"{REPO}/installation"
ACCESS_TOKENS = "/app/installations/71/access_tokens"


class MovedClock(JumpingClock):
    """Both faces of the clock move."""

    def now(self) -> Any:
        return super().now() + timedelta(seconds=self.jumped)


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
async def tokens(clock: MovedClock) -> AsyncIterator[InstallationTokens]:
    async with ForgeCalls() as calls:
        yield InstallationTokens(calls, clock)


@pytest.fixture
def app(clone: Clone) -> Clone:
    clone.host.control.put_repository("acme/other")
    install_app(clone.host, Installed("acme"))
    return clone


def statement(clone: Clone, key: str = "ours", **claims: Any) -> str:
    now = int(JumpingClock().now().timestamp())
    known = {"iat": now - 60, "exp": now + 540, "iss": APP_ID}
    return jwt.encode({**known, **claims}, pem(key), algorithm="RS256")


async def minted(tokens: InstallationTokens, clone: Clone, purpose: Purpose) -> str:
    found = await tokens.mint(grant(clone.host, REPOSITORY), purpose)
    assert isinstance(found, Minted), found
    return found.token.reveal()


async def refused(tokens: InstallationTokens, clone: Clone, **more: Any) -> str:
    found = await tokens.mint(grant(clone.host, REPOSITORY, **more), Purpose.PUSH)
    assert isinstance(found, DestinationRefused), found
    return found.message


class TestStatement:
    """https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app."""

    @pytest.mark.parametrize("issuer", [APP_ID, "4242"])
    def test_client_id_and_app_id_both_name_the_app(self, app: Clone, issuer: str) -> None:
        answer = Api(app, statement(app, iss=issuer))("GET", INSTALLATION)

        assert (200, 71) == (answer.status_code, answer.json()["id"])
        assert {**FULL, "metadata": "read"} == answer.json()["permissions"]

    def test_more_than_ten_minutes_aren_t_accepted(self, app: Clone) -> None:
        ends = int(JumpingClock().now().timestamp()) + 700

        answer = Api(app, statement(app, exp=ends))("GET", INSTALLATION)

        assert (401, True) == (answer.status_code, "too far" in answer.json()["message"])

    def test_nor_the_past_nor_the_future_nor_another_key(self, app: Clone) -> None:
        now = int(JumpingClock().now().timestamp())
        wrong = [
            statement(app, exp=now - 1),
            statement(app, iat=now + 120),
            statement(app, iss="Iv23liStranger"),
            statement(app, key="a stranger's"),
            f"{statement(app)[:-6]}AAAAAA",
            "ghs_no_statement",
        ]

        assert {401} == {Api(app, one)("GET", INSTALLATION).status_code for one in wrong}


class TestAccessToken:
    """https://docs.github.com/rest/apps/apps#create-an-installation-access-token-for-an-app."""

    def test_without_a_body_it_covers_the_whole_installation(self, app: Clone) -> None:
        answer = Api(app, statement(app))("POST", ACCESS_TOKENS, json={})

        assert (201, "all") == (answer.status_code, answer.json()["repository_selection"])
        token = answer.json()["token"]
        assert 200 == Api(app, token)("GET", "/repos/acme/other").status_code

    @pytest.mark.parametrize(
        "body",
        [
            {"repositories": ["none"]},
            {"permissions": {"workflows": "write"}},
            {"permissions": {"contents": "admin"}},
        ],
    )
    def test_nobody_gets_more_than_the_installation_has(
        self, app: Clone, body: dict[str, Any]
    ) -> None:
        answer = Api(app, statement(app))("POST", ACCESS_TOKENS, json=body)

        assert 422 == answer.status_code

    def test_an_hour_later_it_is_none(self, app: Clone) -> None:
        token = Api(app, statement(app))("POST", ACCESS_TOKENS, json={}).json()["token"]
        app.host.control.advance_clock(3601)

        assert 401 == Api(app, token)("GET", REPO).status_code

    def test_it_can_be_revoked_by_whoever_has_it(self, app: Clone) -> None:
        """https://docs.github.com/rest/apps/installations#revoke-an-installation-access-token."""
        token = Api(app, statement(app))("POST", ACCESS_TOKENS, json={}).json()["token"]

        answers = [Api(app, token)("DELETE", "/installation/token") for _ in range(2)]

        assert [204, 401] == [answer.status_code for answer in answers]
        assert 401 == Api(app, token)("GET", REPO).status_code


class TestOperator:
    """H18, H19: one repository, the least rights, an hour; and a message that says what to mend."""

    async def test_a_clone_token_reads_one_repository(
        self, tokens: InstallationTokens, app: Clone
    ) -> None:
        token = await minted(tokens, app, Purpose.CLONE)

        assert 0 == try_git(app.path, "ls-remote", app.url(token)).code
        assert 0 != app.push_create_only(app.commit(), token).code
        assert 404 == Api(app, token)("GET", "/repos/acme/other").status_code
        assert 403 == Api(app, token)("GET", PULLS).status_code
        effects = [e for row in app.host.control.requests() for e in row["effects"]]
        assert f"token for {REPOSITORY} contents:read,metadata:read" in effects

    async def test_a_push_token_pushes_and_opens_there_and_nowhere_else(
        self, tokens: InstallationTokens, app: Clone
    ) -> None:
        token = await minted(tokens, app, Purpose.PUSH)

        assert 0 == app.push_create_only(app.commit(), token).code
        assert 201 == Api(app, token)("POST", PULLS, json=WANTED).status_code
        assert 404 == Api(app, token)("GET", "/repos/acme/other/pulls").status_code
        effects = [e for row in app.host.control.requests() for e in row["effects"]]
        wanted = f"token for {REPOSITORY} contents:write,metadata:read,pull_requests:write"
        assert wanted in effects
        assert BRANCH in app.host.control.pulls(REPOSITORY)[0]["head"]

    async def test_each_pod_gets_a_token_of_its_own(
        self, tokens: InstallationTokens, app: Clone
    ) -> None:
        assert await minted(tokens, app, Purpose.PUSH) != await minted(tokens, app, Purpose.PUSH)

    async def test_the_operator_s_own_is_kept_until_it_grows_old(
        self, tokens: InstallationTokens, app: Clone, clock: MovedClock
    ) -> None:
        first = await minted(tokens, app, Purpose.LOOK)
        clock.jumped = 2990

        assert first == await minted(tokens, app, Purpose.LOOK)

        clock.jumped = 3010
        app.host.control.advance_clock(3010)
        assert first != await minted(tokens, app, Purpose.LOOK)

    async def test_another_key_isn_t_answered_from_memory(
        self, tokens: InstallationTokens, app: Clone
    ) -> None:
        await minted(tokens, app, Purpose.LOOK)

        found = await tokens.mint(grant(app.host, REPOSITORY, key=pem("other")), Purpose.LOOK)

        assert isinstance(found, DestinationRefused)

    @pytest.mark.parametrize(
        ("installed", "words"),
        [
            (Installed("somebody-else"), "isn't installed on acme/shop"),
            (Installed("acme", repositories=("acme/other",)), "isn't installed on acme/shop"),
            (Installed("acme", suspended=True), "is suspended"),
            (Installed("acme", {"contents": "write"}), "lacks pull_requests: write"),
            (Installed("acme", {"contents": "read"}), "contents: write, pull_requests: write"),
        ],
    )
    async def test_what_the_installation_lacks_is_named(
        self, tokens: InstallationTokens, clone: Clone, installed: Installed, words: str
    ) -> None:
        install_app(clone.host, installed)

        message = await refused(tokens, clone)

        assert words in message
        assert len(message) <= OUTCOME_DATA_MESSAGE_MAX, "the next step isn't cut off"

    async def test_a_run_that_publishes_nothing_needs_no_write(
        self, tokens: InstallationTokens, clone: Clone
    ) -> None:
        install_app(clone.host, Installed("acme", {"contents": "read"}))

        for purpose in (Purpose.LOOK, Purpose.CLONE):
            found = await tokens.mint(grant(clone.host, REPOSITORY, publishes=False), purpose)
            assert isinstance(found, Minted)

    @pytest.mark.parametrize(
        ("more", "words"),
        [
            ({"key": pem("a stranger's")}, f"the key of {WHERE} doesn't speak for App {APP_ID}"),
            ({"key": "no key"}, f"{WHERE} is no private key"),
            ({"app_id": "Iv23liStranger"}, "Integration not found"),
        ],
    )
    async def test_a_wrong_key_or_id_is_told_without_the_key(
        self, tokens: InstallationTokens, app: Clone, more: dict[str, str], words: str
    ) -> None:
        message = await refused(tokens, app, **more)

        assert words in message
        assert len(message) <= OUTCOME_DATA_MESSAGE_MAX, "the next step isn't cut off"
        assert "PRIVATE KEY-----" not in message

    async def test_a_renamed_repository_is_told(
        self, tokens: InstallationTokens, app: Clone
    ) -> None:
        app.host.control.rename_repository(REPOSITORY, "acme/store")

        assert "was renamed or moved" in await refused(tokens, app)

    @pytest.mark.parametrize(
        "more",
        [
            '"permissions":{"contents":"write","administration":"write"}',
            '"permissions":{"contents":"admin"}',
            '"permissions":{"contents":"odd"}',
            '"repositories":[{"full_name":"acme/shop"},{"full_name":"acme/other"}]',
            '"repositories":[]',
        ],
    )
    async def test_more_than_was_asked_for_isn_t_used(
        self, tokens: InstallationTokens, app: Clone, more: str
    ) -> None:
        body = (
            '{"token":"ghs_x","expires_at":"2030-01-01T00:00:00Z","permissions":{"contents":"read"},'
            f'"repositories":[{{"full_name":"acme/shop"}}],{more}}}'
        )
        app.host.control.add_fault(Fault("status", path="access_tokens$", status=201, body=body))

        assert "a token for more than acme/shop" in await refused(tokens, app)

    @pytest.mark.parametrize(
        ("fault", "counted"),
        [
            (Fault("status", path="/installation$", status=502), 0),
            (Fault("drop", path="/installation$"), 0),
            (Fault("status", path="/installation$", status=200, body="{}"), 0),
            (secondary_rate_limit(30, path="/installation$"), 0),
            (Fault("drop_after", path="access_tokens$"), 1),
            (Fault("status", path="access_tokens$", status=201, body="{}"), 1),
        ],
    )
    async def test_an_outage_is_no_verdict_and_counts_only_what_may_be_minted(
        self, tokens: InstallationTokens, app: Clone, fault: Fault, counted: int
    ) -> None:
        app.host.control.add_fault(fault)
        counts: list[int] = []

        async def count() -> None:
            counts.append(1)

        found = await tokens.mint(grant(app.host, REPOSITORY), Purpose.PUSH, count)

        assert isinstance(found, Unreadable)
        assert counted == len(counts)

    async def test_nothing_shows_key_or_token(self, tokens: InstallationTokens, app: Clone) -> None:
        """H17."""
        asked = grant(app.host, REPOSITORY)
        found = await tokens.mint(asked, Purpose.PUSH)

        assert isinstance(found, Minted)
        assert found.token.reveal() not in repr(found)
        assert "PRIVATE KEY" not in repr(asked)
        assert isinstance(found.token, SecretText)
