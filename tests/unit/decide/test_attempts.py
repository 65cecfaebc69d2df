"""Between two attempts: the old pod is gone, the limits hold, the repository is ours."""

from typing import Any, ClassVar

import pytest

from support.scenes import COMMIT, UID, Scene, a_pod, a_policy, at, ended
from upgraderun_operator.decide.decision import Look, Need, Pause
from upgraderun_operator.decide.effects import (
    Append,
    CreateRunnerPod,
    DeletePod,
    TakeRepositoryLease,
)
from upgraderun_operator.decide.readings import ABSENT, NOT_READ
from upgraderun_operator.decide.run import decide
from upgraderun_operator.decide.views import ChildView, Holder, RepositoryLeaseView
from upgraderun_protocol.bundle import Bundle
from upgraderun_protocol.records import from_bytes

OURS = RepositoryLeaseView("repo-1", Holder.OURS)
CLAIM = ChildView("run-3f1c9a2b", "c", UID)
LEASE = ChildView("run-3f1c9a2b", "l", UID)


def lost() -> Scene:
    return Scene().working().base().end(cause="crashed")


def test_the_old_pods_are_looked_for() -> None:
    assert Look(Need.OLD_PODS) == decide(lost().seen()).what


class TestOldPod:
    """No new pod while the old UID exists."""

    def test_that_ended_is_deleted_by_its_uid(self) -> None:
        decision = decide(lost().seen(old_pods=(a_pod("a1", **ended(1)),)))
        assert DeletePod("run-3f1c9a2b-a1", a_pod("a1").uid) == decision.what

    def test_that_runs_gets_half_a_minute_for_its_own_exit(self) -> None:
        made = Scene().working().base()
        made.clock = -20  # the next entry comes ten seconds later
        made.end(cause="verdict")
        decision = decide(made.seen(old_pods=(a_pod("a1"),)))
        assert Pause(20) == decision.what

    def test_that_still_runs_after_it_is_deleted(self) -> None:
        assert isinstance(decide(lost().seen(old_pods=(a_pod("a1"),))).what, DeletePod)

    def test_that_the_journal_doesnt_know_by_uid_is_deleted(self) -> None:
        made = Scene().admitted().planned().entry("a1/end", "end", data={"cause": "stopped"})
        assert isinstance(decide(made.seen(old_pods=(a_pod("a1"),))).what, DeletePod)

    @pytest.mark.parametrize(("age", "shown"), [(10, False), (300, True)])
    def test_that_is_being_deleted_is_waited_for(self, age: float, shown: bool) -> None:
        pod = a_pod("a1", deleted_at=at(-age))
        decision = decide(lost().seen(old_pods=(pod,)))
        assert isinstance(decision.what, Pause)
        assert shown is decision.what.shown


def test_a_run_that_waits_for_its_repository_names_the_holder() -> None:
    busy = RepositoryLeaseView("repo-1", Holder.OTHER, "other/run")
    decision = decide(lost().seen(old_pods=(), repository=busy))
    assert decision.reason == "RepositoryBusy"


def test_a_repository_that_was_given_back_is_taken_again() -> None:
    free = RepositoryLeaseView("repo-1", Holder.FREE)
    decision = decide(lost().seen(old_pods=(), repository=free))
    assert isinstance(decision.what, TakeRepositoryLease)


def test_repository_and_frozen_policy_are_read_first() -> None:
    assert Look(Need.REPOSITORY) == decide(lost().seen(old_pods=())).what
    assert Look(Need.FROZEN) == decide(lost().seen(old_pods=(), frozen=NOT_READ)).what


def test_the_next_attempt_resumes_on_the_journaled_base() -> None:
    decision = decide(lost().seen(old_pods=(), repository=OURS))
    assert isinstance(decision.what, Append)
    (intent,) = decision.what.change.drafts
    assert intent.id == "a2"
    told = from_bytes(Bundle, decision.what.blobs[0])
    assert (told.writer, told.repository.commit) == ("a2", COMMIT)


class TestAnotherPython:
    """A runner that needs another Python is followed by one in the policy's image for it."""

    IMAGES: ClassVar[dict[str, Any]] = {
        "runner": "registry.example/runner@sha256:" + "1" * 64,
        "python": [
            {"version": "3.11", "image": "registry.example/runner@sha256:" + "1" * 64},
            {"version": "3.13", "image": "registry.example/runner-313@sha256:" + "3" * 64},
        ],
    }

    def scene(self, python: str) -> Scene:
        made = Scene().working()
        made.policy = a_policy(images=self.IMAGES)
        return made.base().end(cause="yield", reason="another_python", python=python)

    def image(self, made: Scene) -> str:
        seen = made.planned("a2").seen(pod=ABSENT, claim=CLAIM, lease=LEASE)
        effect = decide(seen).what
        assert isinstance(effect, CreateRunnerPod)
        return str(effect.manifest["spec"]["containers"][0]["image"])

    def test_which_the_next_attempt_is_told(self) -> None:
        made = self.scene("3.13")
        decision = decide(made.seen(old_pods=(), repository=OURS))
        assert isinstance(decision.what, Append)
        (intent,) = decision.what.change.drafts
        assert "3.13" == from_bytes(Bundle, decision.what.blobs[0]).python
        assert "runner-313" in intent.data["image"]
        assert self.IMAGES["python"][1]["image"] == self.image(made)

    def test_which_stays_after_a_loss(self) -> None:
        made = self.scene("3.13").working("a2").end("a2", cause="crashed")
        decision = decide(made.seen(old_pods=(), repository=OURS))
        assert isinstance(decision.what, Append)
        assert "3.13" == from_bytes(Bundle, decision.what.blobs[0]).python

    def test_which_the_policy_doesnt_have_is_the_runner_image(self) -> None:
        assert self.IMAGES["runner"] == self.image(self.scene("3.12"))

    def test_which_an_attempt_that_isnt_followed_didnt_need(self) -> None:
        assert self.IMAGES["runner"] == self.image(lost())


def test_a_full_journal_waits_for_a_person() -> None:
    made = Scene().working().end(cause="yield", reason="journal_full")
    decision = decide(made.seen())
    assert decision.reason == "JournalFull"
    assert Pause(shown=True) == decision.what


@pytest.mark.parametrize(("data", "words"), [({"message": "boom"}, "boom"), ({}, "no message")])
def test_baseline_isnt_resumed(data: Any, words: str) -> None:
    made = Scene(mode="Baseline").working().end(cause="gave_up", **data)
    decision = decide(made.seen())
    assert Look(Need.RECORD) == decision.what


def test_a_suspended_baseline_goes_on() -> None:
    made = Scene(mode="Baseline").working().end(cause="yield", reason="suspended")
    assert Look(Need.OLD_PODS) == decide(made.seen()).what


class TestGivingUp:
    """Runners that never reach the operator (§5.4)."""

    def scene(self, last: float) -> Scene:
        made = Scene().admitted()
        for number in range(1, 11):
            made.planned(f"a{number}").recorded(f"a{number}")
            made.clock = last - 10 if number == 10 else made.clock
            made.end(f"a{number}", cause="gave_up")
        return made

    def test_ten_times_waits_for_a_person(self) -> None:
        decision = decide(self.scene(-60).seen(old_pods=()))
        assert decision.reason == "RunnerAPIUnreachable"
        assert Pause(1800 - 60, shown=True) == decision.what

    def test_is_tried_again_half_an_hour_later(self) -> None:
        assert Look(Need.REPOSITORY) == decide(self.scene(-1800).seen(old_pods=())).what
