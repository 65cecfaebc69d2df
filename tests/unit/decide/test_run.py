"""`decide` as a whole: total, deterministic, fenced; chains render the docs."""

import functools
import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from support.scenes import (
    FINE,
    FREE,
    OURS,
    UID,
    Scene,
    a_pod,
    a_record,
    an_approval,
    at,
    ended,
    report,
)
from upgraderun_operator.decide.chain import Chain, render, rule_name, sentence
from upgraderun_operator.decide.decision import Decision, Look, Pause
from upgraderun_operator.decide.effects import (
    Append,
    CreatePublisherPod,
    CreateRunLease,
    CreateRunnerPod,
)
from upgraderun_operator.decide.observation import Observation, read_time
from upgraderun_operator.decide.readings import ABSENT, Unreadable
from upgraderun_operator.decide.run import RUN, decide
from upgraderun_operator.decide.views import ChildView, RemoteView
from upgraderun_protocol.ids import Epoch

STAGES: dict[str, Callable[..., Scene]] = {
    "new": Scene,
    "planned": lambda **s: Scene(**s).admitted().planned(),
    "working": lambda **s: Scene(**s).working(),
    "lost": lambda **s: Scene(**s).working().end(cause="crashed"),
    "frozen": lambda **s: Scene(**s).frozen(),
    "asked": lambda **s: Scene(**s).frozen().asked(),
    "granted": lambda **s: Scene(**s).frozen().asked().granted().planned("d1"),
    "publishing": lambda **s: Scene(**s).publishing(),
    "stopped": lambda **s: Scene(**s).publishing().end("d1", "stopped"),
    "over": lambda **s: Scene(**s).working().outcome("no_candidate"),
    "finalized": lambda **s: (
        Scene(**s).working().outcome("no_candidate").entry("finalized", "finalized")
    ),
}
PODS = [
    ABSENT,
    Unreadable("cluster", "503"),
    a_pod("a1"),
    a_pod("d1"),
    a_pod("a1", "other"),
    a_pod("a1", **ended(1)),
    a_pod("a1", silent_at=at(-400)),
]
WORLDS: list[dict[str, Any]] = [
    {"approvals": (), "repository": FREE, "remote": RemoteView(None)},
    {"approvals": (an_approval(),), "repository": OURS, "remote": RemoteView(None)},
    {"approvals": Unreadable("cluster", "x"), "repository": Unreadable("cluster", "x")},
]


def rows() -> list[tuple[str, bool, bool, bool, bool, int, int]]:
    flags = (False, True)
    return list(
        itertools.product(STAGES, flags, flags, flags, flags, range(len(PODS)), range(len(WORLDS)))
    )


@functools.cache
def base(stage: str, cancel: bool, suspend: bool, deleting: bool) -> Observation:
    """A run in that stage with those wishes; building one costs more than asking about it."""
    scene = STAGES[stage](cancel=cancel, suspend=suspend)
    if deleting:
        scene.metadata["deletionTimestamp"] = at(-70)
    return scene.seen(policy=scene.policy)


def observe(row: tuple[str, bool, bool, bool, bool, int, int]) -> Observation:
    stage, cancel, suspend, deleting, fresh, pod, world = row
    known: dict[str, Any] = {
        "pod": PODS[pod],
        "old_pods": (),
        "claim": ABSENT,
        "lease": ABSENT,
        "record": a_record(),
        "report": report("ProposalPrepared"),
        "destination": FINE,
        "remote": Unreadable("forge", "x"),
        "fresh": fresh,
        **WORLDS[world],
    }
    return replace(base(stage, cancel, suspend, deleting), **known)


def test_every_state_has_one_answer_that_is_the_same_each_time() -> None:
    """Row by row: no state without an answer, and outside effects only where they may be."""
    answered = 0
    for row in rows():
        seen = observe(row)
        first, second = decide(seen), decide(seen)
        assert first == second, row
        assert first.rule, row
        assert first.reason, row
        assert first.message, row
        assert not isinstance(first.what, Look), row
        _outside_only_where_allowed(row, first)
        answered += 1
    assert answered == 11 * 16 * 7 * 3


def _outside_only_where_allowed(row: Any, decision: Decision) -> None:
    """A push needs freshness, an approval, and no wish against it; so does a new pod."""
    stage, cancel, suspend, deleting, fresh, _, world = row
    what = decision.what
    grants = isinstance(what, Append) and what.name == "grant"
    starts = isinstance(what, CreateRunnerPod | CreatePublisherPod)
    if grants or starts:
        assert fresh, row
        assert (cancel, suspend, deleting) == (False, False, False), row
    if grants:
        assert (stage, world) == ("asked", 1), row
    if not fresh:
        assert isinstance(what, Pause), row


class TestTakeover:
    """A new leader's epoch enters the run before it does anything to it (DESIGN §7)."""

    def scene(self, epoch: int | None) -> Scene:
        scene = Scene().admitted().planned()
        known = None if epoch is None else Epoch(epoch)
        scene.facts = replace(scene.facts, leader_epoch=known)
        return scene

    parts: ClassVar[dict[str, Any]] = {
        "pod": ABSENT,
        "claim": ChildView("run-3f1c9a2b", "c", UID),
        "lease": ABSENT,
    }

    def test_comes_before_an_effect(self) -> None:
        decision = decide(self.scene(6).seen(**self.parts))
        assert decision.reason == "RunTakenOver"
        assert isinstance(decision.what, Append)
        assert decision.what.change.drafts == ()
        assert decision.what.change.leader_epoch == 7

    @pytest.mark.parametrize("epoch", [7, None])
    def test_isnt_needed_twice(self, epoch: int | None) -> None:
        assert isinstance(decide(self.scene(epoch).seen(**self.parts)).what, CreateRunLease)

    def test_writes_nothing_where_nothing_is_to_do(self) -> None:
        assert isinstance(decide(self.scene(6).seen(pod=Unreadable("cluster", "x"))).what, Pause)


def test_every_rule_says_in_one_sentence_what_it_does() -> None:
    for chain in RUN.walk():
        for rule in chain.rules:
            assert sentence(rule).endswith("."), rule_name(rule)


def test_the_page_of_decisions_is_rendered_from_the_chains() -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "decisions.md"
    assert page.read_text(encoding="utf-8").endswith(render(RUN))


def test_a_chain_without_an_answer_gives_none() -> None:
    chain = Chain("x", "t", lambda _: True, (lambda _: None,))
    assert chain(Scene().seen()) is None


def test_a_chain_that_is_mentioned_twice_is_rendered_once() -> None:
    def rule(_seen: Any) -> Decision | None:
        """A rule."""
        return None

    def when(_seen: Any) -> bool:
        """Asked always."""
        return True

    inner = Chain("inner", "Inner?", when, (rule,))
    outer = Chain("outer", "Outer?", when, (inner, inner))
    assert render(outer).count("## inner") == 1
    assert "1. [inner](#inner): Asked always." in render(outer)


@pytest.mark.parametrize("text", ["", "x", "2026-01-01T00:00:00"])
def test_a_time_without_zone_is_none(text: str) -> None:
    assert read_time(text) is None
