"""Drafts, entries and their chain (DESIGN §6)."""

from dataclasses import replace
from typing import Any

import pytest

from upgraderun_protocol.canonical import canonical_json, sha256_of
from upgraderun_protocol.entries import (
    GENESIS,
    Draft,
    EntryError,
    EntryState,
    chain,
    draft_from_json,
    entry_from_draft,
    entry_from_json,
)
from upgraderun_protocol.ids import EntryId, Epoch, Sha256
from upgraderun_protocol.limits import ENTRY_BYTES_MAX

AT = "2026-11-30T08:00:00Z"


def draft(**changes: Any) -> Draft:
    known: dict[str, Any] = {
        "id": EntryId("s12/promotion"),
        "kind": "promotion",
        "state": EntryState.INTENT,
        "data": {"promotes": "pair"},
        "artifacts": {"plan": Sha256("a" * 64)},
    }
    return Draft(**{**known, **changes})


def entry(number: int = 1, **changes: Any) -> Any:
    return entry_from_draft(draft(**changes), seq=number, at=AT, attempt="a1", epoch=Epoch(3))


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "S12"},
        {"id": "s12//x"},
        {"id": ""},
        {"id": "a" * 64},
        {"kind": "Odd kind"},
        {"data": {f"k{number}": "x" for number in range(12)}},
        {"data": {"Odd": "x"}},
        {"data": {"key": "x" * 257}},
        {"artifacts": {"plan": "short"}},
        {"artifacts": {"Odd": "a" * 64}},
    ],
)
def test_bounds_are_refused_by_name(changes: dict[str, Any]) -> None:
    with pytest.raises(EntryError, match="entry "):
        draft(**changes)


def test_content_tells_a_replay_from_a_contradiction() -> None:
    assert draft().content == draft(data={"promotes": "pair"}).content
    assert draft().content != draft(data={"promotes": "lock"}).content
    assert draft().content != draft(state=EntryState.DONE).content


def test_maps_are_empty_unless_given() -> None:
    bare = Draft(EntryId("a1"), "attempt", EntryState.DONE)

    assert dict(bare.data) == dict(bare.artifacts) == {}


def test_an_entry_is_at_most_512_bytes() -> None:
    long = {"promotes": "p" * 150, "message": "m" * 150}

    assert entry().size <= ENTRY_BYTES_MAX
    with pytest.raises(EntryError, match="at most 512"):
        entry(data=long)


def test_an_entry_knows_its_draft_and_whether_it_settles() -> None:
    assert entry().draft == draft()
    assert not entry().is_outcome
    assert entry(state=EntryState.FAILED).is_outcome


def test_json_leaves_out_empty_maps_and_reads_back() -> None:
    bare = entry_from_draft(
        Draft(EntryId("finalized"), "finalized", EntryState.DONE),
        seq=9,
        at=AT,
        attempt="",
        epoch=Epoch(0),
    )

    assert set(bare.to_json()) == {"seq", "id", "kind", "state", "at", "attempt", "epoch"}
    assert entry_from_json(bare.to_json()) == bare
    assert entry_from_json(entry().to_json()) == entry()


@pytest.mark.parametrize(
    "change",
    [
        {"seq": None},
        {"seq": "1"},
        {"seq": True},
        {"epoch": "1"},
        {"at": 1},
        {"attempt": None},
        {"state": "odd"},
        {"data": []},
        {"data": {"a": 1}},
        {"artifacts": {1: "a"}},
    ],
)
def test_what_is_no_entry_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(EntryError):
        entry_from_json({**entry().to_json(), **change})


def test_a_missing_field_is_named() -> None:
    value = entry().to_json()
    del value["at"]

    with pytest.raises(EntryError, match="without 'at'"):
        entry_from_json(value)


def test_a_draft_is_read_strictly() -> None:
    value = {"id": "a1", "kind": "attempt", "state": "done", "data": {"podUID": "u"}}

    assert draft_from_json(value).data == {"podUID": "u"}
    with pytest.raises(EntryError):
        draft_from_json({})


def test_the_chain_is_over_canonical_entries() -> None:
    first, second = entry(1), replace(entry(2), id=EntryId("s13/promotion"))
    by_hand = sha256_of(GENESIS.encode() + canonical_json(first.to_json()))

    assert chain(GENESIS, []) == GENESIS
    assert chain(GENESIS, [first]) == by_hand
    assert chain(GENESIS, [first, second]) == chain(by_hand, [second])
    assert chain(GENESIS, [second, first]) != chain(GENESIS, [first, second])
