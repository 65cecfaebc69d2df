"""The tables of publication (upgrade-run.md §13.5), enumerated; total by construction of the tests."""

import itertools

import pytest

from upgraderun_protocol.ids import CommitId, RunUid
from upgraderun_protocol.outcomes import CONFLICT_OUTCOMES, ConflictKind
from upgraderun_protocol.slugs import marker
from upgraderun_runner.forge.github import Denied, SeenPullRequest, Unknown
from upgraderun_runner.forge.tables import (
    BranchAbsent,
    BranchAt,
    BranchSeen,
    BranchStands,
    ConfirmAbsence,
    Create,
    Declined,
    EffectJournal,
    Forbidden,
    LookAtBranch,
    Ours,
    PublicationConflict,
    PullRequestsSeen,
    PullRequestStands,
    Push,
    RecordBranch,
    RecordPullRequest,
    Wait,
    decide_branch,
    decide_pull_request,
)

NOT_OPEN, OPEN, DONE = EffectJournal
OUR_COMMIT, OTHER = CommitId("1" * 40), CommitId("2" * 40)
RUN, DIGEST = RunUid("3f1c9a2b-0000-4000-8000-000000000001"), "d" * 64
OURS = Ours("upgraderun/httpx-0.28.1-3f1c9a2b", "main", OUR_COMMIT, RUN, DIGEST)
OUR_BODY = "Body.\n\n" + marker(RUN, DIGEST, "python", "httpx", "0.28.1")


def pull(
    number: int = 7,
    state: str = "open",
    head: CommitId = OUR_COMMIT,
    base: str = "main",
    body: str = OUR_BODY,
) -> SeenPullRequest:
    return SeenPullRequest(number, state, head, base, body, "upgraderun")


FOREIGN_BODIES = [
    "", "no marker", OUR_BODY + "\nmore", marker(RunUid("other"), DIGEST, "python", "httpx", "0.28.1"),
    marker(RUN, "e" * 64, "python", "httpx", "0.28.1"),
]  # fmt: skip


class TestBranch:
    @pytest.mark.parametrize(("journal", "needs"), [(NOT_OPEN, True), (OPEN, False)])
    def test_absent_branch_is_pushed_with_one_intent(
        self, journal: EffectJournal, needs: bool
    ) -> None:
        assert Push(needs_intent=needs) == decide_branch(journal, BranchAbsent(), (), OURS)

    @pytest.mark.parametrize("journal", [NOT_OPEN, OPEN])
    def test_our_commit_is_recorded(self, journal: EffectJournal) -> None:
        assert RecordBranch() == decide_branch(journal, BranchAt(OUR_COMMIT), (), OURS)

    def test_recorded_branch_at_our_commit_stands(self) -> None:
        assert BranchStands() == decide_branch(DONE, BranchAt(OUR_COMMIT), (), OURS)

    @pytest.mark.parametrize(
        ("journal", "kind"),
        [
            (NOT_OPEN, ConflictKind.FOREIGN_BRANCH),
            (OPEN, ConflictKind.FOREIGN_BRANCH),
            (DONE, ConflictKind.HEAD_MOVED),
        ],
    )
    def test_other_commit_is_a_conflict(self, journal: EffectJournal, kind: ConflictKind) -> None:
        found = decide_branch(journal, BranchAt(OTHER), (), OURS)

        assert PublicationConflict(kind, f"branch at {OUR_COMMIT}", f"branch at {OTHER}") == found
        assert "publication_conflict" == CONFLICT_OUTCOMES[kind]

    def test_recorded_branch_gone_needs_two_looks(self) -> None:
        assert ConfirmAbsence() == decide_branch(DONE, BranchAbsent(), (), OURS)
        found = decide_branch(DONE, BranchAbsent(confirmed=True), (), OURS)
        assert isinstance(found, Declined)

    @pytest.mark.parametrize("confirmed", [False, True])
    def test_recorded_branch_gone_with_a_pull_request_goes_on(self, confirmed: bool) -> None:
        seen = (pull(state="merged"),)

        assert BranchStands() == decide_branch(DONE, BranchAbsent(confirmed), seen, OURS)

    @pytest.mark.parametrize("confirmed", [False, True])
    def test_recorded_branch_gone_and_list_unreadable_is_unknown(self, confirmed: bool) -> None:
        seen = BranchAbsent(confirmed)

        assert Wait("503", 9) == decide_branch(DONE, seen, Unknown("503", 9), OURS)
        assert Forbidden("no", 403) == decide_branch(DONE, seen, Denied("no", 403), OURS)

    @pytest.mark.parametrize("journal", list(EffectJournal))
    def test_unreadable_branch_is_no_verdict(self, journal: EffectJournal) -> None:
        assert Wait("reset") == decide_branch(journal, Unknown("reset"), (), OURS)

    def test_table_is_total(self) -> None:
        branches: tuple[BranchSeen, ...] = (
            BranchAt(OUR_COMMIT), BranchAt(OTHER), BranchAbsent(), BranchAbsent(True), Unknown("x"),
        )  # fmt: skip
        lists: tuple[PullRequestsSeen, ...] = ((), (pull(),), Unknown("x"), Denied("x"))
        found = {
            type(decide_branch(journal, branch, pulls, OURS))
            for journal, branch, pulls in itertools.product(EffectJournal, branches, lists)
        }
        assert {
            Push, RecordBranch, BranchStands, PublicationConflict, Declined, ConfirmAbsence, Wait,
            Forbidden,
        } == found  # fmt: skip


class TestPullRequest:
    def test_done_stands_whatever_is_seen(self) -> None:
        for pulls in ((), (pull(state="closed"),), (pull(), pull(8)), Unknown("x"), Denied("x")):
            assert PullRequestStands() == decide_pull_request(DONE, pulls, BranchAbsent(), OURS)

    @pytest.mark.parametrize("journal", [NOT_OPEN, OPEN])
    @pytest.mark.parametrize(
        "ours", [pull(), pull(state="merged"), pull(state="merged", head=OTHER)]
    )
    def test_ours_open_or_merged_is_recorded(
        self, journal: EffectJournal, ours: SeenPullRequest
    ) -> None:
        found = decide_pull_request(journal, (ours,), Unknown("not asked"), OURS)

        assert RecordPullRequest(ours) == found

    @pytest.mark.parametrize("journal", [NOT_OPEN, OPEN])
    def test_ours_closed_is_declined_never_recreated(self, journal: EffectJournal) -> None:
        found = decide_pull_request(journal, (pull(state="closed"),), BranchAt(OUR_COMMIT), OURS)

        assert Declined("pull request #7 was closed without a merge") == found

    @pytest.mark.parametrize("journal", [NOT_OPEN, OPEN])
    def test_ours_with_another_head_is_a_conflict(self, journal: EffectJournal) -> None:
        found = decide_pull_request(journal, (pull(head=OTHER),), BranchAt(OTHER), OURS)

        assert isinstance(found, PublicationConflict)
        assert ConflictKind.HEAD_MOVED is found.kind
        assert OUR_COMMIT in found.expected
        assert OTHER in found.observed

    @pytest.mark.parametrize("state", ["open", "closed", "merged"])
    @pytest.mark.parametrize("body", FOREIGN_BODIES)
    def test_without_our_marker_is_foreign_in_any_state(self, state: str, body: str) -> None:
        found = decide_pull_request(
            OPEN, (pull(state=state, body=body),), BranchAt(OUR_COMMIT), OURS
        )

        assert isinstance(found, PublicationConflict)
        assert ConflictKind.FOREIGN_PULL_REQUEST is found.kind
        assert "#7" in found.observed

    def test_to_another_base_is_foreign(self) -> None:
        found = decide_pull_request(OPEN, (pull(base="dev"),), BranchAt(OUR_COMMIT), OURS)

        assert isinstance(found, PublicationConflict)
        assert ConflictKind.FOREIGN_PULL_REQUEST is found.kind

    @pytest.mark.parametrize("other", ["open", "closed", "merged"])
    def test_two_of_ours_are_a_conflict(self, other: str) -> None:
        found = decide_pull_request(OPEN, (pull(), pull(8, other)), BranchAt(OUR_COMMIT), OURS)

        assert isinstance(found, PublicationConflict)
        assert ConflictKind.DUPLICATE_PULL_REQUEST is found.kind
        assert 2 == len(found.evidence)

    def test_target_part_of_the_marker_does_not_matter(self) -> None:
        renamed = pull(body=marker(RUN, DIGEST, "python", "other", "9"))

        assert RecordPullRequest(renamed) == decide_pull_request(
            OPEN, (renamed,), BranchAt(OUR_COMMIT), OURS
        )

    @pytest.mark.parametrize(("journal", "needs"), [(NOT_OPEN, True), (OPEN, False)])
    def test_none_is_created_with_one_intent(self, journal: EffectJournal, needs: bool) -> None:
        found = decide_pull_request(journal, (), BranchAt(OUR_COMMIT), OURS)

        assert Create(needs_intent=needs) == found

    @pytest.mark.parametrize("branch", [BranchAbsent(), BranchAt(OTHER), BranchAbsent(True)])
    def test_none_and_branch_elsewhere_goes_back(self, branch: BranchAbsent | BranchAt) -> None:
        assert LookAtBranch() == decide_pull_request(OPEN, (), branch, OURS)

    def test_unreadable_is_no_verdict(self) -> None:
        assert Wait("x", 3) == decide_pull_request(OPEN, Unknown("x", 3), BranchAbsent(), OURS)
        assert Wait("y") == decide_pull_request(OPEN, (), Unknown("y"), OURS)
        assert Forbidden("z", 401) == decide_pull_request(
            OPEN, Denied("z", 401), BranchAbsent(), OURS
        )

    def test_texts_fit_into_an_entry(self) -> None:
        many = tuple(
            SeenPullRequest(i, "open", OTHER, "b" * 255, "", "u" * 100) for i in range(100)
        )

        found = decide_pull_request(OPEN, many, BranchAt(OUR_COMMIT), OURS)

        assert isinstance(found, PublicationConflict)
        assert len(found.observed) <= 200
        assert all(len(line) <= 200 for line in found.evidence)
