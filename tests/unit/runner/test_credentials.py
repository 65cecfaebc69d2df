"""A pod's credential: mounted, minted or none; renewed in time, given back, shown to nobody (H17)."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.fixtures.launch import host_in_process
from upgraderun_protocol.ids import Epoch, Sha256
from upgraderun_protocol.messages import ArtifactRef, HelloResponse, MintedToken
from upgraderun_protocol.redact import MASK, Redactor
from upgraderun_runner.credentials import Credentials, TokenRefused
from upgraderun_runner.errors import LossClass, TransportError
from upgraderun_runner.forge.http import WritePacer

START = datetime(2026, 11, 30, 8, tzinfo=UTC)
ORIGIN = "https://git.example"
NOWHERE = "http://127.0.0.1:9/api/v3"


class Pod:
    """One pod's credentials, with a clock and an operator that mints on demand."""

    def __init__(
        self, kind: str, file: Path | None = None, given: MintedToken | None = None
    ) -> None:
        bundle = ArtifactRef(Sha256("a" * 64), 1)
        hello = HelloResponse(1, "d1", Epoch(1), 30, bundle, kind, "now", given)
        self.now = START
        self.minted = 0
        self.ends = "2026-11-30T09:00:00Z"
        self.redactor = Redactor()
        self.known = Credentials(hello, file, ORIGIN, self.redactor, lambda: self.now)

    async def mint(self) -> MintedToken:
        self.minted += 1
        return MintedToken(f"ghx-canary-{self.minted}", self.ends, "team/app", NOWHERE)

    async def secret(self) -> str:
        found = await self.known.get(self.mint)
        assert found is not None
        assert (ORIGIN, "x-access-token") == (found.origin, found.username)
        assert MASK == self.redactor.redact(found.secret)
        return found.secret


async def test_a_mounted_one_is_read_anew_each_time(tmp_path: Path) -> None:
    file = tmp_path / "token"
    pod = Pod("mounted", file)
    found = []
    for text in ("first-token\n", "second-token\n"):
        file.write_text(text)
        found.append(await pod.secret())

    assert (["first-token", "second-token"], 0) == (found, pod.minted)


async def test_without_one_nothing_is_minted() -> None:
    pod = Pod("none")

    assert await pod.known.get(pod.mint) is None
    assert 0 == pod.minted


async def test_a_runner_s_comes_with_its_claim_and_never_again() -> None:
    pod = Pod("minted", given=MintedToken("ghx-canary-0", "2026-11-30T09:00:00Z", "t/a", NOWHERE))
    pod.now += timedelta(hours=2)

    found = await pod.known.get()

    assert found is not None
    assert "ghx-canary-0" == found.secret


async def test_a_publisher_s_is_renewed_ten_minutes_before_its_end() -> None:
    pod = Pod("minted")
    found = []
    for minutes in (0, 49, 51):
        pod.now = START + timedelta(minutes=minutes)
        found.append(await pod.secret())
        pod.ends = "2026-11-30T10:00:00Z" if minutes == 49 else pod.ends

    assert ["ghx-canary-1", "ghx-canary-1", "ghx-canary-2"] == found


async def test_an_end_that_is_no_time_is_an_end() -> None:
    pod = Pod("minted")
    pod.ends = "soon"

    assert ["ghx-canary-1", "ghx-canary-2"] == [await pod.secret(), await pod.secret()]


@pytest.mark.parametrize(
    ("code", "held"), [("forge_denied", False), ("publication_held", True), ("tokens_spent", None)]
)
async def test_a_refusal_says_whether_people_hold_it(code: str, held: bool | None) -> None:
    pod = Pod("minted")

    async def refuse() -> Any:
        raise TransportError(
            "push-token", LossClass.FATAL, attempts=1, elapsed_ms=1, answer=(409, code), text="why"
        )

    if held is None:
        with pytest.raises(TransportError):
            await pod.known.get(refuse)
        return
    with pytest.raises(TokenRefused, match="why") as caught:
        await pod.known.get(refuse)
    assert held is caught.value.held


async def test_it_is_given_back_once(tmp_path: Path) -> None:
    """https://docs.github.com/rest/apps/installations#revoke-an-installation-access-token."""
    with host_in_process(tmp_path / "host") as host:
        host.control.add_token("ghx-canary-0", "upgraderun[bot]")
        given = MintedToken("ghx-canary-0", "2026-11-30T09:00:00Z", "t/a", host.api_url)
        pod = Pod("minted", given=given)
        said = [await pod.known.give_back(pacer(), tls=True) for _ in range(2)]
        revoked = [e for row in host.control.requests() for e in row["effects"]]

    assert [None, None] == said
    assert ["token revoked"] == revoked
    assert await pod.known.get() is None


async def test_a_forge_that_is_away_doesn_t_keep_the_pod() -> None:
    pod = Pod("minted", given=MintedToken("ghx-canary-0", "2026-11-30T09:00:00Z", "t/a", NOWHERE))

    said = await pod.known.give_back(pacer(), tls=True)

    assert said is not None
    assert "wasn't revoked and ends 2026-11-30T09:00:00Z" in said
    assert "canary" not in said


async def test_one_that_the_forge_doesn_t_know_is_told(tmp_path: Path) -> None:
    with host_in_process(tmp_path / "host") as host:
        given = MintedToken("ghx-canary-0", "2026-11-30T09:00:00Z", "t/a", host.api_url)
        said = await Pod("minted", given=given).known.give_back(pacer(), tls=True)

    assert "the token wasn't revoked: 401" == said


def pacer() -> WritePacer:
    async def sleep(_seconds: float) -> None:
        raise AssertionError("one write waits for nothing")

    return WritePacer(lambda: 0.0, sleep)
