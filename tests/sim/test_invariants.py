"""The invariants of a simulated world find what breaks them (reliability.md §4)."""

from typing import Any

from support.sim.apiserver import ApiServer
from support.sim.invariants import Invariants
from support.sim.loop import EPOCH

NOBODY: Any = None


def entry(seq: int, name: str, state: str = "done", epoch: int = 1, **data: str) -> dict[str, Any]:
    """One entry as stored."""
    kind = name.partition("/")[0]
    return {"seq": seq, "id": name, "kind": kind, "state": state, "epoch": epoch, "data": data}


def status(*entries: dict[str, Any], seq: int = 0, epoch: int = 1, **more: Any) -> dict[str, Any]:
    """A status with that journal."""
    head = {"seq": seq or len(entries), "epoch": epoch}
    return {"journal": {"entries": list(entries), "head": head}, **more}


def broken(*versions: dict[str, Any]) -> str:
    """What the first broken version says."""
    server = ApiServer(lambda: EPOCH, lambda: "uid")
    invariants = Invariants(server, NOBODY)
    for version in versions:
        invariants.see("MODIFIED", "upgraderuns", {"status": version})
    return "; ".join(invariants.broken)


FIRST, SECOND = entry(1, "admit"), entry(2, "a1")


def test_a_journal_that_grows_is_fine() -> None:
    assert "" == broken(status(FIRST), status(FIRST, SECOND), status(SECOND, seq=2))


def test_an_entry_never_changes() -> None:
    assert "I3: entry 1" in broken(status(FIRST), status({**FIRST, "state": "failed"}))


def test_no_entry_is_left_out() -> None:
    assert "I3: entries {2}" in broken(status(FIRST), status(FIRST, entry(3, "a2"), seq=3))


def test_numbers_never_fall() -> None:
    assert "I3: seq fell" in broken(status(FIRST, SECOND), status(FIRST))
    assert "I4: the epoch fell" in broken(status(FIRST, epoch=2), status(FIRST, epoch=1))
    older = entry(3, "a2", epoch=1)
    assert "of an older writer" in broken(status(FIRST, entry(2, "a1", epoch=2), older))


def test_an_outcome_stands() -> None:
    ended = status(FIRST, outcome="Published", exitCode=0)
    assert "I10: outcome" in broken(ended, status(FIRST, outcome="Failed", exitCode=1))
    assert "I10: exitCode" in broken(ended, status(FIRST, outcome="Published", exitCode=1))


def acts(*entries: dict[str, Any], what: str = "branch", commit: str = "c") -> str:
    """What an effect on the forge breaks after that journal."""
    server = ApiServer(lambda: EPOCH, lambda: "uid")
    invariants = Invariants(server, NOBODY)
    invariants.see("MODIFIED", "upgraderuns", {"status": status(*entries)})
    invariants.acts(what, commit, {"metadata": {"uid": "u"}})
    return "; ".join(invariants.broken)


INTENT = entry(1, "push/1", "intent", commit="c", proposal="p")


def test_nothing_reaches_the_forge_without_intent_and_approval() -> None:
    assert "I5: branch" in acts()
    assert "I5: branch" in acts(INTENT, entry(2, "push/1"))
    assert "I7: other" in acts(INTENT, commit="other")
    assert "I6: branch" in acts(INTENT)
    assert "I5: pull" in acts(INTENT, what="pull")
