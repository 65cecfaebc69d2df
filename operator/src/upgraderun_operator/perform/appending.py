"""Appends to the journal: artifacts first, then one guarded write, then Events (DESIGN §6).

Free text is redacted here, right before it is stored. Callers: `perform.table`, `reconcile`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from upgraderun_operator.answers import Stored
from upgraderun_operator.decide.effects import Append
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.journal.run import RunView
from upgraderun_operator.journal.writes import (
    Broken,
    Change,
    Contended,
    Contradicted,
    Done,
    EpochFell,
    Full,
    Gone,
    GuardFailed,
    Unavailable,
    WriteResult,
)
from upgraderun_operator.model.conditions import STALLS, StalledReason
from upgraderun_operator.observe.world import World
from upgraderun_operator.perform.results import (
    Applied,
    Moved,
    NoAnswer,
    Refusal,
    Result,
    RunGone,
)
from upgraderun_operator.perform.telling import Telling
from upgraderun_protocol.entries import Draft

_TEXTS: Final = frozenset({"message", "expected", "observed", "reason"})


class Appending:
    """The only way of this side into the journal."""

    def __init__(self, world: World, telling: Telling) -> None:
        self._world = world
        self._telling = telling

    async def append(self, seen: Observation, effect: Append) -> Result:
        """Store and write. May be repeated: entries are then replays."""
        for blob in effect.blobs:
            stored = await self._world.artifacts.put_bytes(seen.view.uid, blob)
            if not isinstance(stored, Stored):
                return NoAnswer("store", str(stored))
        written = await self._world.writer.guarded_write(
            seen.view.ref, effect.guards, self._change_of(seen, effect)
        )
        return _result(written)

    async def tell(self, seen: Observation, effect: Append) -> None:
        """Tell people what stands now, best effort."""
        for event in effect.events:
            await self._telling.tell(seen.view.ref, event)

    def _change_of(self, seen: Observation, effect: Append) -> Callable[[RunView], Change]:
        """Compute the change on the version that is written; another wish drops it."""
        drafts = tuple(self._safe(draft) for draft in effect.change.drafts)
        change, generation = replace(effect.change, drafts=drafts), seen.view.generation

        def compute(view: RunView) -> Change:
            other_wish = effect.same_wish and view.generation != generation
            return Change() if other_wish else change

        return compute

    def _safe(self, draft: Draft) -> Draft:
        """Redact free texts; a mask may be longer than what it hides, so the old length holds."""
        data: Mapping[str, str] = {
            key: str(self._world.redactor.redact(value, max(16, len(value))))[: len(value)]
            if key in _TEXTS
            else value
            for key, value in draft.data.items()
        }
        return replace(draft, data=data)


def _result(written: WriteResult) -> Result:
    match written:
        case Done(view, _, wrote):
            # What wasn't written is the newest version that was seen, maybe before this pass.
            return Applied(view if wrote else None)
        case GuardFailed(failure, _):
            return Moved(f"{type(failure.guard).__name__}: {failure.found}")
        case Contended():
            return Moved("other writers were faster")
        case Full(size):
            stalled = StalledReason.JOURNAL_FULL
            words = f"{STALLS[stalled].meaning}: it would have {size} bytes"
            return Refusal(stalled.value, f"{words}; {STALLS[stalled].next_step}")
        case Contradicted(message, _):
            return Moved(message)
        case EpochFell():
            return Moved("the journal's epoch is above ours")
        case Gone():
            return RunGone()
        case Broken(message=message):
            return NoAnswer("cluster", message)
        case Unavailable(cause):
            return NoAnswer("cluster", cause)
