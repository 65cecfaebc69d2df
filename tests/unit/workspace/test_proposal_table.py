"""Recovery of a proposal: the table of upgrade-run.md §13.4, enumerated."""

import itertools

import pytest

from upgraderun_protocol.ids import CommitId, RunUid, TreeId
from upgraderun_protocol.outcomes import ConflictKind
from upgraderun_runner.workspace.diff import FileChange
from upgraderun_runner.workspace.proposal import (
    FinishFreeze,
    ProposalContradiction,
    ProposalJournal,
    ProposalObservation,
    ProposalStands,
    change_violations,
    decide_proposal,
    proposal_id,
    proposal_ref,
)

OURS, OTHER = CommitId("1" * 40), CommitId("2" * 40)
TREE, OTHER_TREE = TreeId("a" * 40), TreeId("b" * 40)
OPEN = ProposalJournal.OPEN


def seen(
    ref: CommitId | None = None,
    recomputed: CommitId = OURS,
    *,
    tree_present: bool = True,
    work_tree: TreeId | None = None,
) -> ProposalObservation:
    return ProposalObservation(OURS, ref, recomputed, TREE, tree_present, work_tree)


def test_done_stands_whatever_the_ref_says() -> None:
    for ref, recomputed in itertools.product((None, OURS, OTHER), (OURS, OTHER)):
        found = decide_proposal(ProposalJournal.DONE, seen(ref, recomputed, tree_present=False))
        assert ProposalStands() == found


@pytest.mark.parametrize("ref", [None, OURS])
def test_open_intent_is_finished(ref: CommitId | None) -> None:
    assert FinishFreeze() == decide_proposal(OPEN, seen(ref))


@pytest.mark.parametrize("ref", [None, OURS])
def test_missing_objects_come_back_if_work_gives_the_same_tree(ref: CommitId | None) -> None:
    found = decide_proposal(OPEN, seen(ref, tree_present=False, work_tree=TREE))

    assert FinishFreeze() == found


@pytest.mark.parametrize("recomputed", [OURS, OTHER])
@pytest.mark.parametrize("tree_present", [True, False])
def test_moved_ref_is_a_conflict(recomputed: CommitId, tree_present: bool) -> None:
    found = decide_proposal(OPEN, seen(OTHER, recomputed, tree_present=tree_present))

    assert ProposalContradiction(ConflictKind.PROPOSAL_REF_MOVED, OURS, OTHER) == found


@pytest.mark.parametrize("ref", [None, OURS])
def test_other_recomputed_id_is_a_conflict(ref: CommitId | None) -> None:
    found = decide_proposal(OPEN, seen(ref, OTHER))

    assert ProposalContradiction(ConflictKind.RECIPE_MISMATCH, OURS, OTHER) == found


@pytest.mark.parametrize("work_tree", [None, OTHER_TREE])
@pytest.mark.parametrize("ref", [None, OURS])
def test_missing_objects_and_another_work_tree_are_a_conflict(
    ref: CommitId | None, work_tree: TreeId | None
) -> None:
    found = decide_proposal(OPEN, seen(ref, tree_present=False, work_tree=work_tree))

    assert isinstance(found, ProposalContradiction)
    assert ConflictKind.RECIPE_MISMATCH is found.kind
    assert f"tree {TREE}" == found.expected


def test_names_are_bound_to_run_and_step() -> None:
    name = proposal_id(RunUid("3f1c9a2b-0000-4000-8000-000000000001"), 4)

    assert "3f1c9a2b-s4" == name
    assert "refs/upgraderun/proposals/3f1c9a2b-s4" == proposal_ref(name)


def change(
    path: str = "a.py", old: str | None = "100644", new: str | None = "100644"
) -> FileChange:
    return FileChange(path, old, new, "1" * 40, "2" * 40, 1, 1, binary=False)


class TestChanges:
    """H30: only regular files, unchanged links, nothing deleted, at most 32 files."""

    @pytest.mark.parametrize("old", [None, "100644", "100755"])
    @pytest.mark.parametrize("new", ["100644", "100755"])
    def test_regular_files_pass(self, old: str | None, new: str) -> None:
        assert () == change_violations((change(old=old, new=new),))

    @pytest.mark.parametrize(
        ("row", "code"),
        [
            (change(new=None), "deleted"),
            (change(new="120000"), "mode"),
            (change(old="120000"), "mode"),
            (change(old=None, new="120000"), "mode"),
            (change(old=None, new="160000"), "mode"),
            (change(old="160000", new="100644"), "mode"),
            (change(".git/config"), "path"),
            (change("a\u202eb"), "path"),
        ],
    )
    def test_others_are_refused(self, row: FileChange, code: str) -> None:
        assert [code] == [violation.code for violation in change_violations((row,))]

    def test_33_files_are_too_many(self) -> None:
        rows = tuple(change(f"f{i}.py") for i in range(33))

        assert () == change_violations(rows[:32])
        assert ["too_many_files"] == [v.code for v in change_violations(rows)]
