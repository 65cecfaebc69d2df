"""One pass over one run: observe, decide, perform one effect, record, say when to wake (DESIGN §6).

    read the run live ──> decide ──Look──> read that part ──> decide ...
                            |──Pause──> show or clear the wait ──> Wake
                            |──effect──> (grants: read again, decide again) ──> perform ──> again

Callers: the engine's workers. A pass that finds nothing to do writes nothing. The run and everything
a rule asks for is read from the API server itself, so what is decided on is never older than the
pass; what an effect of the pass didn't touch, or wrote itself, isn't read again (`perform.keeping`).
No other module catches what an effect answers.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from upgraderun_operator import limits
from upgraderun_operator.build.events import EventText
from upgraderun_operator.decide.decision import Decision, Look, Need, Pause
from upgraderun_operator.decide.effects import Append, Effect
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.readings import NOT_READ
from upgraderun_operator.decide.run import decide
from upgraderun_operator.decide.views import PodView
from upgraderun_operator.journal.facts import Wait
from upgraderun_operator.journal.guards import LeaderEpochAtMost
from upgraderun_operator.journal.projection import phase_of
from upgraderun_operator.journal.run import RunView
from upgraderun_operator.journal.writes import Broken, Change, Gone, ReadResult, Unavailable
from upgraderun_operator.keys import Key, Wake, of_pod
from upgraderun_operator.model.objects import parse_run
from upgraderun_operator.observe.readers import Readers
from upgraderun_operator.observe.seen import SeenVersions
from upgraderun_operator.observe.world import World
from upgraderun_operator.perform.keeping import Kept, kept_after
from upgraderun_operator.perform.results import (
    Applied,
    Exists,
    Moved,
    NoAnswer,
    NotApplied,
    Refusal,
    RunGone,
)
from upgraderun_operator.perform.table import Performer
from upgraderun_operator.perform.telling import Telling
from upgraderun_protocol.ids import Epoch
from upgraderun_protocol.limits import MESSAGE_MAX

log = logging.getLogger(__name__)

Ended = Callable[[Key, str, str | None], None]
"""Called once per finalized run with its outcome and its kind of conflict: for metrics."""

Stands = Callable[[Key, str | None], None]
"""Called in each step with the phase of the run, and with None once it is gone: for metrics."""


@dataclass(frozen=True, slots=True)
class _Next:
    """How a pass goes on: with a wake-up, or (None) with another step, from what is kept."""

    wake: Wake | None
    kept: Kept | None = None


_AGAIN = _Next(None)


class Reconciler:
    """Reconciles runs, one call per key at a time. Raises bugs only; the engine counts them."""

    def __init__(
        self, world: World, performer: Performer, telling: Telling, ended: Ended, stands: Stands
    ) -> None:
        self._world = world
        self._readers = Readers(world)
        self._performer = performer
        self._telling = telling
        self._ended = ended
        self._stands = stands
        self._unanswered: dict[Key, int] = {}
        self.seen_versions = SeenVersions()

    async def reconcile(self, key: Key) -> Wake:
        """Bring the run as far as it goes without waiting, and say when to look again."""
        following = _AGAIN
        for _ in range(limits.PASS_EFFECTS_MAX):
            following = await self._step(key, following.kept)
            if following.wake is not None:
                return self._remembered(key, following.wake)
        log.info("run %s/%s: more to do than one pass may", key.namespace, key.name)
        return Wake(after_seconds=0.0)

    async def _step(self, key: Key, kept: Kept | None) -> _Next:
        epoch = self._world.leader.epoch
        if epoch is None:
            return _Next(Wake())
        started = self._world.clock.monotonic()
        if kept is not None and started - kept.since > limits.KEPT_SECONDS_MAX:
            kept = None
        view: ReadResult | None = kept.view if kept is not None else None
        if view is None:
            view = await self._world.runs.read(key.namespace, key.name)
        match view:
            case RunView() if (view.facts.leader_epoch or epoch) > epoch:
                # Another replica leads now, or somebody deleted the leader Lease and it counts
                # from 1 again: in the second case only a higher epoch can ever write to this run.
                self._world.leader.raise_above(view.facts.leader_epoch or epoch)
                return _Next(Wake(after_seconds=limits.LEADER_RENEW_SECONDS))
            case RunView():
                self.seen_versions.note(key, view.resource_version)
                self._stands(key, phase_of(view))
                first = self._first(key, view, epoch)
                # A name may belong to another run by now: what was read then isn't about this one.
                if kept is None or kept.uid != view.uid:
                    return await self._go_on(first, started)
                return await self._go_on(replace(first, **kept.readings), kept.since)
            case Gone():
                return _Next(Wake(gone=True))
            case Broken():
                await self._world.writer.mark_broken(view)
                return _Next(Wake())
            case Unavailable(cause):
                log.info("run %s/%s: %s", key.namespace, key.name, cause)
                return _Next(Wake(backoff=True))

    def _first(self, key: Key, view: RunView, epoch: Epoch) -> Observation:
        return Observation(
            view=view,
            run=parse_run(view.raw),
            leader=epoch,
            now=self._world.clock.now(),
            nonce=self._world.clock.new_id(),
            options=self._world.options(),
            announced=self._telling.told(view.uid),
            unanswered=self._unanswered.get(key, 0),
        )

    async def _go_on(self, seen: Observation, started: float) -> _Next:
        seen, decision = await self._decided(seen, started)
        what = decision.what
        if isinstance(what, Pause):
            log.debug("%s: %s", decision.rule, self._safe(decision.message))
            if isinstance(seen.pod, PodView):
                self.seen_versions.note(_key(seen), of_pod(seen.pod.version))
            return await self._pause(seen, decision, what)
        assert not isinstance(what, Look)
        if isinstance(what, Append) and what.name == "grant":
            seen, confirmed = await self._confirmed(seen, started)
            if confirmed.what != what:
                log.info("%s: the grant was decided again", decision.rule)
                return _AGAIN
        log.info("%s: %s", decision.rule, self._safe(decision.message))
        if self._world.leader.epoch != seen.leader:
            return _Next(Wake())
        return await self._performed(seen, what, started)

    async def _decided(self, seen: Observation, started: float) -> tuple[Observation, Decision]:
        """Read whatever the rules ask for, each part once."""
        for _ in range(len(Need) + 1):
            decision = decide(seen)
            if not isinstance(decision.what, Look):
                return seen, decision
            seen = await self._readers.look(seen, decision.what.need)
            age = self._world.clock.monotonic() - started
            seen = replace(seen, fresh=age <= limits.VIEW_SECONDS_MAX)
        raise AssertionError("a rule asks again for what was read")

    async def _confirmed(self, seen: Observation, started: float) -> tuple[Observation, Decision]:
        """Read run and approvals once more right before a grant, and decide again."""
        ref = seen.view.ref
        view = await self._world.runs.read(ref.namespace, ref.name)
        if not isinstance(view, RunView) or view.uid != ref.uid:
            return seen, Decision("Changed", "the run can't be read again", Pause(backoff=True))
        # Approvals and prohibitions may change at any moment: nothing older may let a push go.
        again = replace(
            seen, view=view, run=parse_run(view.raw), approvals=NOT_READ, policy=NOT_READ
        )
        return await self._decided(again, started)

    async def _pause(self, seen: Observation, decision: Decision, pause: Pause) -> _Next:
        if pause.over:
            self._telling.forget(seen.view.uid)
            return _Next(Wake(gone=True))
        moved = await self._show(seen, decision, pause)
        if moved is not None:
            return moved
        return _Next(Wake(after_seconds=pause.after_seconds, backoff=pause.backoff))

    async def _show(self, seen: Observation, decision: Decision, pause: Pause) -> _Next | None:
        """Set or remove `status.wait`: one write and one Event per transition, none per retry."""
        wait = seen.facts.wait
        if pause.shown:
            if wait is not None and wait.reason == decision.reason:
                return None
            message = str(self._world.redactor.redact(decision.message, MESSAGE_MAX))
            key = f"wait/{decision.reason}/{seen.state.seq}/{seen.stamp}"
            event = EventText(decision.reason, message, key, warning=True)
            return await self._set_wait(seen, Wait(decision.reason, message, seen.stamp), (event,))
        if wait is None or pause.backoff:
            return None
        return await self._set_wait(seen, None, ())

    async def _set_wait(
        self, seen: Observation, wait: Wait | None, events: tuple[EventText, ...]
    ) -> _Next | None:
        change = Change(wait=wait, leader_epoch=seen.leader)
        effect = Append(change, (LeaderEpochAtMost(seen.leader),), events=events)
        result = await self._performer.perform(seen, effect)
        assert not isinstance(result, Exists), "an append creates nothing"
        if not isinstance(result, Applied):
            return await self._failed(seen, result)
        if result.view is not None:
            self.seen_versions.note(_key(seen), result.view.resource_version)
        return None

    async def _performed(self, seen: Observation, effect: Effect, started: float) -> _Next:
        result = await self._performer.perform(seen, effect)
        match result:
            case Applied():
                self._count_end(seen, effect)
            case Exists(need):
                seen = await self._readers.look(seen, need)
            case _:
                return await self._failed(seen, result)
        return _Next(None, kept_after(seen, effect, result, started))

    async def _failed(self, seen: Observation, result: NotApplied) -> _Next:
        match result:
            case Moved(why):
                log.info("run %s: %s; looking again", seen.holder, why)
                return _AGAIN
            case NoAnswer(where, cause, retry_after):
                log.info("run %s: no answer from the %s: %s", seen.holder, where, cause)
                return _Next(Wake(after_seconds=retry_after, backoff=True))
            case Refusal(reason, message):
                return await self._refused(seen, reason, message)
            case RunGone():
                return _Next(Wake(gone=True))

    async def _refused(self, seen: Observation, reason: str, message: str) -> _Next:
        """Tell people, then try again after a while: what they mend is seen by trying."""
        after = limits.FORGE_RETRY_SECONDS
        pause = Pause(after, shown=True)
        await self._show(seen, Decision(reason, message, pause), pause)
        return _Next(Wake(after_seconds=after))

    def _count_end(self, seen: Observation, effect: Effect) -> None:
        """Counters move with the last entry, so each end counts once (§6.4, step 7)."""
        if not isinstance(effect, Append) or seen.state.outcome is None:
            return
        if any(draft.kind == "finalized" for draft in effect.change.drafts):
            conflict = seen.state.conflict
            kind = conflict.kind if conflict else None
            self._ended(_key(seen), seen.state.outcome.name, kind)

    def _remembered(self, key: Key, wake: Wake) -> Wake:
        """Count passes without an answer in a row: people are told from the third on."""
        if wake.gone:
            self.seen_versions.forget(key)
            self._stands(key, None)
        if wake.backoff:
            self._unanswered[key] = self._unanswered.get(key, 0) + 1
        else:
            self._unanswered.pop(key, None)
        return wake

    def _safe(self, text: str) -> str:
        return str(self._world.redactor.redact(text, MESSAGE_MAX))


def _key(seen: Observation) -> Key:
    return Key(seen.view.ref.namespace, seen.view.ref.name)
