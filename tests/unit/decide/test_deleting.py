"""Somebody deletes the run: no new effect, our finalizer goes within a minute."""

from typing import Any

import pytest

from support.scenes import FROZEN_COMMIT, Scene, a_pod, at
from upgraderun_operator.decide.decision import Decision, Look, Need, Pause
from upgraderun_operator.decide.effects import Announce, DeletePod, RemoveFinalizer
from upgraderun_operator.decide.readings import ABSENT, Unreadable
from upgraderun_operator.decide.run import decide
from upgraderun_operator.decide.views import DestinationRefused, FoundPull, RemoteView

TOLD = frozenset({"deleted"})


def deleted(scene: Scene, age: float = 5, **parts: Any) -> Decision:
    scene.metadata["deletionTimestamp"] = at(-age)
    scene.metadata["finalizers"] = ["upgraderun.dev/world"]
    return decide(scene.seen(**parts))


def stopped() -> Scene:
    return Scene().publishing().end("d1", "stopped")


def test_a_run_without_our_finalizer_is_left_alone() -> None:
    scene = Scene().working()
    scene.metadata["deletionTimestamp"] = at(-5)
    assert Pause(over=True) == decide(scene.seen()).what


class TestPublisher:
    """It may be at work: it is stopped and given a minute to be gone."""

    def test_is_looked_for(self) -> None:
        assert Look(Need.POD) == deleted(Scene().publishing()).what

    def test_is_deleted(self) -> None:
        decision = deleted(Scene().publishing(), pod=a_pod("d1"))
        assert isinstance(decision.what, DeletePod)

    @pytest.mark.parametrize("pod", [a_pod("d1", deleted_at=at(-5)), Unreadable("cluster", "503")])
    def test_is_waited_for(self, pod: Any) -> None:
        assert Pause(5.0) == deleted(Scene().publishing(), pod=pod).what

    @pytest.mark.parametrize("pod", [ABSENT, a_pod("d1", "other"), a_pod("d1", owner_uid=None)])
    def test_that_is_gone_lets_the_rest_go_on(self, pod: Any) -> None:
        assert Look(Need.REMOTE) == deleted(Scene().publishing(), pod=pod).what

    def test_is_waited_for_at_most_a_minute(self) -> None:
        assert Look(Need.REMOTE) == deleted(Scene().publishing(), age=60).what


class TestRemote:
    """What stays there is read once and told."""

    def test_is_asked_for_a_minute_at_most(self) -> None:
        silent = Unreadable("forge", "timeout")
        assert Pause(5.0) == deleted(stopped(), remote=silent).what
        decision = deleted(stopped(), age=61, remote=silent)
        assert isinstance(decision.what, Announce)
        assert "may exist and stays" in decision.message

    @pytest.mark.parametrize(
        ("remote", "words"),
        [
            (RemoteView(None), "no branch upgraderun/lib-1.1-3f1c9a2b"),
            (RemoteView(FROZEN_COMMIT), f"stays at {FROZEN_COMMIT}"),
            (
                RemoteView(FROZEN_COMMIT, (FoundPull(3, "open", FROZEN_COMMIT, ours=True),)),
                "pull request 3 (open)",
            ),
            (DestinationRefused("401"), "may exist"),
        ],
    )
    def test_is_told(self, remote: Any, words: str) -> None:
        decision = deleted(stopped(), remote=remote)
        assert isinstance(decision.what, Announce)
        assert words in decision.message

    def test_has_nothing_of_a_run_that_never_pushed(self) -> None:
        decision = deleted(Scene().frozen())
        assert "nothing was pushed" in decision.message


def test_the_object_is_let_go_at_last() -> None:
    decision = deleted(stopped(), remote=RemoteView(None), announced=TOLD)
    assert isinstance(decision.what, RemoveFinalizer)


def test_an_earlier_leader_doesnt_keep_the_object() -> None:
    from dataclasses import replace

    from upgraderun_protocol.ids import Epoch

    scene = stopped()
    scene.facts = replace(scene.facts, leader_epoch=Epoch(1))
    decision = deleted(scene, remote=RemoteView(None), announced=TOLD)
    assert isinstance(decision.what, RemoveFinalizer)
