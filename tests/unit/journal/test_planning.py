"""One try of a guarded write, purely: append, facts, bounds, and what isn't written."""

from dataclasses import replace
from typing import Any

import pytest

from support.journal_story import (
    FINALIZED,
    NOW,
    PROFILE,
    TO_FROZEN,
    Story,
    admit,
    answer,
    ask,
    draft,
    end,
    incarnation,
    outcome,
    pod,
    push,
    sha,
)
from upgraderun_operator.journal.broken import broken_status
from upgraderun_operator.journal.facts import Facts, Wait, facts_of
from upgraderun_operator.journal.planning import Bounds, Planned, PlanResult, plan
from upgraderun_operator.journal.run import RunView
from upgraderun_operator.journal.writes import Change, Contradicted, EpochFell, Full
from upgraderun_protocol.entries import Draft
from upgraderun_protocol.ids import Epoch

WRITE = {"id": "0" * 32, "by": "test"}
LATER = "2026-11-30T09:00:00Z"
WAIT = Wait("RepositoryBusy", "run team/other is active", NOW)


def planned(view: RunView, change: Change, now: str = LATER) -> Planned:
    result = plan(view, change, now=now, write=WRITE, bounds=Bounds())
    assert isinstance(result, Planned)
    return result


def refused(view: RunView, *drafts: Draft, epoch: int | None = None) -> PlanResult:
    change = Change(drafts, None if epoch is None else Epoch(epoch))
    return plan(view, change, now=LATER, write=WRITE, bounds=Bounds())


class TestAppend:
    """Replay key (id, state); a smaller epoch is refused; all or none (DESIGN §6)."""

    def test_an_equal_draft_is_a_replay_and_writes_nothing(self) -> None:
        view = Story().add(admit(), pod("a1"))

        again = planned(view, Change((admit(), pod("a1"))))

        assert again.body is None
        assert [(item.entry.seq, item.replayed) for item in again.placed] == [(1, True), (2, True)]
        assert again.journal is view.journal

    def test_replay_and_new_entries_mix(self) -> None:
        view = Story().add(admit(), pod("a1"))

        more = planned(view, Change((pod("a1"), pod("a1", "done"))))

        assert [(item.entry.seq, item.replayed) for item in more.placed] == [(2, True), (3, False)]

    def test_other_content_is_a_contradiction(self) -> None:
        view = Story().add(admit())

        result = refused(view, pod("a1"), admit(branch="other"))

        assert isinstance(result, Contradicted)
        assert "contradicts entry 1" in result.message

    def test_a_shape_that_the_kind_doesn_t_know_is_refused(self) -> None:
        result = refused(Story().view, draft("admit", "admit", policy="default"))

        assert isinstance(result, Contradicted)

    def test_what_continues_nothing_is_refused(self) -> None:
        result = refused(Story().add(admit()), end("a1", "crashed"))

        assert isinstance(result, Contradicted)
        assert "continues nothing" in result.message

    def test_an_older_epoch_is_refused_even_for_a_replay(self) -> None:
        story = Story()
        story.add(admit(), pod("a1"))
        view = story.add(incarnation("a1", 2), epoch=2)

        assert refused(view, incarnation("a1", 2), epoch=1) == EpochFell(Epoch(1), view)

    def test_entries_of_the_operator_carry_the_current_epoch(self) -> None:
        story = Story()
        story.add(admit(), pod("a1"))
        story.add(incarnation("a1", 3), epoch=3)
        view = story.add(end("a1", "crashed"), pod("a2"))

        assert [entry.epoch for entry in view.state.fold] == [0, 0, 3, 3, 3]
        assert [entry.attempt for entry in view.state.fold] == ["", "a1", "a1", "a1", "a2"]


class TestFacts:
    """Facts change only as the change says; a stamp belongs to the pod beside it."""

    def test_facts_are_set_kept_and_removed(self) -> None:
        story = Story()
        story.add(admit(), pod("a1"))
        change = Change(leader_epoch=Epoch(3), attempt_lost_at=NOW, renewed_at=NOW, wait=WAIT)
        set_ = story.add(change=change)
        kept = story.add(change=Change(leader_epoch=Epoch(2)))
        removed = story.add(change=Change(attempt_lost_at=None, wait=None))

        assert set_.facts == Facts(Epoch(3), NOW, None, None, WAIT)
        assert kept.facts == set_.facts
        assert removed.facts == Facts(Epoch(3))

    def test_renewal_shows_once_the_run_has_ended(self) -> None:
        story = Story()
        story.add(admit())
        story.add(outcome("cancelled"), change=Change(renewed_at=LATER))

        assert story.view.facts.renewed_at == LATER

    def test_a_new_pod_starts_without_a_stamp(self) -> None:
        story = Story()
        story.add(admit(), pod("a1"))
        story.add(change=Change(attempt_lost_at=NOW))
        after = story.add(end("a1", "pod_gone"), pod("a2"))

        assert after.facts.attempt_lost_at is None

    def test_a_new_delivery_too(self) -> None:
        story = Story()
        story.run_to_frozen()
        story.add(end("a1", "verdict"), ask())
        story.add(answer("approved"), push(), pod("d1"))
        stamped = story.add(change=Change(delivery_lost_at=NOW))
        after = story.add(end("d1", "pod_gone"), pod("d2"))

        assert stamped.facts.delivery_lost_at == NOW
        assert after.facts.delivery_lost_at is None

    @pytest.mark.parametrize(
        "status",
        [
            {},
            {"leaderEpoch": "3", "attempt": [], "wait": "busy"},
            {"attempt": {"lossObservedAt": 5}, "wait": {"reason": "RepositoryBusy"}},
        ],
    )
    def test_what_we_didn_t_write_counts_as_absent(self, status: dict[str, Any]) -> None:
        assert facts_of(status) == Facts()


class TestNothingToDo:
    """A pass that finds nothing to do writes nothing (DESIGN §6, I15)."""

    def test_no_change_no_write(self) -> None:
        view = Story().add(admit(), pod("a1"))

        assert planned(view, Change()).body is None

    def test_another_mark_is_no_change(self) -> None:
        story = Story()
        story.add(admit())
        story.raw["status"]["write"] = {"id": "f" * 32, "by": "a-much-longer-name"}

        assert planned(story.view, Change()).body is None

    def test_a_stale_projection_is_written_anew(self) -> None:
        story = Story()
        story.add(admit())
        story.raw["status"]["phase"] = "Odd"

        again = planned(story.view, Change())

        assert again.refreshed
        assert again.body is not None
        assert again.body["status"]["phase"] == "Queued"

    def test_an_append_isn_t_a_refresh(self) -> None:
        assert not planned(Story().view, Change((admit(),))).refreshed

    def test_the_body_is_the_object_that_was_read(self) -> None:
        story = Story()
        story.add(admit())
        body = planned(story.view, Change((pod("a1"),))).body

        assert body is not None
        assert body["metadata"] == story.raw["metadata"]
        assert body["spec"] == story.raw["spec"]
        assert body["status"]["write"] == WRITE


class TestBounds:
    """Above the hard bound nothing is added but the entries that end a run."""

    tight = Bounds(soft=1024, hard=3000)

    def test_a_full_status_takes_no_intent(self) -> None:
        story = Story()
        story.add(admit(), pod("a1"), PROFILE[0])
        result = plan(
            story.view,
            Change((PROFILE[1],)),
            now=NOW,
            write=WRITE,
            bounds=Bounds(soft=100_000, hard=2000),
        )

        assert isinstance(result, Full)
        assert result.bytes > 2000

    def test_a_full_status_still_ends(self) -> None:
        story = Story(bounds=Bounds(soft=100_000, hard=2000))
        story.raw = Story().add(admit(), pod("a1"), PROFILE[0]).raw  # type: ignore[assignment]  # test helper holds a dict
        story.add(end("a1", "crashed"))
        story.add(outcome("cancelled"))

        assert story.add(FINALIZED).state.finalized_at == NOW

    def test_entries_must_leave_where_that_makes_room(self) -> None:
        story = Story()
        story.run_to_frozen()
        change = Change((end("a1", "verdict"), pod("a2")))
        full = Bounds(soft=3000, hard=6000)
        first = plan(story.view, change, now=NOW, write=WRITE, bounds=full)

        assert isinstance(first, Planned)
        assert first.must_move
        assert first.segment is not None

        second = plan(story.view, change, now=NOW, write=WRITE, bounds=full, moved=first.segment)

        assert isinstance(second, Planned)
        assert second.body is not None
        assert second.segment is None
        assert not second.must_move
        assert second.body["status"]["journal"]["bytes"] < 6000

    def test_a_run_ends_with_segments_and_the_same_fold(self) -> None:
        """A run whose soft bound is 4 KiB has at least two segments in the end."""
        story = Story(bounds=Bounds(soft=4096))
        plain = Story()
        for each in (story, plain):
            each.add(admit(), pod("a1"), pod("a1", "done"))
            each.add(incarnation("a1", 1), epoch=1)
            for item in TO_FROZEN:
                each.add(item, epoch=1)
            each.add(end("a1", "verdict"), ask())
            each.add(answer("approved"), push(), pod("d1"))

        assert len(story.view.journal.compacted.segments) >= 2
        assert story.view.state == plain.view.state
        assert story.raw["status"]["journal"]["bytes"] < plain.raw["status"]["journal"]["bytes"]

    def test_an_entry_that_is_too_long_is_refused(self) -> None:
        result = refused(
            Story().view,
            draft(
                "admit",
                "admit",
                "done",
                {"policy": sha("1"), "earlier": sha("2")},
                policy="p" * 250,
                configHash="c" * 64,
            ),
        )

        assert isinstance(result, Contradicted)
        assert "at most 512" in result.message


class TestBrokenJournal:
    """A broken chain is told and nothing else is touched (security.md H23)."""

    def test_broken_becomes_a_conflict(self) -> None:
        before = Story().add(admit()).status
        status = broken_status(before, "gap", too_new=False, generation=2, now=LATER)

        assert status is not None
        assert status["journal"] == before["journal"]
        assert status["conflict"]["kind"] == "JournalBroken"
        assert status["conflict"]["observed"] == "gap"
        assert [c["status"] for c in status["conditions"] if c["type"] == "Conflict"] == ["True"]

    def test_too_new_stalls(self) -> None:
        status = broken_status({}, "format 2", too_new=True, generation=1, now=LATER)

        assert status is not None
        assert "conflict" not in status
        assert status["conditions"][0]["reason"] == "JournalTooNew"
        assert "upgrade the operator" in status["conditions"][0]["message"]

    def test_it_is_told_once(self) -> None:
        first = broken_status({}, "gap", too_new=False, generation=1, now=NOW)
        assert first is not None

        assert broken_status(first, "gap", too_new=False, generation=1, now=LATER) is None

    def test_another_reason_is_told_anew(self) -> None:
        first = broken_status({}, "gap", too_new=False, generation=1, now=NOW)
        assert first is not None
        other = {**first["conditions"][0], "reason": "ForeignPod"}

        again = broken_status(
            {"conditions": [other]}, "gap", too_new=False, generation=1, now=LATER
        )

        assert again is not None
        assert again["conditions"][0]["reason"] == "JournalBroken"


def test_a_view_reads_wishes_from_the_spec() -> None:
    view = Story({"suspend": True, "cancel": True, "mode": "Baseline"}).view
    bare = replace(view, raw={"metadata": {**view.raw["metadata"], "deletionTimestamp": NOW}})

    assert view.wants_suspend
    assert view.wants_cancel
    assert not view.wants_publication
    assert Story().view.wants_publication
    assert not view.is_deleting
    assert bare.is_deleting
    assert bare.spec == {}
    assert not bare.wants_publication
