"""The runner's view of the journal: artifacts first, one append for several entries (DESIGN §6)."""

from collections.abc import AsyncIterator

import pytest

from support.bookkeeper import Bookkeeper
from support.seams import VirtualTime, seams
from support.smallbundle import small_bundle
from upgraderun_protocol.entries import Draft, EntryError, EntryState
from upgraderun_protocol.fold import ChainError
from upgraderun_protocol.ids import EntryId, Epoch, Sha256, WriterTag
from upgraderun_protocol.kinds import Writer
from upgraderun_protocol.redact import Redactor
from upgraderun_runner.client.journal import Journal, Speaker
from upgraderun_runner.client.operator import OperatorClient
from upgraderun_runner.client.transport import Target, Transport
from upgraderun_runner.errors import Fenced, RunnerError


async def _always() -> None:
    """Hold the Lease."""


@pytest.fixture
async def keeper() -> AsyncIterator[Bookkeeper]:
    made = await Bookkeeper(small_bundle()).start()
    yield made
    await made.stop()


@pytest.fixture
async def client(
    keeper: Bookkeeper, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[OperatorClient]:
    token = tmp_path_factory.mktemp("token") / "token"
    token.write_text("a-token-for-tests")
    made = seams(VirtualTime())
    transport = Transport(Target(f"{keeper.url}/runner/n/r/u", token, None), made, Redactor())
    client = OperatorClient(transport, made)
    await client.hello("a" * 32)
    yield client
    await transport.aclose()


@pytest.fixture
async def journal(client: OperatorClient) -> Journal:
    speaker = Speaker(Writer.RUNNER, WriterTag("a1"), Epoch(1))
    journal = Journal(client, speaker=speaker, now=VirtualTime().now, permit=_always)
    await journal.load()
    return journal


def intent(entry: str = "workspace/1") -> Draft:
    return Draft(EntryId(entry), "workspace", EntryState.INTENT, {"generation": "1", "nonce": "n"})


DONE = Draft(
    EntryId("workspace/1"),
    "workspace",
    EntryState.DONE,
    {"commit": "a" * 40, "tree": "b" * 40, "branch": "main"},
)


async def test_deferred_entries_travel_with_the_next_append(
    journal: Journal, keeper: Bookkeeper
) -> None:
    await journal.append(intent())
    before = keeper.writes

    journal.defer(DONE)
    await journal.append(Draft(EntryId("profile/1"), "profile", EntryState.INTENT))

    assert 1 == keeper.writes - before
    assert ["workspace/1 done", "profile/1 intent"] == keeper.story[-2:]
    assert list(journal.fold) == list(keeper.fold)


async def test_who_defers_is_called_once_the_entries_stand(
    journal: Journal, keeper: Bookkeeper
) -> None:
    await journal.append(intent())
    seen: list[list[str]] = []
    journal.defer(DONE, recorded=lambda: seen.append(keeper.story))
    keeper.epoch = 2
    with pytest.raises(Fenced):
        await journal.flush()
    assert [] == seen

    keeper.epoch = 1
    await journal.flush()
    await journal.append(Draft(EntryId("profile/1"), "profile", EntryState.INTENT))

    assert [["workspace/1 done"]] == [story[-1:] for story in seen]


async def test_fold_knows_deferred_entries_before_they_are_sent(
    journal: Journal, keeper: Bookkeeper
) -> None:
    await journal.append(intent())
    journal.defer(DONE)

    assert journal.fold.done("workspace/1") is not None
    assert keeper.fold.done("workspace/1") is None


async def test_repeated_append_writes_nothing(journal: Journal, keeper: Bookkeeper) -> None:
    await journal.append(intent())
    before = keeper.writes

    await journal.append(intent())

    assert before == keeper.writes


async def test_contradicting_entry_is_refused_before_it_is_sent(journal: Journal) -> None:
    await journal.append(intent())
    other = Draft(
        EntryId("workspace/1"), "workspace", EntryState.INTENT, {"generation": "2", "nonce": "n"}
    )
    with pytest.raises(ChainError):
        await journal.append(other)


async def test_entry_that_its_kind_forbids_is_refused_when_it_is_deferred(
    journal: Journal,
) -> None:
    with pytest.raises(EntryError):
        journal.defer(Draft(EntryId("outcome"), "outcome", EntryState.DONE, {"outcome": "failed"}))


async def test_entries_of_somebody_else_are_read_when_they_came_between(
    journal: Journal, keeper: Bookkeeper
) -> None:
    keeper.record(
        Draft(EntryId("base"), "base", EntryState.DONE, {"commit": "a" * 40, "tree": "b" * 40})
    )

    await journal.append(intent())

    assert list(journal.fold) == list(keeper.fold)


async def test_artifact_is_stored_once_and_read_back_without_a_call(
    journal: Journal, keeper: Bookkeeper
) -> None:
    digest = await journal.store(b"evidence")
    keeper.artifacts.clear()

    assert digest == await journal.store(b"evidence")
    assert b"evidence" == await journal.fetch(digest)
    assert {} == keeper.artifacts


async def test_entry_that_names_an_unstored_artifact_is_refused_by_the_operator(
    journal: Journal,
) -> None:
    draft = Draft(
        EntryId("s0/decision"), "decision", EntryState.DONE, {"tool": "x"}, {"decision": DIGEST}
    )
    with pytest.raises(RunnerError, match="artifact_missing"):
        await journal.append(draft)


DIGEST = Sha256("f" * 64)


async def test_append_of_an_older_epoch_is_fenced(journal: Journal, keeper: Bookkeeper) -> None:
    keeper.epoch = 2
    with pytest.raises(Fenced):
        await journal.append(intent())


async def test_no_append_while_the_lease_lapsed(client: OperatorClient, keeper: Bookkeeper) -> None:
    asked: list[str] = []

    async def permit() -> None:
        asked.append("permit")
        raise Fenced("lost")

    speaker = Speaker(Writer.RUNNER, WriterTag("a1"), Epoch(1))
    journal = Journal(client, speaker=speaker, now=VirtualTime().now, permit=permit)
    await journal.load()
    before = keeper.writes

    with pytest.raises(Fenced):
        await journal.append(intent())
    assert (["permit"], before) == (asked, keeper.writes)
