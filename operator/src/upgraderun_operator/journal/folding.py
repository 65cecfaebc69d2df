"""From the index of a journal to `RunState`: one pass over the entries, in order.

Each entry kind has one function that takes what is known so far and the next entry. Entries were
checked by `kinds.check_shape` when they were read, so required keys are there and well-formed.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from upgraderun_operator.journal.building import Building
from upgraderun_operator.journal.folding_delivery import (
    take_finalized,
    take_outcome,
    take_pull_request,
    take_push,
    take_request,
)
from upgraderun_operator.journal.folding_pods import (
    take_admit,
    take_base,
    take_conflict,
    take_end,
    take_incarnation,
    take_pod,
)
from upgraderun_operator.journal.folding_work import (
    take_baseline,
    take_candidates,
    take_profile,
    take_promotion,
    take_proposal,
    take_step,
)
from upgraderun_operator.journal.state import RunState, Stage
from upgraderun_protocol.entries import Entry, EntryState
from upgraderun_protocol.fold import Fold
from upgraderun_protocol.kinds import KINDS, Writer

_PODS: Final = frozenset({Writer.RUNNER, Writer.PUBLISHER})
_WORK: Final = frozenset(
    row.kind for row in KINDS.values() if row.writers & _PODS and row.kind != "end"
)
"""Kinds that pods word themselves: their `done` shows that a pod got further."""

_STAGES: Final = MappingProxyType(
    {
        ("workspace", EntryState.INTENT): Stage.PREPARING,
        ("profile", EntryState.INTENT): Stage.PREPARING,
        ("acquire", EntryState.INTENT): Stage.PREPARING,
        ("baseline", EntryState.INTENT): Stage.BASELINE,
        ("baseline", EntryState.DONE): Stage.SELECTING,
        ("candidates", EntryState.INTENT): Stage.SELECTING,
        ("candidates", EntryState.DONE): Stage.UPGRADING,
        ("proposal", EntryState.INTENT): Stage.FREEZING,
        ("proposal", EntryState.DONE): Stage.FREEZING,
    }
)


def run_state(fold: Fold) -> RunState:
    """Compute the state that a journal says. Pure; equal journals give equal states.

    Raises JournalBroken where an entry continues what nothing opened.
    """
    known = Building()
    for entry in fold:
        if entry.state is EntryState.CONFLICT:
            take_conflict(known, entry)
        if entry.kind in _WORK:
            _progress(known, entry)
        take = _TAKE.get(entry.kind)
        if take is not None:
            take(known, entry)
    return RunState(
        fold=fold,
        admission=known.admission,
        attempts=tuple(known.attempts.values()),
        deliveries=tuple(known.deliveries.values()),
        base=known.base,
        context=known.context,
        baseline=known.baseline,
        candidate=known.candidate,
        promoted=known.promoted,
        validation=known.validation,
        proposal=known.proposal,
        requests=tuple(known.requests.values()),
        pushes=tuple(known.pushes.values()),
        pull_requests=tuple(known.pull_requests.values()),
        outcome=known.outcome,
        conflict=known.conflict,
        finalized_at=known.finalized_at,
        stage=known.stage,
        usage=known.usage,
        attempt_losses=known.attempt_losses,
        delivery_losses=known.delivery_losses,
        gave_up_in_row=known.gave_up_in_row,
    )


def _progress(known: Building, entry: Entry) -> None:
    """A pod's own entry: stage, and the ends of counts in a row (upgrade-run.md §9.5)."""
    known.stage = _STAGES.get((entry.kind, entry.state), known.stage)
    known.gave_up_in_row = 0
    if entry.state is not EntryState.DONE:
        return
    if entry.attempt.startswith("d"):
        known.delivery_losses = replace(known.delivery_losses, in_row=0)
    else:
        known.attempt_losses = replace(known.attempt_losses, in_row=0)


_TAKE: Final[Mapping[str, Callable[[Building, Entry], None]]] = MappingProxyType(
    {
        "admit": take_admit,
        "attempt": take_pod,
        "delivery": take_pod,
        "incarnation": take_incarnation,
        "end": take_end,
        "base": take_base,
        "profile": take_profile,
        "baseline": take_baseline,
        "candidates": take_candidates,
        "step": take_step,
        "promotion": take_promotion,
        "proposal": take_proposal,
        "request": take_request,
        "push": take_push,
        "pullRequest": take_pull_request,
        "outcome": take_outcome,
        "finalized": take_finalized,
    }
)
