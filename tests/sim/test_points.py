"""`patch-safe` in the simulated world: undisturbed, struck at each point, struck at the same one twice (Q3).

The same hook, programs and table as the kill tests of processes, on virtual time. Every ordered pair is
`hack/crash-pairs`; here stands, beside each single point, the pair that repeats its own strike.
"""

import functools
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from support.crash import KILLS
from support.sim.pairs import NOT_PASSED, Undisturbed, seconds_of
from support.sim.pairs import undisturbed as played
from support.sim.strikes import Strike
from support.sim.world import play
from upgraderun_protocol.effects import Program, points_of

POINTS = [
    Strike(program, point, KILLS[program][point].occurrence)
    for program in Program
    for point in points_of(program)
    if point.rpartition(".")[0] not in NOT_PASSED
]
HALF_AN_HOUR = 1800.0


@functools.cache
def undisturbed() -> Undisturbed:
    """The history that others are compared with."""
    return played()


def test_an_undisturbed_run_is_published_once() -> None:
    end = undisturbed().history.end

    assert ("Published", 0, 1, 1) == (end.outcome, end.exit_code, end.pushes, end.creates)
    assert 1 == len(end.branches) == len(end.pulls)
    assert ("UpgradeReport",) == end.left
    assert () == end.finalizers


def test_every_point_is_passed_but_those_of_other_scenarios() -> None:
    assert set(POINTS) == set(undisturbed().points)
    assert set(NOT_PASSED) == {point.rpartition(".")[0] for _, point in undisturbed().not_passed}


def test_the_same_strikes_give_the_same_history() -> None:
    strikes = (Strike(Program.RUNNER, "promotion_first.applied"),)

    first, second = play(strikes), play(strikes)

    assert first == second


def test_a_run_that_is_over_stays_as_it_is() -> None:
    """I15: for half an hour nothing is written, but the renewals of the leader's Lease."""
    assert {} == play(beyond=HALF_AN_HOUR).quiet


@pytest.mark.slow
@pytest.mark.parametrize("strike", POINTS, ids=map(str, POINTS))
def test_one_strike_changes_nothing_in_the_end(strike: Strike) -> None:
    known = undisturbed()
    single = play((strike,))

    assert [] == known.problems(single, (strike,))
    again = Strike(strike.program, strike.point)
    if again in seconds_of(single):
        strikes = (strike, again)
        assert [] == known.problems(play(strikes), strikes)


def test_a_history_that_did_otherwise_is_told() -> None:
    """What is compared: hits, the end, entries, objects, and whether it stays."""
    known = undisturbed()
    strike = Strike(Program.OPERATOR, "pvc.before")
    single = play((strike,))

    def told(**changed: Any) -> str:

        return "; ".join(known.problems(replace(single, **changed), (strike,)))

    assert "hit []" in told(hit=())
    assert "it doesn't stay" in told(quiet={"ADDED pods": 1})
    assert "missing: outcome done" in told(
        entries=tuple(e for e in single.entries if e.kind != "outcome")
    )
    assert "repeated without a declaration" in told(entries=(*single.entries, single.entries[-3]))
    assert "more {'ADDED upgradereports': 1}" in told(
        written=Counter(single.written) + Counter({"ADDED upgradereports": 1})
    )
