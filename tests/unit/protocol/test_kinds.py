"""The closed table of entry kinds: who may write which id in which state with which keys."""

import pytest

from support.journal_story import TO_FROZEN, admit, ask, draft, end, pod, push
from upgraderun_protocol.ends import LOSSES, EndCause
from upgraderun_protocol.entries import Draft, EntryError, EntryState
from upgraderun_protocol.kinds import KINDS, Writer, check_draft, check_shape
from upgraderun_protocol.outcomes import CONFLICT_OUTCOMES, OUTCOMES, ConflictKind


@pytest.mark.parametrize(
    ("item", "writer"),
    [
        (admit(), Writer.OPERATOR),
        (pod("a1"), Writer.OPERATOR),
        (end("a1", "yield", reason="suspended"), Writer.RUNNER),
        (draft("d1/mint/5", "mint", purpose="push"), Writer.API),
        (ask(), Writer.OPERATOR),
        (push(), Writer.OPERATOR),
        (push("done"), Writer.PUBLISHER),
        *((item, Writer.RUNNER) for item in TO_FROZEN[1:]),
    ],
    ids=lambda item: str(getattr(item, "id", item)),
)
def test_rows_let_their_writers_write(item: Draft, writer: Writer) -> None:
    check_draft(item, writer)


@pytest.mark.parametrize(
    ("item", "writer", "why"),
    [
        (draft("x", "odd"), Writer.OPERATOR, "unknown to this version"),
        (admit(), Writer.RUNNER, "isn't written by the runner"),
        (pod("a1"), Writer.API, "isn't written by the api"),
        (draft("a0", "attempt", podUID="u"), Writer.OPERATOR, "ids of kind"),
        (draft("d1/mint/6", "mint", purpose="push"), Writer.API, "ids of kind"),
        (draft("d1/mint/1", "mint", purpose="push"), Writer.PUBLISHER, "isn't written by"),
        (draft("d1/mint/1", "mint", purpose="fun"), Writer.API, "expected clone|"),
        (draft("admit", "admit", "failed"), Writer.OPERATOR, "no state"),
        (draft("a1", "attempt"), Writer.OPERATOR, "lacks podUID"),
        (draft("a1", "attempt", podUID="u", odd="x"), Writer.OPERATOR, "unknown odd"),
        (draft("a1", "attempt", "intent", pod="p"), Writer.OPERATOR, "artifacts lacks bundle"),
        (draft("base", "base", commit="x", tree="b" * 40), Writer.API, "expected"),
        (end("a1", "odd"), Writer.OPERATOR, "expected verdict|"),
        (draft("outcome", "outcome", outcome="odd"), Writer.OPERATOR, "expected"),
        (draft("a1/end", "end", cause="crashed", exitCode="-1"), Writer.OPERATOR, "expected"),
    ],
)
def test_anything_else_is_refused_with_its_reason(item: Draft, writer: Writer, why: str) -> None:
    with pytest.raises(EntryError, match=why.replace("|", r"\|")):
        check_draft(item, writer)


def test_shapes_don_t_ask_who_writes() -> None:
    check_shape(admit())


def test_every_kind_has_a_meaning_a_writer_and_a_state() -> None:
    for row in KINDS.values():
        assert row.meaning
        assert row.writers
        assert set(row.shapes) <= set(EntryState)
        assert row.shapes


def test_every_conflict_ends_in_an_outcome() -> None:
    assert set(CONFLICT_OUTCOMES) == set(ConflictKind)
    assert set(CONFLICT_OUTCOMES.values()) <= set(OUTCOMES)


def test_outcomes_are_one_table() -> None:
    assert len({row.reason for row in OUTCOMES.values()}) == len(OUTCOMES)
    assert {row.name for row in OUTCOMES.values() if row.succeeded} == {
        "proposal_prepared",
        "proposal_published",
    }


def test_losses_are_causes_that_nobody_wanted() -> None:
    assert LOSSES < set(EndCause)
    assert EndCause.GAVE_UP not in LOSSES
