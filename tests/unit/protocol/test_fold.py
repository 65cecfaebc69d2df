"""The index of a journal (reliability.md I3, I4, I10)."""

import pytest

from upgraderun_protocol.entries import Draft, Entry, EntryState, entry_from_draft
from upgraderun_protocol.fold import ChainError, Fold, Record
from upgraderun_protocol.ids import EntryId, Epoch

INTENT, DONE, FAILED = EntryState.INTENT, EntryState.DONE, EntryState.FAILED


def draft(entry_id: str, state: EntryState, kind: str = "step", **data: str) -> Draft:
    return Draft(EntryId(entry_id), kind, state, data)


def place(seq: int, item: Draft, epoch: int = 0) -> Entry:
    return entry_from_draft(item, seq=seq, at="t", attempt="a1", epoch=Epoch(epoch))


def fold(*drafts: Draft) -> Fold:
    return Fold(place(number, item) for number, item in enumerate(drafts, 1))


def test_an_empty_fold_knows_nothing() -> None:
    empty = Fold()

    assert (empty.seq, empty.epoch, len(empty)) == (0, 0, 0)
    assert empty.record("s1") is None
    assert empty.intent("s1") is None
    assert empty.outcome("s1") is None
    assert empty.done("s1") is None
    assert empty.last("step") is None
    assert empty.replay_of(draft("s1", INTENT)) is None


def test_an_id_has_its_intent_and_its_first_outcome() -> None:
    known = fold(draft("s1", INTENT), draft("s1", FAILED), draft("s2", INTENT), draft("s3", DONE))
    entries = list(known)

    assert known.record("s1") == Record(entries[0], entries[1])
    assert known.intent("s1") is entries[0]
    assert known.outcome("s1") is entries[1]
    assert known.done("s1") is None
    assert known.done("s3") is entries[3]
    assert known.record("s2") == Record(entries[2], None)
    assert known.of_kind("step") == tuple(entries)
    assert known.last("step") is entries[3]
    assert known.last("step", INTENT) is entries[2]
    assert known.last("step", EntryState.CONFLICT) is None
    assert (known.seq, len(known)) == (4, 4)


def test_records_say_whether_they_are_open_and_done() -> None:
    known = fold(draft("s1", INTENT), draft("s2", INTENT), draft("s2", DONE), draft("s3", FAILED))
    states = {name: known.record(name) for name in ("s1", "s2", "s3")}

    assert [record and (record.is_open, record.is_done) for record in states.values()] == [
        (True, False),
        (False, True),
        (False, False),
    ]


def test_open_intents_leave_out_what_their_step_settles() -> None:
    known = fold(draft("s1", INTENT), draft("sb/s1", INTENT, "commands"), draft("s2", DONE))

    assert [entry.id for entry in known.open_intents()] == ["s1"]


@pytest.mark.parametrize(
    "entry",
    [
        place(1, draft("s9", INTENT), 2),
        place(4, draft("s9", INTENT), 2),
        place(3, draft("s9", INTENT), 1),
        place(3, draft("s1", INTENT), 2),
        place(3, draft("s2", DONE), 2),
        place(3, draft("s2", INTENT), 2),
    ],
    ids=["seq again", "gap", "epoch fell", "two intents", "two outcomes", "late intent"],
)
def test_contradictions_are_refused(entry: Entry) -> None:
    known = Fold([place(1, draft("s1", INTENT), 1), place(2, draft("s2", DONE), 2)])

    with pytest.raises(ChainError):
        known.add(entry)
    assert known.seq == 2


def test_extending_leaves_the_original_as_it_is() -> None:
    known = fold(draft("s1", INTENT))
    longer = known.extended([place(2, draft("s1", DONE))])

    assert known.outcome("s1") is None
    assert longer.outcome("s1") is not None


class TestReplay:
    """Same key and content is a replay, other content a conflict."""

    known = fold(draft("s1", INTENT, tool="x"), draft("s1", DONE, tool="x"), draft("s2", INTENT))

    def test_equal_drafts_are_found(self) -> None:
        assert self.known.replay_of(draft("s1", INTENT, tool="x")) is next(iter(self.known))
        assert self.known.replay_of(draft("s1", DONE, tool="x")) is list(self.known)[1]

    def test_a_first_outcome_is_free(self) -> None:
        assert self.known.replay_of(draft("s2", DONE)) is None

    @pytest.mark.parametrize(
        "item",
        [
            draft("s1", INTENT, tool="y"),
            draft("s1", DONE, tool="y"),
            draft("s1", FAILED, tool="x"),
        ],
    )
    def test_other_content_contradicts(self, item: Draft) -> None:
        with pytest.raises(ChainError):
            self.known.replay_of(item)

    def test_an_intent_after_its_outcome_contradicts(self) -> None:
        found = fold(draft("s3", DONE))

        with pytest.raises(ChainError, match="has its outcome"):
            found.replay_of(draft("s3", INTENT))
