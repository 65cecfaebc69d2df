"""Runs in every state that a tool can meet, as their status is projected: each outcome, each wait.

Callers: tests of what other tools make of a run (kstatus, Argo CD).
"""

from collections.abc import Mapping
from typing import Any

from support.journal_story import FINALIZED, NOW, Story, admit, ask, end, outcome
from upgraderun_operator.journal.broken import broken_status
from upgraderun_operator.journal.facts import Wait
from upgraderun_operator.journal.run import RunView
from upgraderun_operator.journal.writes import Change

Run = dict[str, Any]


def object_of(view: RunView, generation: int = 1) -> Run:
    """A run as the API server shows it."""
    return {**view.raw, "metadata": {**view.raw["metadata"], "generation": generation}}


def new() -> Run:
    """Created, and seen by no operator: what the CRD's default says."""
    return {"metadata": {"generation": 1}, "status": {"observedGeneration": 0}}


def queued() -> Run:
    """Admitted."""
    return object_of(Story().add(admit()))


def waiting(reason: str) -> Run:
    """Nothing moves, for this reason."""
    story = Story()
    story.add(admit())
    return object_of(story.add(change=Change(wait=Wait(reason, f"waits: {reason}", NOW))))


def asked() -> Run:
    """Frozen, and waits for people."""
    story = Story()
    story.run_to_frozen()
    return object_of(story.add(end("a1", "verdict"), ask()))


def suspended() -> Run:
    """Suspended before it began."""
    return object_of(Story(spec={"suspend": True}).add(admit()))


def finalizing(name: str) -> Run:
    """Ended, and not cleaned up yet."""
    story = Story()
    story.add(admit())
    return object_of(story.add(outcome(name, message=f"because of {name}")))


def ended(name: str) -> Run:
    """Ended and cleaned up."""
    story = Story()
    story.add(admit())
    return object_of(story.add(outcome(name, message=f"because of {name}"), FINALIZED))


def unreadable(*, too_new: bool) -> Run:
    """A run whose journal this operator can't use."""
    before = queued()
    status: Mapping[str, Any] | None = broken_status(
        before["status"], "gap", too_new=too_new, generation=1, now=NOW
    )
    assert status is not None
    return {**before, "status": dict(status)}
