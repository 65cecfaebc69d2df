"""The hook of kill tests (upgrade-run.md §14): exact point, exact occurrence, nothing else."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

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
    hook = fault.FaultHook("push.applied@2", lambda: killed.append(1))

    hook("push", "before")
    hook("push", "applied")
    assert [] == killed
    hook("push.applied")
    assert [1] == killed
    hook("push", "applied")
    assert [1] == killed


@pytest.mark.parametrize("wanted", ["push", "push.later", ".applied", "push.applied@x", ""])
def test_misspelt_points_are_refused(fault: ModuleType, wanted: str) -> None:
    with pytest.raises(fault.FaultSpecError):
        fault.FaultHook(wanted, lambda: None)
