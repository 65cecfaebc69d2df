"""The hook of kill tests (upgrade-run.md §14): exact point, exact occurrence, nothing else."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from upgraderun_protocol.effects import Position

SOURCE = Path(__file__).parents[3] / "hack/fault/src/upgraderun_fault/__init__.py"


@pytest.fixture
def fault() -> ModuleType:
    spec = importlib.util.spec_from_file_location("upgraderun_fault", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_kills_at_the_wanted_occurrence_only(fault: ModuleType) -> None:
    killed: list[int] = []
    told: list[str] = []
    hook = fault.FaultHook("push.applied@2", lambda: killed.append(1), told.append)

    hook("push", "before")
    hook("push", "applied")
    assert [] == killed
    hook("push", Position.APPLIED)
    assert [1] == killed
    hook("push", "applied")
    assert [1] == killed
    assert ["upgraderun_fault: SIGKILL at push.applied@2"] == told


def test_loses_a_reply_once_and_lets_the_process_live(fault: ModuleType) -> None:
    killed: list[int] = []
    told: list[str] = []
    hook = fault.FaultHook("push.reply_lost", lambda: killed.append(1), told.append)

    answers = [hook("push", position) for position in ("applied", *["reply_lost"] * 2)]

    assert [False, True, False] == answers
    assert [] == killed
    assert ["upgraderun_fault: reply lost at push.reply_lost"] == told


def test_knows_every_position_of_the_table(fault: ModuleType) -> None:
    assert list(Position) == [*fault.KILLS, fault.REPLY_LOST]


@pytest.mark.parametrize("wanted", ["push", "push.later", ".applied", "push.applied@x", ""])
def test_misspelt_points_are_refused(fault: ModuleType, wanted: str) -> None:
    with pytest.raises(fault.FaultSpecError):
        fault.FaultHook(wanted, lambda: None, lambda _line: None)
