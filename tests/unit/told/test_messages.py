"""Each message says what was found, where, and what to do next (house style §3)."""

from pathlib import Path

import pytest

from support.told.page import page, stories, tables
from support.told.telling import Told
from upgraderun_protocol.limits import MESSAGE_MAX
from upgraderun_protocol.outcomes import OUTCOMES, ConflictKind

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "messages.txt"
STORIES = stories()
ROWS = [(table, reason) for table, reasons in tables().items() for reason in reasons]


@pytest.mark.parametrize(("table", "reason"), ROWS, ids=[f"{t}-{r}" for t, r in ROWS])
def test_every_row_of_a_closed_table_has_its_text(table: str, reason: str) -> None:
    """A new outcome, wait, stall or kind of conflict without a story fails here."""
    texts = [story.text for story in STORIES if reason in {story.reason, story.conflict}]

    assert texts, f"{table}: nothing tells what people read of {reason}"


def test_every_text_belongs_to_a_row() -> None:
    assert set() == {story.name for story in STORIES} - {reason for _, reason in ROWS}


def test_a_conflict_ends_in_an_outcome_of_the_table() -> None:
    known = {row.reason for row in OUTCOMES.values()} | {
        "".join(word.capitalize() for word in ConflictKind.JOURNAL_BROKEN.split("_"))
    }

    assert {story.reason for story in STORIES if story.conflict} <= known


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_a_text_names_the_place_and_the_next_step(story: Told) -> None:
    assert story.where in story.text
    assert story.step in story.text
    assert not story.text.startswith(story.step), "nothing says what was found"


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_a_text_fits_where_it_is_shown(story: Told) -> None:
    assert len(story.text) <= MESSAGE_MAX
    assert "\n" not in story.text


def test_the_golden_file_is_up_to_date() -> None:
    """Run `make generate`, read what changed as somebody on call would, and commit it."""
    assert page() == GOLDEN.read_text(encoding="utf-8")
