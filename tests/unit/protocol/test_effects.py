"""The closed table of effects, and the fault points that it yields (reliability.md §5)."""

import pytest

from upgraderun_protocol.effects import (
    EFFECTS,
    EffectRow,
    FaultPoint,
    Position,
    Program,
    effects_of,
    no_fault,
    points_of,
)
from upgraderun_protocol.kinds import KINDS

ROWS = tuple(EFFECTS.values())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_names_kinds_of_the_journal_and_says_what_recovery_does(row: EffectRow) -> None:
    assert set(row.intent.split()) <= set(KINDS)
    assert set(row.record.split()) <= {*KINDS, "any"}
    assert all((row.programs, row.look, row.applied, row.not_applied))


def test_a_row_yields_the_points_that_it_has() -> None:
    assert ("push.before", "push.applied", "push.recorded", "push.reply_lost") == EFFECTS[
        "push"
    ].points
    assert ("clone.before", "clone.applied", "clone.recorded") == EFFECTS["clone"].points
    assert (Position.BEFORE, Position.APPLIED) == EFFECTS["staging"].positions


def test_every_effect_belongs_to_a_program_and_has_a_name_of_its_own() -> None:
    named = {row.name for program in Program for row in effects_of(program)}

    assert set(EFFECTS) == named
    assert len(ROWS) == len(named)


def test_both_pods_pass_the_points_of_the_wire() -> None:
    both = set(points_of(Program.RUNNER)) & set(points_of(Program.PUBLISHER))

    assert {"lease_acquire", "append_entries", "verdict"} == {
        point.partition(".")[0] for point in both
    }


def test_release_images_pass_and_hear_every_reply() -> None:
    hook: FaultPoint = no_fault

    assert not hook("push", Position.REPLY_LOST)
