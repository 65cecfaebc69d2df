"""Stored journals are verified whole: each entry flipped, dropped, swapped is found (H23, I3)."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from support.journal_story import RUN_UID, Story, admit, incarnation, pod
from upgraderun_operator.journal.codec import EMPTY, load, segment_bytes, segment_names
from upgraderun_operator.journal.compaction import Segment, next_segment, without
from upgraderun_operator.journal.errors import JournalBroken, JournalTooNew
from upgraderun_operator.journal.planning import Bounds
from upgraderun_operator.journal.run import segments_needed, view_of
from upgraderun_protocol.canonical import canonical_json, sha256_of
from upgraderun_protocol.entries import GENESIS
from upgraderun_protocol.ids import RunUid, Sha256

UID = RunUid(RUN_UID)


def stored() -> dict[str, Any]:
    """A journal of 21 entries as status holds it."""
    story = Story()
    story.run_to_frozen()
    block: dict[str, Any] = json.loads(json.dumps(story.raw["status"]["journal"]))
    return block


def compacted() -> Story:
    """The same run with a small soft bound: entries left into segments."""
    story = Story(bounds=Bounds(soft=2048))
    story.run_to_frozen()
    story.add(pod("a2"))
    assert story.view.journal.compacted.segments
    return story


def test_no_journal_is_an_empty_one() -> None:
    assert load(None, {}, UID) is EMPTY
    assert segment_names(None) == ()


def test_a_stored_journal_loads_to_its_head() -> None:
    block = stored()
    journal = load(block, {}, UID)

    assert journal.fold.seq == 21
    assert journal.digest == block["head"]["digest"]


class TestKnownJournal:
    """What was verified once isn't verified again; anything else is."""

    def test_an_equal_journal_is_the_known_one(self) -> None:
        known = load(stored(), {}, UID)

        assert load(stored(), {}, UID, known) is known

    def test_a_longer_journal_continues_the_known_one(self) -> None:
        story = Story()
        story.add(admit(), pod("a1"))
        known = story.view
        story.add(pod("a1", "done"))
        view = view_of(story.raw, {}, known)

        assert view.journal.entries[:2] == known.journal.entries
        assert view.state == story.view.state
        assert view.journal.digest == story.view.journal.digest
        assert view.journal.entries[0] is known.journal.entries[0]

    def test_a_journal_that_changed_is_verified_from_scratch(self) -> None:
        known = load(stored(), {}, UID)
        block = stored()
        block["entries"][3]["at"] = "2027-01-01T00:00:00Z"

        with pytest.raises(JournalBroken):
            load(block, {}, UID, known)

    def test_a_compacted_journal_has_the_same_fold(self) -> None:
        plain = Story()
        plain.run_to_frozen()
        plain.add(pod("a2"))
        story = compacted()

        assert story.view.state == plain.view.state
        assert story.view.journal.digest == plain.view.journal.digest
        assert segments_needed(story.raw) == story.view.journal.compacted.segments

    def test_a_view_of_another_run_is_no_help(self) -> None:
        story = Story()
        known = story.add(admit(), pod("a1"))
        other = {**story.raw, "metadata": {**story.raw["metadata"], "uid": "another"}}

        assert view_of(other, {}, known).uid == "another"


def flip(block: dict[str, Any]) -> None:
    block["entries"][2]["data"]["podUID"] = "another"


def drop(block: dict[str, Any]) -> None:
    del block["entries"][5]


def drop_last(block: dict[str, Any]) -> None:
    del block["entries"][-1]


def swap(block: dict[str, Any]) -> None:
    entries = block["entries"]
    entries[6], entries[7] = entries[7], entries[6]


def lower_epoch(block: dict[str, Any]) -> None:
    block["entries"][10]["epoch"] = 0


def lower_head(block: dict[str, Any]) -> None:
    block["head"]["seq"] = 3


def second_outcome(block: dict[str, Any]) -> None:
    block["entries"].append({**block["entries"][-1], "seq": 22})


def no_list(block: dict[str, Any]) -> None:
    block["entries"] = {}


def no_object(block: dict[str, Any]) -> None:
    block["entries"][0] = "admit"


def lacking(block: dict[str, Any]) -> None:
    del block["entries"][1]["data"]


def odd_format(block: dict[str, Any]) -> None:
    block["format"] = "1"


def odd_compacted(block: dict[str, Any]) -> None:
    block["compacted"] = []


def uncounted(block: dict[str, Any]) -> None:
    block["compacted"] = {"count": 1, "seq": 2, "digest": GENESIS, "segments": []}


def unnamed(block: dict[str, Any]) -> None:
    block["compacted"] = {"count": 2, "seq": 2, "digest": GENESIS, "segments": ["x"]}


def unlisted(block: dict[str, Any]) -> None:
    block["compacted"] = {"count": 2, "seq": 2, "digest": GENESIS, "segments": None}


def unnumbered(block: dict[str, Any]) -> None:
    block["compacted"] = {"count": "2", "seq": "2", "digest": GENESIS, "segments": []}


def pretending(block: dict[str, Any]) -> None:
    block["compacted"] = {"count": 2, "seq": 2, "digest": GENESIS, "segments": []}


@pytest.mark.parametrize(
    "damage",
    [
        flip,
        drop,
        drop_last,
        swap,
        lower_epoch,
        lower_head,
        second_outcome,
        no_list,
        no_object,
        lacking,
        odd_format,
        odd_compacted,
        uncounted,
        unnamed,
        unlisted,
        unnumbered,
        pretending,
    ],
)
def test_any_damage_breaks_the_journal(damage: Callable[[dict[str, Any]], None]) -> None:
    block = stored()
    damage(block)

    with pytest.raises(JournalBroken):
        load(block, {}, UID)


def test_a_journal_that_is_no_object_is_broken() -> None:
    with pytest.raises(JournalBroken):
        load([], {}, UID)


@pytest.mark.parametrize("part", ["format", "kind", "state"])
def test_what_a_later_version_wrote_is_refused_by_name(part: str) -> None:
    block = stored()
    if part == "format":
        block["format"] = 2
    elif part == "kind":
        block["entries"][0]["kind"] = "checkpoint"
    else:
        block["entries"][0]["state"] = "intent"

    with pytest.raises(JournalTooNew):
        load(block, {}, UID)


class TestSegments:
    """Segments are immutable, named by digest, and belong to one place of one run."""

    def test_a_missing_segment_is_the_reader_s_to_fetch(self) -> None:
        with pytest.raises(KeyError):
            view_of(compacted().raw, {})

    def test_altered_bytes_are_found(self) -> None:
        story = compacted()
        name = story.view.journal.compacted.segments[0]
        segments = {**story.segments, name: story.segments[name] + b" "}

        with pytest.raises(JournalBroken, match="another digest"):
            view_of(story.raw, segments)

    @pytest.mark.parametrize(
        ("change", "error", "match"),
        [
            ({"format": 2}, JournalTooNew, "format 2"),
            ({"runUID": "another"}, JournalBroken, "another run"),
            ({"previous": "0" * 63 + "1"}, JournalBroken, "follow"),
            ({"entries": 1}, JournalBroken, "no entries"),
            ({"entries": []}, JournalBroken, "segments end"),
        ],
    )
    def test_content_must_fit(
        self, change: dict[str, Any], error: type[Exception], match: str
    ) -> None:
        story = compacted()
        last = story.view.journal.compacted.segments[-1]
        data = canonical_json({**json.loads(story.segments[last]), **change})
        raw, segments = renamed(story, last, data)

        with pytest.raises(error, match=match):
            view_of(raw, segments)

    def test_a_segment_must_be_json(self) -> None:
        story = compacted()
        first = story.view.journal.compacted.segments[0]
        raw, segments = renamed(story, first, b"{")

        with pytest.raises(JournalBroken, match="not JSON"):
            view_of(raw, segments)


def renamed(story: Story, name: Sha256, data: bytes) -> tuple[dict[str, Any], dict[Sha256, bytes]]:
    """The same run, one of whose segments is other bytes under their proper name."""
    raw = copy.deepcopy(story.raw)
    names = raw["status"]["journal"]["compacted"]["segments"]
    names[names.index(name)] = sha256_of(data)
    return raw, {**story.segments, sha256_of(data): data}


class TestCompaction:
    """Closed entries move, oldest first; open ones and all after them stay (DESIGN §6)."""

    def test_nothing_moves_below_the_soft_bound(self) -> None:
        story = Story()
        story.run_to_frozen()

        assert next_segment(story.view.journal, UID, 4096, 4096) is None

    def test_an_open_entry_holds_everything_after_it(self) -> None:
        story = Story()
        story.add(admit(), pod("a1"))
        story.add(*[incarnation("a1", number) for number in range(1, 30)], epoch=1)
        moved = next_segment(story.view.journal, UID, 100_000, 400)

        assert moved is not None
        assert moved.count == 1

    def test_too_little_to_pay_isn_t_moved(self) -> None:
        story = Story()
        story.add(admit(), pod("a1"))

        assert next_segment(story.view.journal, UID, 100_000, 4096) is None

    def test_a_command_list_is_closed_by_its_step(self) -> None:
        story = Story()
        story.run_to_frozen()
        journal = story.view.journal
        every = next_segment(journal, UID, 10**6, 1024)
        last_step = [entry for entry in journal.entries if entry.id == "s0"][-1]
        open_step = replace(
            journal, fold=type(journal.fold)(list(journal.fold)[: last_step.seq - 1])
        )
        held = next_segment(open_step, UID, 10**6, 1024)

        assert every is not None
        assert every.count == 21
        assert held is not None
        assert journal.entries[held.count].id == "s0"

    def test_moving_changes_neither_fold_nor_head(self) -> None:
        story = Story()
        story.run_to_frozen()
        journal = story.view.journal
        data = segment_bytes(UID, GENESIS, journal.entries[:5])
        after = without(journal, Segment(sha256_of(data), data, 5))

        assert after.fold is journal.fold
        assert after.digest == journal.digest
        assert after.compacted.seq == 5
        assert [entry.seq for entry in after.entries] == list(range(6, 22))
