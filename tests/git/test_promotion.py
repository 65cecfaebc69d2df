"""Promotion of a pair into `work/` (upgrade-run.md §8.6): every kill point, then recovery (§13.3)."""

import shutil
from dataclasses import replace

import pytest

from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.effects import Position
from upgraderun_runner.workspace.errors import WorkspaceContradicts
from upgraderun_runner.workspace.layout import Layout
from upgraderun_runner.workspace.promotion import (
    Abort,
    Contradiction,
    Finish,
    PairHashes,
    Promotes,
    PromotionDecision,
    PromotionJournal,
    PromotionPlan,
    decide_promotion,
    delete_staging,
    observe_pair,
    retain_pair,
    retained_lock,
    write_lock,
    write_pair,
)

OLD = (b"manifest old\n", b"lock old\n")
NEW = (b"manifest new\n", b"lock new\n")


class KilledError(Exception):
    """Stands for SIGKILL: nothing of the performer runs after it."""


class KillAt:
    """A fault point that kills once, and notes what it passed."""

    def __init__(self, effect: str = "", position: str = "") -> None:
        self.target = (effect, position)
        self.passed: list[tuple[str, str]] = []

    def __call__(self, effect: str, position: Position) -> None:
        self.passed.append((effect, position))
        if (effect, position) == self.target:
            raise KilledError


def hashes(pair: tuple[bytes, bytes]) -> PairHashes:
    return PairHashes(sha256_of(pair[0]), sha256_of(pair[1]))


@pytest.fixture
def plan(layout: Layout) -> PromotionPlan:
    (layout.work / "pyproject.toml").write_bytes(OLD[0])
    (layout.work / "uv.lock").write_bytes(OLD[1])
    made = PromotionPlan(
        Promotes.UPGRADE, "pyproject.toml", "uv.lock", hashes(OLD), hashes(NEW), "s3"
    )
    retain_pair(layout, made, *NEW)
    return made


def recover(layout: Layout, plan: PromotionPlan, stored: bytes | None = None) -> PromotionDecision:
    """What the start of an incarnation does; `stored` is the artifact of M2, if the store has it."""
    copy = retained_lock(layout, plan) or stored
    decision = decide_promotion(
        PromotionJournal.OPEN, plan, observe_pair(layout, plan), lock_copy=copy is not None
    )
    if isinstance(decision, Finish) and decision.write_lock:
        assert copy is not None
        write_lock(layout, plan, copy)
    if isinstance(decision, Finish | Abort):
        delete_staging(layout, plan.staging)
    return decision


def test_undisturbed_writes_both_and_passes_every_point(
    layout: Layout, plan: PromotionPlan
) -> None:
    fault = KillAt()

    write_pair(layout, plan, *NEW, fault)
    delete_staging(layout, plan.staging, fault)

    assert hashes(NEW) == observe_pair(layout, plan)
    assert [] == list(layout.staging_root.iterdir())
    assert [
        (effect, position)
        for effect in ("promotion_first", "promotion_second", "staging_delete")
        for position in ("before", "applied")
    ] == fault.passed


@pytest.mark.parametrize(
    ("effect", "position", "row", "end"),
    [
        ("promotion_first", "before", 3, OLD),
        ("promotion_first", "applied", 4, NEW),
        ("promotion_second", "before", 4, NEW),
        ("promotion_second", "applied", 2, NEW),
    ],
)
def test_kill_and_recover(
    layout: Layout,
    plan: PromotionPlan,
    effect: str,
    position: str,
    row: int,
    end: tuple[bytes, bytes],
) -> None:
    with pytest.raises(KilledError):
        write_pair(layout, plan, *NEW, KillAt(effect, position))

    decision = recover(layout, plan)

    assert isinstance(decision, Abort | Finish)
    assert row == decision.row
    assert hashes(end) == observe_pair(layout, plan)
    assert [] == list(layout.staging_root.iterdir())
    assert {"pyproject.toml", "uv.lock"} == {path.name for path in layout.work.iterdir()}


def half_written(layout: Layout, plan: PromotionPlan) -> None:
    with pytest.raises(KilledError):
        write_pair(layout, plan, *NEW, KillAt("promotion_second", "before"))


def test_lost_staging_is_replaced_by_the_artifact(layout: Layout, plan: PromotionPlan) -> None:
    half_written(layout, plan)
    shutil.rmtree(layout.staging_root / plan.staging)

    assert Finish(4, write_lock=True) == recover(layout, plan, stored=NEW[1])
    assert hashes(NEW) == observe_pair(layout, plan)


def test_tampered_staging_without_artifact_is_a_conflict_and_nothing_else(
    layout: Layout, plan: PromotionPlan
) -> None:
    half_written(layout, plan)
    (layout.staging_root / plan.staging / "after/lock").write_bytes(b"tampered")

    decision = recover(layout, plan)

    assert isinstance(decision, Contradiction)
    assert 5 == decision.row
    assert PairHashes(hashes(NEW).manifest, hashes(OLD).lock) == observe_pair(layout, plan)
    assert b"tampered" == (layout.staging_root / plan.staging / "after/lock").read_bytes()


def test_staged_link_to_a_secret_is_no_copy(layout: Layout, plan: PromotionPlan) -> None:
    half_written(layout, plan)
    staged = layout.staging_root / plan.staging / "after/lock"
    (layout.directory / "elsewhere").write_bytes(NEW[1])
    staged.unlink()
    staged.symlink_to(layout.directory / "elsewhere")

    assert retained_lock(layout, plan) is None


@pytest.mark.parametrize("path", ["pyproject.toml", "uv.lock"])
def test_third_content_is_a_conflict(layout: Layout, plan: PromotionPlan, path: str) -> None:
    half_written(layout, plan)
    (layout.work / path).write_bytes(b"somebody else")

    decision = recover(layout, plan)

    assert isinstance(decision, Contradiction)
    assert 6 == decision.row
    assert b"somebody else" == (layout.work / path).read_bytes()


def test_link_in_place_of_the_lock_is_a_conflict(layout: Layout, plan: PromotionPlan) -> None:
    (layout.work / "uv.lock").unlink()
    (layout.work / "uv.lock").symlink_to("pyproject.toml")

    decision = recover(layout, plan)

    assert isinstance(decision, Contradiction)
    assert "lock link" in decision.observed


def test_unchanged_manifest_is_not_written(layout: Layout, plan: PromotionPlan) -> None:
    same = (OLD[0], NEW[1])
    half = replace(plan, after=hashes(same))
    before = (layout.work / "pyproject.toml").stat().st_ino

    write_pair(layout, half, *same)

    assert before == (layout.work / "pyproject.toml").stat().st_ino
    assert hashes(same) == observe_pair(layout, half)


def test_other_content_than_the_plan_names_is_never_written(
    layout: Layout, plan: PromotionPlan
) -> None:
    for manifest, lock in ((NEW[0] + b"x", NEW[1]), (NEW[0], NEW[1] + b"x")):
        with pytest.raises(WorkspaceContradicts):
            write_pair(layout, plan, manifest, lock)
        (layout.work / "pyproject.toml").write_bytes(OLD[0])
        assert hashes(OLD) == observe_pair(layout, plan)


def test_promotion_of_a_moved_work_tree_is_refused(layout: Layout, plan: PromotionPlan) -> None:
    (layout.work / "uv.lock").write_bytes(b"moved")

    with pytest.raises(WorkspaceContradicts):
        write_pair(layout, plan, *NEW)

    assert OLD[0] == (layout.work / "pyproject.toml").read_bytes()
