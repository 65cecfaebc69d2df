"""The health check for Argo CD, run by a real Lua 5.1 over runs in every state."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from lupa.lua51 import LuaRuntime

from support import runstates
from upgraderun_operator.model.conditions import STALLS, WAITS, StalledReason, WaitReason
from upgraderun_protocol.outcomes import OUTCOMES

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "argocd"
SCRIPT = (FOLDER / "health.lua").read_text(encoding="utf-8")
OPEN = ("_G", "assert", "error", "ipairs", "next", "pairs", "pcall", "select", "table", "tonumber")
"""Argo CD opens the base library, `table` and a part of `os`, unless told `useOpenLibs`."""


def health(run: runstates.Run) -> tuple[str, str]:
    """Status and message, as Argo CD reads them from what the script returns."""
    lua = LuaRuntime(unpack_returned_tuples=True)
    names = list(lua.globals())
    for name in names:
        if name not in {*OPEN, "tostring", "type", "unpack"}:
            lua.globals()[name] = None
    lua.globals()["obj"] = lua.table_from(run, recursive=True)
    found: Any = lua.execute(SCRIPT)
    return str(found["status"]), str(found["message"] or "")


@pytest.mark.parametrize("name", OUTCOMES)
def test_an_end_is_healthy_or_degraded_and_says_why(name: str) -> None:
    row = OUTCOMES[name]

    status, message = health(runstates.ended(name))

    assert ("Healthy" if row.succeeded else "Degraded") == status
    assert row.next_step in message
    assert "Progressing" == health(runstates.finalizing(name))[0]


@pytest.mark.parametrize("reason", WAITS)
def test_a_wait_progresses(reason: WaitReason) -> None:
    assert ("Progressing", f"waits: {reason}") == health(runstates.waiting(reason))


@pytest.mark.parametrize("reason", STALLS)
def test_what_needs_a_person_is_degraded(reason: StalledReason) -> None:
    assert ("Degraded", f"waits: {reason}") == health(runstates.waiting(reason))


def test_what_people_decide_is_suspended() -> None:
    status, message = health(runstates.asked())

    assert "Suspended" == status
    assert "approve or reject digest" in message
    assert ("Suspended", "set spec.suspend to false to go on") == health(runstates.suspended())


@pytest.mark.parametrize("too_new", [False, True])
def test_a_journal_that_cannot_be_used_is_degraded(*, too_new: bool) -> None:
    status, message = health(runstates.unreadable(too_new=too_new))

    assert "Degraded" == status
    assert "gap" in message


def test_what_no_operator_saw_progresses() -> None:
    changed = runstates.ended("proposal_published")
    changed["metadata"]["generation"] = 2
    bare = {"metadata": {"generation": 1}}

    assert {"Progressing"} == {health(run)[0] for run in (runstates.new(), changed, bare)}


def test_the_ready_made_config_map_holds_this_script() -> None:
    data = yaml.safe_load((FOLDER / "argocd-cm.yaml").read_text(encoding="utf-8"))["data"]

    assert {"resource.customizations.health.upgraderun.dev_UpgradeRun": SCRIPT} == data
