"""Phase 15: each step is skipped by what it left in the world (runner-protocol.md §6.4)."""

from dataclasses import replace
from typing import Any

import pytest

from support.scenes import (
    DIGEST,
    FREE,
    LEADER,
    OURS,
    UID,
    Scene,
    a_pod,
    a_record,
    at,
    ended,
    report,
)
from upgraderun_operator.decide.decision import Decision, Look, Need, Pause
from upgraderun_operator.decide.effects import (
    Announce,
    Append,
    DeleteClaim,
    DeletePod,
    DeleteRunLease,
    ReleaseRepositoryLease,
    RemoveFinalizer,
    WriteReport,
)
from upgraderun_operator.decide.readings import ABSENT
from upgraderun_operator.decide.run import decide
from upgraderun_operator.decide.views import ChildView, Malformed
from upgraderun_protocol.entries import EntryState
from upgraderun_protocol.limits import MESSAGE_MAX
from upgraderun_protocol.outcomes import OUTCOMES

CLAIM = ChildView("run-3f1c9a2b", "claim", UID)
LEASE = ChildView("run-3f1c9a2b", "lease", UID)
LEFT: dict[str, Any] = {
    "record": a_record("no_candidate"),
    "report": report("NoCandidate"),
    "announced": frozenset({"outcome/no_candidate"}),
    "claim": CLAIM,
    "old_pods": (a_pod("a1", **ended(4)),),
    "lease": LEASE,
    "repository": OURS,
}
GONE: dict[str, Any] = {
    **LEFT,
    "claim": ABSENT,
    "old_pods": (),
    "lease": ABSENT,
    "repository": FREE,
}


def over(**metadata: Any) -> Scene:
    scene = Scene().working().outcome("no_candidate", message="nothing newer")
    scene.metadata.update(metadata)
    return scene


def seen(scene: Scene | None = None, **parts: Any) -> Decision:
    return decide((scene or over()).seen(**parts))


class TestOrder:
    """The steps in order, each asked for only when the one before is done."""

    def test_reads_record_and_report_first(self) -> None:
        assert Look(Need.RECORD) == seen().what
        assert Look(Need.REPORT) == seen(record=a_record()).what

    def test_writes_the_report_in_the_runners_words(self) -> None:
        record = a_record("no_candidate", message="3 versions are too young")
        decision = seen(record=record, report=ABSENT)
        assert isinstance(decision.what, WriteReport)
        assert decision.what.content.message == "3 versions are too young"

    @pytest.mark.parametrize(
        ("data", "words"), [({"message": "lost it"}, "lost it"), ({}, "RunnerLost")]
    )
    def test_writes_the_end_where_the_record_says_something_else(
        self, data: Any, words: str
    ) -> None:
        scene = Scene().working().outcome("runner_lost", **data)
        decision = seen(scene, record=a_record(), report=report("ProposalPrepared"))
        assert isinstance(decision.what, WriteReport)
        assert (decision.what.content.outcome, decision.what.content.message) == (
            "RunnerLost",
            words,
        )
        assert decision.what.content.patch == a_record().patch

    def test_says_that_a_record_is_malformed(self) -> None:
        decision = seen(record=Malformed("$.patch: longer"), report=ABSENT)
        assert isinstance(decision.what, WriteReport)
        assert "$.patch: longer" in decision.what.content.notes[0]

    def test_keeps_the_report_that_was_approved(self) -> None:
        scene = Scene().publishing().outcome("proposal_published", message="#12")
        assert isinstance(seen(scene).what, Announce)

    def test_announces_the_end_once(self) -> None:
        record = a_record("no_candidate", message="3 versions are too young")
        decision = seen(**{**LEFT, "record": record, "announced": frozenset()})
        assert isinstance(decision.what, Announce)
        assert decision.what.event.reason == "NoCandidate"
        assert decision.what.event.warning
        assert decision.message.startswith("3 versions are too young; ")

    def test_announces_the_entrys_words_where_the_record_has_none(self) -> None:
        decision = seen(**{**LEFT, "record": ABSENT, "announced": frozenset()})
        assert decision.message.startswith("nothing newer; ")

    def test_announces_the_reports_words_where_the_entry_holds_their_beginning(self) -> None:
        shown = replace(report("NoCandidate"), message="nothing newer of six dependencies")
        decision = seen(**{**LEFT, "record": ABSENT, "report": shown, "announced": frozenset()})
        assert decision.message.startswith("nothing newer of six dependencies; ")

    def test_announces_no_strangers_words(self) -> None:
        shown = replace(report("NoCandidate", owner="somebody"), message="anything")
        decision = seen(**{**LEFT, "record": ABSENT, "report": shown, "announced": frozenset()})
        assert decision.message.startswith("nothing newer; ")

    def test_announces_what_to_do_next_however_long_the_words_are(self) -> None:
        record = a_record("no_candidate", message="m" * MESSAGE_MAX)
        decision = seen(**{**LEFT, "record": record, "announced": frozenset()})
        assert decision.message.endswith(f"m; {OUTCOMES['no_candidate'].next_step}")
        assert MESSAGE_MAX == len(decision.message)

    def test_then_the_volume_goes(self) -> None:
        assert DeleteClaim("run-3f1c9a2b", "claim") == seen(**LEFT).what

    def test_then_the_pods(self) -> None:
        going = replace(CLAIM, deleted_at=at(-1))
        assert isinstance(seen(**{**LEFT, "claim": going}).what, DeletePod)

    def test_then_the_run_lease(self) -> None:
        decision = seen(**{**LEFT, "claim": ABSENT, "old_pods": ()})
        assert DeleteRunLease("run-3f1c9a2b", "lease") == decision.what

    def test_then_the_repository(self) -> None:
        decision = seen(**{**GONE, "repository": OURS})
        assert ReleaseRepositoryLease(f"team/run/{UID}", None, OURS) == decision.what

    def test_then_the_finalizer(self) -> None:
        scene = over(finalizers=["upgraderun.dev/world", "other/one"])
        assert isinstance(seen(scene, **GONE).what, RemoveFinalizer)

    def test_then_the_last_entry(self) -> None:
        decision = seen(**GONE)
        assert isinstance(decision.what, Append)
        assert [draft.kind for draft in decision.what.change.drafts] == ["finalized"]
        assert decision.what.change.leader_epoch == LEADER
        assert decision.what.change.renewed_at == at(0)
        assert decision.what.name == "finalized"

    def test_then_nothing_ever(self) -> None:
        decision = seen(over().entry("finalized", "finalized"))
        assert Pause(over=True) == decision.what


class TestPods:
    """Pods get half a minute for their own exit and are passed over when they hang."""

    def test_are_given_their_own_exit(self) -> None:
        scene = Scene().working()
        scene.clock = -20
        scene.outcome("no_candidate")
        assert Pause(20) == seen(scene, **{**LEFT, "claim": ABSENT, "old_pods": (a_pod(),)}).what

    def test_that_hang_dont_keep_the_run(self) -> None:
        hanging = a_pod("a1", deleted_at=at(-301))
        decision = seen(**{**GONE, "old_pods": (hanging,), "lease": LEASE})
        assert isinstance(decision.what, DeleteRunLease)

    def test_that_go_are_waited_for(self) -> None:
        going = a_pod("a1", deleted_at=at(-20))
        assert Pause(5.0) == seen(**{**GONE, "old_pods": (going,)}).what


class TestConflict:
    """After a conflict the volume stays as evidence."""

    def test_keeps_the_volume(self) -> None:
        scene = Scene().working()
        data = {"conflict": "workspace_foreign", "expected": "a", "observed": "b"}
        scene.outcome("workspace_conflict", **data)
        parts = {
            **GONE,
            "claim": CLAIM,
            "report": report("WorkspaceConflict"),
            "announced": frozenset({"outcome/workspace_conflict"}),
        }
        assert isinstance(seen(scene, **parts).what, Append)

    def test_that_a_pod_recorded_ends_the_run(self) -> None:
        scene = Scene().working()
        data = {"conflict": "staging_lost", "expected": "a", "observed": "b"}
        scene.entry("s1/promotion", "promotion", EntryState.CONFLICT, data)
        shown = report("WorkspaceConflict")
        decision = seen(scene, record=ABSENT, report=shown)
        assert isinstance(decision.what, Append)
        assert decision.what.change.drafts[0].data["outcome"] == "workspace_conflict"

    def test_leaves_a_strangers_volume_alone(self) -> None:
        stranger = replace(CLAIM, owner_uid="x")
        assert isinstance(seen(**{**GONE, "claim": stranger}).what, Append)


class TestRefused:
    """A run that was never admitted has nothing but its repository to give back."""

    def scene(self) -> Scene:
        return Scene().outcome("policy_refused", message="no")

    def test_asks_for_no_children(self) -> None:
        parts = {
            "record": ABSENT,
            "report": report("PolicyRefused"),
            "announced": frozenset({"outcome/policy_refused"}),
        }
        assert Look(Need.REPOSITORY) == seen(self.scene(), **parts).what
        assert isinstance(seen(self.scene(), repository=FREE, **parts).what, Append)
        decision = seen(self.scene(), repository=OURS, **parts)
        assert isinstance(decision.what, ReleaseRepositoryLease)

    def test_needs_no_repository_lease_for_an_odd_url(self) -> None:
        parts = {
            "record": ABSENT,
            "report": report("PolicyRefused"),
            "announced": frozenset({"outcome/policy_refused"}),
            "repository": ABSENT,
        }
        assert isinstance(seen(self.scene(), **parts).what, Append)


def test_a_run_with_a_report_of_its_end_is_announced_as_good_news() -> None:
    scene = Scene(publication={"enabled": False}).working().proposal()
    scene.outcome("proposal_prepared", message=f"proposal {DIGEST[:8]}")
    parts = {**LEFT, "record": a_record(), "report": report("ProposalPrepared")}
    decision = seen(scene, **{**parts, "announced": frozenset()})
    assert isinstance(decision.what, Announce)
    assert not decision.what.event.warning
