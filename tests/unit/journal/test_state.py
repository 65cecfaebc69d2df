"""The typed fold: what decisions and the runner API read of a journal (runner-protocol.md §9)."""

import pytest

from support.journal_story import (
    APPLY,
    BASELINE,
    CANDIDATES,
    FINALIZED,
    POD_UID,
    PROFILE,
    TO_FROZEN,
    VALIDATE,
    Story,
    admit,
    answer,
    ask,
    draft,
    end,
    git_id,
    incarnation,
    outcome,
    pod,
    pull_request,
    push,
    sha,
)
from upgraderun_operator.journal.errors import JournalBroken
from upgraderun_operator.journal.folding import run_state
from upgraderun_operator.journal.records import (
    Base,
    CurrentWriter,
    LossCount,
    Role,
    Target,
    Validation,
)
from upgraderun_operator.journal.state import Lifecycle, RunState, Stage, Usage
from upgraderun_protocol.ends import EndCause
from upgraderun_protocol.entries import Draft, EntryState, entry_from_draft
from upgraderun_protocol.fold import Fold
from upgraderun_protocol.ids import CommitId, EntryId, Epoch, PodUid, TreeId, WriterTag


def started() -> Story:
    story = Story()
    story.add(admit(), pod("a1"))
    story.add(pod("a1", "done"))
    story.add(incarnation("a1", 1), epoch=1)
    return story


def approved() -> Story:
    story = Story()
    story.run_to_frozen()
    story.add(end("a1", "verdict", outcome="proposal_prepared"), epoch=1)
    story.add(ask())
    return story


class TestWriter:
    """The fold yields one writer or none (runner-protocol.md §1.1)."""

    def test_nobody_writes_before_the_first_attempt(self) -> None:
        state = Story().add(admit()).state

        assert state.writer is None
        assert state.last_writer is None
        assert state.tag == ""
        assert state.attempt is None

    def test_a_planned_pod_writes_without_uid_and_epoch(self) -> None:
        state = Story().add(admit(), pod("a1")).state

        assert state.writer == CurrentWriter(WriterTag("a1"), Role.RUNNER, 1, "run-a1", None, None)

    def test_a_pod_that_took_the_lease_writes_under_its_epoch(self) -> None:
        state = started().view.state

        assert state.writer == CurrentWriter(
            WriterTag("a1"), Role.RUNNER, 1, "run-a1", PodUid(f"{POD_UID}-a1"), Epoch(1)
        )
        assert state.attempt is not None
        assert state.attempt.incarnations == 1

    def test_nobody_writes_after_the_end_of_a_pod(self) -> None:
        state = started().add(end("a1", "crashed", exitCode="3")).state

        assert state.writer is None
        assert state.last_writer is not None
        assert state.last_writer.tag == "a1"

    def test_the_publisher_writes_while_its_delivery_is_open(self) -> None:
        story = approved()
        story.add(answer("approved", by="bob"), push(), pod("d1"))
        state = story.add(pod("d1", "done")).state

        assert state.writer is not None
        assert state.writer.role is Role.PUBLISHER
        assert state.tag == "d1"

    def test_nobody_writes_after_the_outcome(self) -> None:
        assert started().add(outcome("cancelled")).state.writer is None

    def test_a_contradicted_pod_writes_no_more(self) -> None:
        state = Story().add(admit(), pod("a1"), pod("a1", "conflict")).state

        assert state.writer is None
        assert state.conflict is not None
        assert state.conflict.kind == "foreign_pod"


class TestLifecycle:
    """Every state of runner-protocol.md §9."""

    def test_follows_the_journal_to_a_pull_request(self) -> None:
        seen = []

        def look(state: RunState) -> None:
            seen.append(state.lifecycle(suspended=False))

        story = Story()
        look(story.add(admit()).state)
        look(story.add(pod("a1"), pod("a1", "done")).state)
        look(story.add(incarnation("a1", 1), *TO_FROZEN, epoch=1).state)
        look(story.add(end("a1", "verdict")).state)
        look(story.add(ask()).state)
        look(story.add(answer("approved"), push()).state)
        look(story.add(pod("d1")).state)
        look(story.add(outcome("proposal_published")).state)
        look(story.add(FINALIZED).state)

        assert seen == [
            Lifecycle.QUEUED,
            Lifecycle.PROVISIONING,
            Lifecycle.RUNNING,
            Lifecycle.AWAITING_APPROVAL,
            Lifecycle.AWAITING_APPROVAL,
            Lifecycle.PUBLISHING,
            Lifecycle.PUBLISHING,
            Lifecycle.FINALIZING,
            Lifecycle.FINISHED,
        ]

    def test_a_lost_attempt_is_followed_by_provisioning(self) -> None:
        state = started().add(end("a1", "pod_gone")).state

        assert state.lifecycle(suspended=False) is Lifecycle.PROVISIONING
        assert state.lifecycle(suspended=True) is Lifecycle.SUSPENDED

    def test_a_living_writer_isn_t_suspended_yet(self) -> None:
        assert started().view.state.lifecycle(suspended=True) is Lifecycle.RUNNING

    def test_a_pod_that_parks_itself_says_why(self) -> None:
        state = started().add(end("a1", "yield", reason="suspended"), epoch=1).state

        assert state.parked == "suspended"
        assert state.attempt_losses == LossCount()

    def test_a_pod_that_parks_without_a_word_isn_t_resumable(self) -> None:
        assert started().add(end("a1", "yield")).state.parked == "not_resumable"

    def test_others_aren_t_parked(self) -> None:
        assert Story().view.state.parked is None
        assert started().view.state.parked is None
        assert started().add(end("a1", "crashed")).state.parked is None


class TestLosses:
    """Losses in all and in a row without a new `done` entry (upgrade-run.md §9.5)."""

    def test_count_in_a_row_and_in_all(self) -> None:
        story = started()
        story.add(end("a1", "crashed"), pod("a2"), pod("a2", "done"))
        story.add(incarnation("a2", 2), epoch=2)
        two = story.add(end("a2", "pod_gone")).state.attempt_losses
        story.add(pod("a3"), pod("a3", "done"))
        story.add(incarnation("a3", 3), *PROFILE, epoch=3)
        after_work = story.view.state.attempt_losses
        again = story.add(end("a3", "disrupted")).state.attempt_losses

        assert two == LossCount(2, 2)
        assert after_work == LossCount(0, 2)
        assert again == LossCount(1, 3)

    def test_publishers_are_counted_apart(self) -> None:
        story = approved()
        story.add(answer("approved"), push(), pod("d1"))
        lost = story.add(end("d1", "out_of_memory")).state
        story.add(pod("d2"))
        worked = story.add(push("done")).state

        assert lost.delivery_losses == LossCount(1, 1)
        assert lost.attempt_losses == LossCount(0, 0)
        assert worked.delivery_losses == LossCount(0, 1)

    def test_giving_up_is_no_loss_but_is_counted_in_a_row(self) -> None:
        story = started()
        story.add(end("a1", "gave_up", exitCode="75"), pod("a2"))
        state = story.add(end("a2", "gave_up")).state
        story.add(pod("a3"))
        after = story.add(PROFILE[0]).state

        assert state.gave_up_in_row == 2
        assert state.attempt_losses == LossCount(0, 0)
        assert after.gave_up_in_row == 0
        assert state.attempts[0].end is not None
        assert state.attempts[0].end.exit_code == 75


class TestWork:
    """Base, context, baseline, target, validation, proposal."""

    def test_a_frozen_run_has_them_all(self) -> None:
        state = started().add(*TO_FROZEN, epoch=1).state
        target = Target("requests", "2.31.0", "2.32.0")

        assert state.base == Base(CommitId(git_id("a")), TreeId(git_id("b")))
        assert state.is_resumable
        assert state.context is not None
        assert state.context.isolation == "network-namespace"
        assert state.baseline is not None
        assert state.baseline.tests == "12"
        assert state.candidate == target
        assert state.promoted == target
        assert state.validation == Validation(
            "2026-11-30T08:00:00Z", EntryId("s1"), clean=True, tree=TreeId(git_id("c"))
        )
        assert state.proposal is not None
        assert str(state.proposal.digest) == sha("9")
        assert state.proposal.commit == git_id("d")
        assert state.target == target
        assert state.usage == Usage(attempts=1, deliveries=0, steps=2, validations=1)

    def test_target_is_the_best_that_is_known(self) -> None:
        story = started()
        listed = story.add(*CANDIDATES, epoch=1).state
        story.add(draft("s0", "step", "intent", tool="apply_upgrade"), epoch=1)
        moved = draft(
            "s0/promotion",
            "promotion",
            "intent",
            {"plan": sha("4")},
            promotes="pair",
            name="urllib3",
            from_="1",
            to="2",
        )
        story.add(moved, epoch=1)
        open_promotion = story.view.state
        promoted = story.add(draft("s0/promotion", "promotion"), epoch=1).state

        assert Story().view.state.target is None
        assert listed.target == Target("requests", "2.31.0", "2.32.0")
        assert open_promotion.promoted is None
        assert promoted.target == Target("urllib3", "1", "2")

    def test_an_aborted_promotion_promotes_nothing(self) -> None:
        story = started()
        story.add(
            draft("s0", "step", "intent", tool="apply_upgrade"),
            APPLY[3],
            draft("s0/promotion", "promotion", "interrupted", reason="aborted"),
            draft("s0", "step", "interrupted", tool="apply_upgrade", reason="killed"),
            epoch=1,
        )

        assert story.view.state.promoted is None

    def test_failed_and_interrupted_steps_leave_no_evidence(self) -> None:
        story = started()
        failed = {"outcome": "unsupported", "message": "no lock"}
        story.add(
            PROFILE[0],
            draft("profile/1", "profile", "failed", **failed),
            BASELINE[0],
            draft("baseline/1", "baseline", "interrupted", reason="killed"),
            CANDIDATES[0],
            draft("candidates/1", "candidates", "interrupted", reason="killed"),
            VALIDATE[0],
            draft("s1", "step", "failed", tool="run_validation", reason="timeout"),
            draft(
                "proposal/s2",
                "proposal",
                "intent",
                {"recipe": sha("8")},
                proposal="x",
                commit=git_id("d"),
                tree=git_id("c"),
                ref="refs/upgraderun/proposals/x",
            ),
            draft(
                "proposal/s2",
                "proposal",
                "conflict",
                conflict="recipe_mismatch",
                expected="d",
                observed="e",
            ),
            epoch=1,
        )
        state = story.view.state

        assert state.context is None
        assert state.baseline is None
        assert state.candidate is None
        assert state.validation is None
        assert state.proposal is None
        assert state.conflict is not None
        assert state.conflict.entry == "proposal/s2"

    @pytest.mark.parametrize(
        ("count", "stage"),
        [
            (1, Stage.PREPARING),
            (4, Stage.BASELINE),
            (5, Stage.SELECTING),
            (7, Stage.UPGRADING),
            (14, Stage.VALIDATING),
            (16, Stage.FREEZING),
        ],
    )
    def test_stage_is_the_phase_that_the_runner_is_in(self, count: int, stage: Stage) -> None:
        assert started().add(*TO_FROZEN[:count], epoch=1).state.stage is stage

    def test_a_validation_with_findings_isn_t_clean(self) -> None:
        story = started()
        dirty = draft(
            "s1",
            "step",
            "done",
            {"observation": sha("6")},
            tool="run_validation",
            clean="false",
        )
        validation = story.add(VALIDATE[0], dirty, epoch=1).state.validation

        assert validation is not None
        assert not validation.clean
        assert validation.tree is None


class TestPublication:
    """Requests, push, pull request, outcome."""

    def test_a_request_is_pending_until_it_is_answered(self) -> None:
        story = approved()
        pending = story.view.state
        granted = story.add(answer("approved", by="bob", approval="yes")).state

        assert pending.pending_request is not None
        assert pending.pending_request.presentation == sha("f")
        assert pending.grant is None
        assert granted.pending_request is None
        assert granted.grant is not None
        assert granted.grant.answer is not None
        assert granted.grant.answer.by == "bob"

    def test_a_rejection_is_no_grant(self) -> None:
        state = approved().add(answer("rejected", by="eve")).state

        assert state.grant is None
        assert state.request is not None

    def test_no_request_is_neither_pending_nor_granted(self) -> None:
        state = Story().view.state

        assert state.request is None
        assert state.pending_request is None
        assert state.grant is None

    def test_push_and_pull_request_are_settled_by_their_outcomes(self) -> None:
        story = approved()
        story.add(answer("approved"), push(grant="g"), pod("d1"))
        opened = story.view.state
        story.add(push("done", found="true"), pull_request())
        state = story.add(pull_request("done")).state

        assert opened.push is not None
        assert opened.push.state is None
        assert opened.pushed is None
        assert state.pushed is not None
        assert state.pushed.found
        assert state.pushed.grant == "g"
        assert state.opened is not None
        assert state.opened.pull_number == 7
        assert state.opened == state.pull_request

    def test_what_was_found_needs_no_intent(self) -> None:
        story = approved()
        story.add(answer("approved"), pod("d1"))
        state = story.add(push("done"), pull_request("done", found="true")).state

        assert state.pushed is not None
        assert state.pushed.branch is None
        assert state.opened is not None
        assert state.opened.found

    def test_a_failed_push_is_retried_under_a_new_id(self) -> None:
        story = approved()
        story.add(answer("approved"), push(), pod("d1"))
        story.add(push("failed", reason="denied", status="403"))
        state = story.add(push(number=2)).state

        assert [item.state for item in state.pushes] == [EntryState.FAILED, None]
        assert state.push is not None
        assert state.push.number == 2

    def test_a_failed_pull_request_has_no_number(self) -> None:
        story = approved()
        story.add(answer("approved"), push(), pod("d1"), push("done"), pull_request())
        state = story.add(pull_request("failed", reason="denied")).state

        assert state.opened is None
        assert state.pull_request is not None
        assert state.pull_request.pull_number is None
        assert state.pull_request.reason == "denied"

    def test_the_outcome_brings_its_verdict_and_conflict(self) -> None:
        data = {"verdictId": "v", "podUID": "u", "exitCode": "4"}
        conflict = {"conflict": "foreign_branch", "expected": "d", "observed": "e"}
        state = started().add(outcome("publication_conflict", **data, **conflict)).state

        assert state.outcome is not None
        assert state.outcome.exit_code == 4
        assert state.outcome.pod_uid == "u"
        assert state.conflict is not None
        assert state.conflict.entry == "outcome"

    def test_the_first_conflict_stands(self) -> None:
        story = Story()
        story.add(admit(), pod("a1"), pod("a1", "conflict"))
        conflict = {"conflict": "foreign_branch", "expected": "d", "observed": "e"}
        state = story.add(outcome("cluster_conflict", **conflict)).state

        assert state.conflict is not None
        assert state.conflict.kind == "foreign_pod"

    def test_a_second_conflict_entry_changes_nothing(self) -> None:
        story = Story()
        story.add(admit(), pod("a1"), pod("a1", "conflict"), pod("a2"))
        state = story.add(pod("a2", "conflict")).state

        assert state.conflict is not None
        assert state.conflict.entry == "a1"


class TestContradictions:
    """An entry that continues nothing breaks the journal."""

    @pytest.mark.parametrize(
        "lonely",
        [
            pod("a1", "done"),
            pod("a1", "conflict"),
            incarnation("a1", 1),
            end("a1", "crashed"),
            answer("approved"),
            TO_FROZEN[-1],
            APPLY[4],
        ],
        ids=lambda item: f"{item.id} {item.state}",
    )
    def test_outcomes_need_their_intents(self, lonely: Draft) -> None:
        entry = entry_from_draft(lonely, seq=1, at="t", attempt="a1", epoch=Epoch(1))

        with pytest.raises(JournalBroken, match="continues nothing"):
            run_state(Fold([entry]))

    def test_every_end_cause_folds(self) -> None:
        for cause in EndCause:
            assert started().add(end("a1", cause)).state.attempts[0].end is not None
