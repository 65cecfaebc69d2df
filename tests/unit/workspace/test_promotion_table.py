"""Recovery of a promotion: the seven rows of upgrade-run.md §13.3, enumerated."""

import itertools

import pytest

from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.outcomes import ConflictKind
from upgraderun_protocol.records import from_bytes, to_bytes
from upgraderun_runner.workspace.promotion import (
    Abort,
    Contradiction,
    Finish,
    Nothing,
    PairHashes,
    Promotes,
    PromotionDecision,
    PromotionJournal,
    PromotionPlan,
    decide_promotion,
    image_digests,
)

B1, B2, A1, A2, X = (sha256_of(text.encode()) for text in ("b1", "b2", "a1", "a2", "x"))
OPEN = PromotionJournal.OPEN


def plan(b1: str = B1, b2: str = B2, a1: str = A1, a2: str = A2) -> PromotionPlan:
    return PromotionPlan(
        Promotes.UPGRADE, "pyproject.toml", "uv.lock", PairHashes(b1, b2), PairHashes(a1, a2), "s3"
    )


def decide(w1: str, w2: str, *, copy: bool = True, of: PromotionPlan | None = None) -> object:
    return decide_promotion(OPEN, of or plan(), PairHashes(w1, w2), lock_copy=copy)


def test_row_0_an_outcome_stands() -> None:
    assert Nothing() == decide_promotion(PromotionJournal.CLOSED, None, None, lock_copy=False)
    for observed in itertools.product((B1, A1, X), (B2, A2, X)):
        found = decide_promotion(
            PromotionJournal.CLOSED, plan(), PairHashes(*observed), lock_copy=True
        )
        assert Nothing() == found


def test_row_1_without_intent_nothing_was_written() -> None:
    expected = Abort(row=1, append=False)

    assert expected == decide_promotion(PromotionJournal.NO_INTENT, None, None, lock_copy=False)


@pytest.mark.parametrize("copy", [True, False])
def test_row_2_both_after_is_promoted_without_staging(copy: bool) -> None:
    assert Finish(row=2, write_lock=False) == decide(A1, A2, copy=copy)


@pytest.mark.parametrize("copy", [True, False])
def test_row_3_both_before_is_aborted(copy: bool) -> None:
    assert Abort(row=3, append=True) == decide(B1, B2, copy=copy)


def test_row_4_half_written_is_finished_from_a_copy() -> None:
    assert Finish(row=4, write_lock=True) == decide(A1, B2, copy=True)


def test_row_5_half_written_without_copy_is_a_conflict() -> None:
    found = decide(A1, B2, copy=False)

    assert isinstance(found, Contradiction)
    assert (5, ConflictKind.STAGING_LOST) == (found.row, found.kind)


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize(
    ("w1", "w2"),
    [(B1, A2), (X, B2), (X, A2), (A1, X), (B1, X), (X, X), ("absent", B2), (A1, "absent")],
)
def test_row_6_anything_else_is_a_conflict_with_all_hashes(w1: str, w2: str, copy: bool) -> None:
    found = decide(w1, w2, copy=copy)

    assert isinstance(found, Contradiction)
    assert (6, ConflictKind.PROMOTION_CONTRADICTED) == (found.row, found.kind)
    for digest in (B1, B2, A1, A2):
        assert digest[:16] in found.expected
    for hashed in (w1, w2):
        assert hashed[:16] in found.observed
    assert len(found.expected) <= 256
    assert len(found.observed) <= 256


class TestUnchangedHalf:
    """Case 4 of §13.6: after/after is tested first, also where one file doesn't change."""

    @pytest.mark.parametrize("copy", [True, False])
    def test_unchanged_lock_needs_no_staging(self, copy: bool) -> None:
        assert Finish(2, write_lock=False) == decide(A1, B2, copy=copy, of=plan(a2=B2))

    def test_unchanged_manifest_before_the_lock_is_aborted(self) -> None:
        """M1 is at before *and* after: the lock alone tells, and it says that nothing was written."""
        assert Abort(3, append=True) == decide(B1, B2, of=plan(a1=B1))

    def test_unchanged_manifest_after_the_lock_is_promoted(self) -> None:
        assert Finish(2, write_lock=False) == decide(B1, A2, of=plan(a1=B1))


def test_table_is_total() -> None:
    kinds: set[type] = set()
    values = (B1, B2, A1, A2, X, "absent", "link")
    for journal, w1, w2, copy in itertools.product(PromotionJournal, values, values, (True, False)):
        decided: PromotionDecision = decide_promotion(
            journal, plan(), PairHashes(w1, w2), lock_copy=copy
        )
        kinds.add(type(decided))
    assert {Nothing, Abort, Finish, Contradiction} == kinds


def test_plan_survives_its_artifact() -> None:
    assert plan() == from_bytes(PromotionPlan, to_bytes(plan()))


def test_absent_files_have_no_artifact() -> None:
    assert (A1,) == image_digests(plan(a2="absent"))
