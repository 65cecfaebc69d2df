"""The runner's view of the journal: artifacts first, then entries; one fold kept up to date.

Callers: prelude, loop, recovery and the publisher role. Drafts that need no write of their own are
deferred and travel with the next append (DESIGN §6: outcome and next intent in one append).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.entries import Draft, Entry, EntryError, entry_from_draft, entry_from_json
from upgraderun_protocol.fold import Fold
from upgraderun_protocol.ids import Epoch, Sha256, WriterTag
from upgraderun_protocol.kinds import Writer, check_draft
from upgraderun_protocol.limits import ENTRIES_PER_APPEND_MAX
from upgraderun_protocol.records import from_bytes
from upgraderun_runner import limits
from upgraderun_runner.client.operator import AnswerUnreadable, OperatorClient

T = TypeVar("T")
Permit = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who writes: the kind of writer, the tag of its pod, the epoch of this process."""

    writer: Writer
    tag: WriterTag
    epoch: Epoch


def _silent(_line: str) -> None:
    """Log nothing."""


class Journal:
    """One writer's journal. `permit` is awaited before each effect: it blocks while the Lease lapsed.

    A crash loses deferred drafts: defer only what the next start finds again by looking, or does again
    without harm.
    """

    def __init__(
        self,
        client: OperatorClient,
        *,
        speaker: Speaker,
        now: Callable[[], datetime],
        permit: Permit,
        log: Callable[[str], None] = _silent,
    ) -> None:
        self._client = client
        self._speaker = speaker
        self._now = now
        self._permit = permit
        self._log = log
        self._fold = Fold()
        self._deferred: list[Draft] = []
        self._when_recorded: list[Callable[[], None]] = []
        self._stored: dict[Sha256, bytes | None] = {}
        self._clock: asyncio.Timeout | None = None

    @contextmanager
    def timed_by(self, clock: asyncio.Timeout) -> Iterator[None]:
        """Let this clock of a tool stand still whenever the operator is waited for, in this block.

        An operator that is away is no failure of a tool, least of all of one that has done its work.
        """
        self._clock = clock
        try:
            yield
        finally:
            self._clock = None

    @property
    def fold(self) -> Fold:
        """What the journal says, deferred drafts included: they are decided, only not yet sent."""
        if not self._deferred:
            return self._fold
        known = Fold(self._fold)
        for draft in self._deferred:
            if known.replay_of(draft) is None:
                known.add(self._place(draft, known.seq + 1))
        return known

    @property
    def tag(self) -> WriterTag:
        """For which pod this process writes: `a1` or `d2`."""
        return self._speaker.tag

    @property
    def epoch(self) -> Epoch:
        """The epoch of this process."""
        return self._speaker.epoch

    def now(self) -> str:
        """Time of day as entries spell it: RFC 3339, UTC, whole seconds."""
        return self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    async def load(self) -> None:
        """Read every entry that isn't known yet."""
        while True:
            page = await self._client.entries(self._fold.seq)
            for value in page.entries:
                self._fold.add(_entry(value))
            head = page.head
            if head is None or self._fold.seq >= head.seq or not page.entries:
                return

    def defer(self, *drafts: Draft, recorded: Callable[[], None] | None = None) -> None:
        """Queue drafts for the next append; `recorded` is called once they stand."""
        for draft in drafts:
            check_draft(draft, self._speaker.writer)
            self._place(draft, self._fold.seq + 1)
        self._deferred.extend(drafts)
        if recorded is not None:
            self._when_recorded.append(recorded)

    async def append(self, *drafts: Draft) -> None:
        """Append deferred and given drafts in one write; the fold knows them afterwards.

        Raises EntryError before anything is sent if one breaks a bound of the journal.
        """
        wanted = (*self._deferred, *drafts)
        fresh = [draft for draft in wanted if self._fold.replay_of(draft) is None]
        for draft in fresh:
            check_draft(draft, self._speaker.writer)
            self._place(draft, self._fold.seq + 1)
        with self._operators_time():
            await self._permit()
            for start in range(0, len(fresh), ENTRIES_PER_APPEND_MAX):
                await self._send(fresh[start : start + ENTRIES_PER_APPEND_MAX])
        self._deferred.clear()
        called, self._when_recorded = self._when_recorded, []
        for recorded in called:
            recorded()

    async def flush(self) -> None:
        """Append what is deferred, if anything is."""
        if self._deferred:
            await self.append()

    async def store(self, content: bytes) -> Sha256:
        """Store an artifact and return its digest, which an entry may then name."""
        digest = sha256_of(content)
        if digest not in self._stored:
            with self._operators_time():
                await self._client.put_artifact(content)
            self._remember(digest, content)
        return digest

    async def fetch(self, digest: Sha256) -> bytes:
        """Read an artifact of this run; small ones are read once per process."""
        known = self._stored.get(digest)
        if known is None:
            with self._operators_time():
                known = await self._client.get_artifact(digest)
            self._remember(digest, known)
        return known

    async def fetch_record(self, kind: type[T], digest: Sha256) -> T:
        """Read an artifact that holds a record. Raises RecordError if it is none."""
        return from_bytes(kind, await self.fetch(digest))

    @contextmanager
    def _operators_time(self) -> Iterator[None]:
        clock, loop = self._clock, asyncio.get_running_loop()
        end = None if clock is None or clock.expired() else clock.when()
        if clock is None or end is None:
            yield
            return
        left = end - loop.time()
        clock.reschedule(None)
        try:
            yield
        finally:
            clock.reschedule(loop.time() + left)

    async def _send(self, drafts: list[Draft]) -> None:
        response = await self._client.append(drafts)
        self._log("journal: " + ", ".join(f"{draft.id} {draft.state.value}" for draft in drafts))
        if [item.id for item in response.accepted] != [draft.id for draft in drafts]:
            raise AnswerUnreadable("the append was answered for other entries")
        for draft, item in zip(drafts, response.accepted, strict=True):
            if item.seq != self._fold.seq + 1:
                # Somebody else appended meanwhile: read what really stands.
                await self.load()
                return
            self._fold.add(self._place(draft, item.seq))

    def _remember(self, digest: Sha256, content: bytes) -> None:
        self._stored[digest] = content if len(content) <= limits.ARTIFACT_KEPT_BYTES else None

    def _place(self, draft: Draft, seq: int) -> Entry:
        return entry_from_draft(
            draft, seq=seq, at=self.now(), attempt=self._speaker.tag, epoch=self._speaker.epoch
        )


def _entry(value: object) -> Entry:
    if not isinstance(value, dict):
        raise AnswerUnreadable("an entry is no object")
    try:
        return entry_from_json(value)
    except EntryError as error:
        raise AnswerUnreadable(f"the journal holds an entry that isn't one: {error}") from error
