"""One step of the loop against a real journal: what it appends when, and whose time that takes."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from support.bookkeeper import Bookkeeper
from support.seams import VirtualTime, seams
from support.smallbundle import small_bundle
from upgraderun_protocol.entries import EntryState
from upgraderun_protocol.ids import Epoch, Sha256, WriterTag
from upgraderun_protocol.kinds import Writer
from upgraderun_protocol.redact import Redactor
from upgraderun_runner.client.journal import Journal, Permit, Speaker
from upgraderun_runner.client.operator import OperatorClient
from upgraderun_runner.client.transport import Target, Transport
from upgraderun_runner.tools.step import Step

TOOL_SECONDS = 0.05


class SlowStore(Bookkeeper):
    """An operator whose artifact store takes longer than a tool may."""

    async def _put_artifacts(self, request: web.Request) -> web.Response:
        await passes(2 * TOOL_SECONDS)
        return await super()._put_artifacts(request)


async def passes(seconds: float) -> None:
    """Wait for an event that comes in so many seconds."""
    come = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, come.set)
    await come.wait()


class Operator:
    """Where a runner's journal is kept; `permit` is what its Lease says."""

    def __init__(self, keeper: Bookkeeper, client: OperatorClient) -> None:
        self.keeper = keeper
        self._client = client

    async def journal(self, permit: Permit) -> Journal:
        speaker = Speaker(Writer.RUNNER, WriterTag("a1"), Epoch(1))
        journal = Journal(self._client, speaker=speaker, now=VirtualTime().now, permit=permit)
        await journal.load()
        return journal


@pytest.fixture
async def operator(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Operator]:
    token = tmp_path_factory.mktemp("token") / "token"
    token.write_text("a-token-for-tests")
    keeper = await SlowStore(small_bundle()).start()
    made = seams(VirtualTime())
    transport = Transport(Target(f"{keeper.url}/runner/n/r/u", token, None), made, Redactor())
    client = OperatorClient(transport, made)
    await client.hello("a" * 32)
    yield Operator(keeper, client)
    await transport.aclose()
    await keeper.stop()


async def held() -> None:
    """Say that the Lease is held."""


async def decided(operator: Operator) -> tuple[Step, list[str]]:
    """A step that was decided, and what stood whenever its decision was told to be recorded."""
    journal = await operator.journal(held)
    step = Step(journal, 0, "apply_upgrade")
    digest = await journal.store(b"{}")
    told: list[str] = []
    step.decide(digest, lambda: told.extend(operator.keeper.appends))
    return step, told


async def test_decision_and_intent_are_one_append(operator: Operator) -> None:
    step, told = await decided(operator)
    assert [] == operator.keeper.appends

    step.intend()
    await step.begin()
    await step.close()

    assert ["s0/decision done + s0 intent"] == operator.keeper.appends == told


async def test_step_without_effect_is_one_append_at_its_end(operator: Operator) -> None:
    step, told = await decided(operator)
    step.intend()
    (digest,) = operator.keeper.artifacts
    step.settle(EntryState.DONE, {}, Sha256(digest))
    assert [] == operator.keeper.appends

    await step.close()

    assert ["s0/decision done + s0 intent + s0 done"] == operator.keeper.appends == told


async def test_waiting_for_the_lease_is_not_the_tools_time(operator: Operator) -> None:
    """An outage is no `timeout` of a tool that has done nothing yet (§13.6, case 11)."""
    journal = await operator.journal(lambda: passes(2 * TOOL_SECONDS))
    step = Step(journal, 0, "apply_upgrade")

    async def hang() -> None:
        async with asyncio.timeout(TOOL_SECONDS) as clock:
            with journal.timed_by(clock):
                await step.begin()
                await asyncio.Event().wait()

    step.intend()
    with pytest.raises(TimeoutError):
        await hang()

    assert ["s0 intent"] == operator.keeper.appends


async def test_waiting_for_the_store_is_not_the_tools_time(operator: Operator) -> None:
    """What a check found out isn't lost because the operator was away when it ended."""
    journal = await operator.journal(held)

    async with asyncio.timeout(TOOL_SECONDS) as clock:
        with journal.timed_by(clock):
            digest = await journal.store(b"what a check found out")

    assert digest in operator.keeper.artifacts


async def test_a_tool_that_is_over_has_no_clock_to_stop(operator: Operator) -> None:
    journal = await operator.journal(held)
    async with asyncio.timeout(TOOL_SECONDS) as clock:
        with journal.timed_by(clock):
            await journal.store(b"what a check found out")

    assert await journal.store(b"an observation") in operator.keeper.artifacts


async def test_a_tool_whose_time_is_up_may_still_say_so(operator: Operator) -> None:
    journal = await operator.journal(held)
    told: list[Sha256] = []

    async def hang() -> None:
        async with asyncio.timeout(TOOL_SECONDS) as clock:
            with journal.timed_by(clock):
                try:
                    await asyncio.Event().wait()
                finally:
                    told.append(await journal.store(b"what was left"))

    with pytest.raises(TimeoutError):
        await hang()
    assert set(told) <= set(operator.keeper.artifacts)
    assert told
