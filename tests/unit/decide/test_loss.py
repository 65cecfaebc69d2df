"""The two-observation rule (runner-protocol.md §5): every row, and nothing outside the window."""

from dataclasses import replace
from typing import Any

import pytest

from support.scenes import DIGEST, LEADER, REPORT, UID, Scene, a_pod, at, ended, pending
from upgraderun_operator.decide.decision import Decision, Look, Need, Pause
from upgraderun_operator.decide.effects import Append, WriteReport
from upgraderun_operator.decide.readings import ABSENT, Unreadable
from upgraderun_operator.decide.run import decide
from upgraderun_operator.decide.sights import Sight, evidence, held_back_by, sight
from upgraderun_operator.decide.views import ReportView
from upgraderun_operator.journal.guards import AttemptIs, LeaderEpochAtMost, NoVerdict, StampIs
from upgraderun_operator.model.conditions import StalledReason
from upgraderun_protocol.ends import EndCause
from upgraderun_protocol.ids import PodUid, ResourceVersion, RunUid, WriterTag
from upgraderun_protocol.messages import Verdict
from upgraderun_protocol.records import to_bytes

A1 = PodUid("pod-a1")


def scene(stamp: str | None = None, **spec: Any) -> Scene:
    made = Scene(**spec).working()
    made.facts = replace(made.facts, attempt_lost_at=stamp)
    return made


def drafts(decision: Decision) -> list[tuple[str, str]]:
    assert isinstance(decision.what, Append)
    return [(draft.id, draft.data.get("cause", "")) for draft in decision.what.change.drafts]


class TestSight:
    """What one look means: the letters of `decide.sights`."""

    @pytest.mark.parametrize(
        ("pod", "expected"),
        [
            (ABSENT, Sight.LOST),
            (a_pod("a1", "other"), Sight.FOREIGN),
            (a_pod("a1", **ended(1)), Sight.EXITED),
            (a_pod("a1", phase="Failed", container=None), Sight.EXITED),
            (a_pod("a1", silent_at=at(-1)), Sight.SILENT),
            (a_pod("a1", **pending()), Sight.STARTING),
            (a_pod("a1", phase="Pending", container=None), Sight.STARTING),
            (a_pod("a1"), Sight.ALIVE),
            (a_pod("a1", deleted_at=at(-5)), Sight.ALIVE),
        ],
    )
    def test_of_every_kind(self, pod: Any, expected: Sight) -> None:
        assert expected is sight(pod, A1)


class TestEvidence:
    """Rows of runner-protocol.md §5.4."""

    @pytest.mark.parametrize(
        ("pod", "cause"),
        [
            (ABSENT, EndCause.POD_GONE),
            (a_pod("a1", "other"), EndCause.POD_GONE),
            (a_pod("a1", phase="Failed", container=None), EndCause.POD_GONE),
            (a_pod("a1", phase="Failed", container=None, disrupted=True), EndCause.DISRUPTED),
            (a_pod("a1", **ended(75)), EndCause.GAVE_UP),
            (a_pod("a1", **ended(77)), EndCause.FENCED),
            (a_pod("a1", **ended(137, "ContainerStatusUnknown")), EndCause.POD_GONE),
            (a_pod("a1", **ended(255, "Unknown")), EndCause.POD_GONE),
            (a_pod("a1", **ended(137, "OOMKilled")), EndCause.OUT_OF_MEMORY),
            (a_pod("a1", **ended(143), disrupted=True), EndCause.DISRUPTED),
            (a_pod("a1", **ended(137), deleted_at=at(-9)), EndCause.DISRUPTED),
            (a_pod("a1", **ended(137)), EndCause.CRASHED),
            (a_pod("a1", **ended(0, "Completed")), EndCause.CRASHED),
        ],
    )
    def test_of_every_row(self, pod: Any, cause: EndCause) -> None:
        assert cause is evidence(pod, A1).cause

    def test_a_container_that_never_started_points_at_the_image(self) -> None:
        found = evidence(a_pod("a1", **ended(128, "StartError")), A1)

        assert EndCause.CRASHED is found.cause
        assert "couldn't start (StartError): is it the right image?" in found.message


class TestHeldBack:
    """What keeps a pod from starting."""

    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            (pending("ImagePullBackOff", "no such image"), StalledReason.IMAGE_UNAVAILABLE),
            (
                {"container": None, "unschedulable": "0/1 nodes: Insufficient cpu"},
                StalledReason.POD_UNSCHEDULABLE,
            ),
            (
                {"container": None, "unschedulable": "pod has unbound PersistentVolumeClaims"},
                StalledReason.STORAGE_UNAVAILABLE,
            ),
            (pending("ContainerCreating"), StalledReason.STORAGE_UNAVAILABLE),
            ({"container": None}, StalledReason.STORAGE_UNAVAILABLE),
        ],
    )
    def test_by_image_node_or_volume(self, fields: Any, reason: StalledReason) -> None:
        assert reason is held_back_by(a_pod("a1", **{"phase": "Pending", **fields}))[0]


def test_the_pod_is_looked_for() -> None:
    assert Look(Need.POD) == decide(scene().seen()).what


@pytest.mark.parametrize("stamp", [None, at(-600)])
def test_an_unreadable_pod_changes_nothing(stamp: str | None) -> None:
    decision = decide(scene(stamp).seen(pod=Unreadable("cluster", "503")))
    assert Pause(backoff=True) == decision.what


@pytest.mark.parametrize(("since", "shown"), [(-299, False), (-300, True)])
def test_a_silent_node_is_no_verdict_and_is_told_after_five_minutes(
    since: float, shown: bool
) -> None:
    decision = decide(scene(at(-900)).seen(pod=a_pod("a1", silent_at=at(since))))
    assert isinstance(decision.what, Pause)
    assert shown is decision.what.shown
    assert decision.reason == "PreviousAttemptNotGone"


@pytest.mark.parametrize("pod", [ABSENT, a_pod("a1", **ended(1)), a_pod("a1", "other")])
@pytest.mark.parametrize("stamp", [None, "yesterday", "2026-01-01T12:00:00"])
def test_the_first_look_only_stamps(pod: Any, stamp: str | None) -> None:
    decision = decide(scene(stamp).seen(pod=pod))
    assert isinstance(decision.what, Append)
    assert decision.what.change.drafts == ()
    assert decision.what.change.attempt_lost_at == at(0)
    expected = (
        LeaderEpochAtMost(LEADER),
        NoVerdict(),
        AttemptIs(WriterTag("a1"), A1),
        StampIs(WriterTag("a1"), stamp),
    )
    assert expected == decision.what.guards


@pytest.mark.parametrize(("age", "left"), [(0, 90), (89, 1), (-30, 90)])
def test_inside_the_window_nothing_happens_and_the_run_wakes_at_its_end(
    age: float, left: float
) -> None:
    decision = decide(scene(at(-age)).seen(pod=ABSENT))
    assert Pause(left) == decision.what


def test_the_grace_is_the_frozen_policys() -> None:
    from support.scenes import a_policy

    made = scene(at(-30))
    made.policy = a_policy(recovery={"lossGraceSeconds": 30})
    assert [("a1/end", "pod_gone")] == drafts(decide(made.seen(pod=ABSENT)))


@pytest.mark.parametrize(
    ("pod", "cause"),
    [
        (ABSENT, "pod_gone"),
        (a_pod("a1", **ended(137, "OOMKilled")), "out_of_memory"),
        (a_pod("a1", **ended(75)), "gave_up"),
    ],
)
def test_the_second_look_ends_the_attempt(pod: Any, cause: str) -> None:
    decision = decide(scene(at(-90)).seen(pod=pod))
    assert [("a1/end", cause)] == drafts(decision)
    assert isinstance(decision.what, Append)
    assert StampIs(WriterTag("a1"), at(-90)) in decision.what.guards


@pytest.mark.parametrize("pod", [a_pod("a1"), a_pod("a1", **pending())])
def test_a_pod_that_is_back_loses_its_stamp(pod: Any) -> None:
    decision = decide(scene(at(-900)).seen(pod=pod))
    assert isinstance(decision.what, Append)
    assert decision.what.change.attempt_lost_at is None
    assert decision.reason == "LossCleared"


def test_a_publisher_has_a_stamp_of_its_own() -> None:
    made = Scene().publishing()
    decision = decide(made.seen(pod=ABSENT))
    assert isinstance(decision.what, Append)
    assert decision.what.change.delivery_lost_at == at(0)
    made.facts = replace(made.facts, delivery_lost_at=at(-91))
    assert [("d1/end", "pod_gone")] == drafts(decide(made.seen(pod=ABSENT)))


class TestStarting:
    """A pod that doesn't start is never lost."""

    @pytest.mark.parametrize(
        ("age", "reason", "shown"),
        [
            (10, "PodPending", False),
            (30, "PodPending", True),
            (299, "PodPending", True),
            (300, "ImageUnavailable", True),
        ],
    )
    def test_is_told_by_its_age(self, age: float, reason: str, shown: bool) -> None:
        pod = a_pod("a1", created_at=at(-age), **pending("ErrImagePull", "denied"))
        decision = decide(scene().seen(pod=pod))
        assert isinstance(decision.what, Pause)
        assert (reason, shown) == (decision.reason, decision.what.shown)


class TestAlive:
    """A living pod works until its deadline."""

    def test_is_left_alone_until_the_deadline(self) -> None:
        decision = decide(scene(activeDeadlineSeconds=3600).seen(pod=a_pod("a1")))
        assert isinstance(decision.what, Pause)
        assert decision.what.after_seconds == 3600 - 580

    def test_that_waits_for_the_lease_of_an_earlier_process_says_so(self) -> None:
        made = scene().end(cause="crashed").planned("a2").recorded("a2")
        decision = decide(made.seen(pod=a_pod("a2")))
        assert decision.reason == "LeaseHeld"

    @pytest.mark.parametrize("fresh", [True, False])
    def test_without_an_earlier_process_waits_for_nobody(self, fresh: bool) -> None:
        made = Scene().admitted().planned().recorded()
        if fresh:
            made = scene().end(cause="crashed").planned("a2").recorded("a2")
        tag = "a2" if fresh else "a1"
        decision = decide(made.seen(pod=a_pod(tag, created_at=at(-5 if fresh else -500))))
        assert decision.reason == "Working"


class TestConflicts:
    """Contradictions end the run; nothing is touched."""

    def ends(self, pod: Any) -> list[Any]:
        made = scene(at(-90))
        first = decide(made.seen(pod=pod, record=ABSENT, report=ABSENT))
        assert isinstance(first.what, WriteReport)
        shown = ReportView("r", UID, "ClusterConflict", None, ResourceVersion("1"))
        second = decide(made.seen(pod=pod, record=ABSENT, report=shown))
        assert isinstance(second.what, Append)
        return list(second.what.change.drafts)

    def test_another_pod_under_our_name(self) -> None:
        end, outcome = self.ends(a_pod("a1", "other"))
        assert end.data["cause"] == "pod_gone"
        assert outcome.data["conflict"] == "foreign_pod"

    def test_fenced_by_nobody(self) -> None:
        end, outcome = self.ends(a_pod("a1", **ended(77)))
        assert end.data["cause"] == "fenced"
        assert outcome.data["conflict"] == "fenced_without_successor"


class TestLimits:
    """Losses are counted in all and in a row (upgrade-run.md §9.5)."""

    def test_baseline_ends_with_the_first(self) -> None:
        made = scene(at(-90), mode="Baseline")
        decision = decide(made.seen(pod=ABSENT))
        assert Look(Need.RECORD) == decision.what

    @pytest.mark.parametrize(
        ("limits", "words"),
        [({"lostAttempts": 2}, "loss 2 of at most 2"), ({}, "in a row without progress")],
    )
    def test_end_the_run(self, limits: Any, words: str) -> None:
        made = Scene(limits=limits or {"consecutiveLostAttempts": 2}).working()
        made.end(cause="crashed").working("a2")
        made.facts = replace(made.facts, attempt_lost_at=at(-90))
        shown = ReportView("r", UID, "RunnerLost", None, ResourceVersion("1"))
        decision = decide(made.seen(pod=ABSENT, record=ABSENT, report=shown))
        assert isinstance(decision.what, Append)
        end, outcome = decision.what.change.drafts
        assert end.id == "a2/end"
        assert outcome.data["outcome"] == "runner_lost"
        assert words in outcome.data["message"]

    def test_dont_count_a_runner_that_gave_up(self) -> None:
        made = scene(at(-90), limits={"lostAttempts": 1})
        assert [("a1/end", "gave_up")] == drafts(decide(made.seen(pod=a_pod(**ended(75)))))

    def test_of_a_publisher_are_counted_apart(self) -> None:
        made = Scene(limits={"consecutiveLostAttempts": 1}).publishing()
        made.facts = replace(made.facts, delivery_lost_at=at(-90))
        assert Look(Need.RECORD) == decide(made.seen(pod=ABSENT)).what


class TestVerdict:
    """A valid verdict in the termination message is a delivered one: no window."""

    def verdict(self, **fields: Any) -> str:
        known: dict[str, Any] = {
            "version": 1,
            "verdict_id": "v1",
            "run_uid": RunUid(UID),
            "writer": "a1",
            "pod_uid": A1,
            "outcome": "no_candidate",
            "message": "nothing to do",
            "exit_code": 4,
            "report": REPORT,
        }
        return to_bytes(Verdict(**{**known, **fields})).decode()

    def test_is_claimed_at_once(self) -> None:
        pod = a_pod("a1", **ended(4, message=self.verdict()))
        decision = decide(scene().seen(pod=pod))
        assert isinstance(decision.what, Append)
        (outcome,) = decision.what.change.drafts
        assert outcome.data["outcome"] == "no_candidate"
        assert outcome.data["verdictId"] == "v1"
        assert outcome.artifacts["report"] == REPORT
        assert decision.what.name == "outcome"

    def test_of_a_frozen_proposal_ends_only_the_attempt(self) -> None:
        message = self.verdict(outcome="proposal_prepared", exit_code=0, proposal_digest=DIGEST)
        made = Scene().working().proposal()
        decision = decide(made.seen(pod=a_pod("a1", **ended(0, message=message))))
        assert [("a1/end", "verdict")] == drafts(decision)

    def test_of_an_unpublished_proposal_ends_the_run(self) -> None:
        message = self.verdict(outcome="proposal_prepared", exit_code=999, report=None)
        made = Scene(publication={"enabled": False}).working().proposal()
        decision = decide(made.seen(pod=a_pod("a1", **ended(0, message=message))))
        assert isinstance(decision.what, Append)
        assert decision.what.change.drafts[0].id == "outcome"
        assert "exitCode" not in decision.what.change.drafts[0].data

    def test_tells_a_conflict(self) -> None:
        message = self.verdict(
            outcome="workspace_conflict", conflict="workspace_foreign", expected="a", observed="b"
        )
        decision = decide(scene().seen(pod=a_pod("a1", **ended(4, message=message))))
        assert isinstance(decision.what, Append)
        assert decision.what.change.drafts[0].data["conflict"] == "workspace_foreign"

    @pytest.mark.parametrize(
        "message",
        [
            "",
            "killed",
            "x" * 4000,
            "verdict-of-another-run",
            "verdict-of-another-version",
            "verdict-without-outcome",
        ],
    )
    def test_of_anything_else_is_none(self, message: str) -> None:
        spoiled = {
            "verdict-of-another-run": self.verdict(writer="a2"),
            "verdict-of-another-version": self.verdict(version=2),
            "verdict-without-outcome": self.verdict(outcome="great"),
        }
        pod = a_pod("a1", **ended(1, message=spoiled.get(message, message)))
        assert decide(scene().seen(pod=pod)).reason == "LossObserved"

    def test_needs_a_container_that_ended(self) -> None:
        pod = a_pod("a1", phase="Failed", container=None)
        assert decide(scene().seen(pod=pod)).reason == "LossObserved"
