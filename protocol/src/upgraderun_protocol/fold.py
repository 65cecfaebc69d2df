"""The index of a journal: what each id says now. State is computed from it, never stored.

Both sides fold the same way: the operator adds its projections (`upgraderun_operator.journal`),
the runner its steps (`upgraderun_runner.agent`). Entries come in order, from segments first.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from upgraderun_protocol.entries import Draft, Entry, EntryError, EntryState
from upgraderun_protocol.ids import Epoch


class ChainError(EntryError):
    """Entries don't continue each other: a gap, a falling epoch, a second outcome."""


@dataclass(frozen=True, slots=True)
class Record:
    """One id: its intent, if it had one, and its first outcome, if it has one yet."""

    intent: Entry | None
    outcome: Entry | None

    @property
    def is_open(self) -> bool:
        """Whether an intent waits for its outcome."""
        return self.outcome is None

    @property
    def is_done(self) -> bool:
        """Whether the effect is known to have happened."""
        return self.outcome is not None and self.outcome.state is EntryState.DONE


class Fold:
    """Index over a journal's entries in order of `seq`. Feed it with `add`; reading is cheap.

    Raises ChainError where entries contradict each other (reliability.md I3, I4, I10).
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries: list[Entry] = []
        self._records: dict[str, Record] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Take the next entry. Its `seq` is one above the last, its epoch not below it."""
        if entry.seq != self.seq + 1:
            raise ChainError(f"entry {entry.id!r} has seq {entry.seq}, expected {self.seq + 1}")
        if entry.epoch < self.epoch:
            raise ChainError(f"entry {entry.id!r} has epoch {entry.epoch} below {self.epoch}")
        known = self._records.get(entry.id, Record(None, None))
        if known.outcome is not None:
            raise ChainError(f"entry {entry.id!r} comes after its outcome")
        if entry.state is EntryState.INTENT:
            if known.intent is not None:
                raise ChainError(f"entry {entry.id!r} has two intents")
            self._records[entry.id] = Record(entry, None)
        else:
            self._records[entry.id] = Record(known.intent, entry)
        self._entries.append(entry)

    @property
    def seq(self) -> int:
        """Number of the last entry; 0 for none."""
        return self._entries[-1].seq if self._entries else 0

    @property
    def epoch(self) -> Epoch:
        """Epoch of the last entry; 0 for none."""
        return self._entries[-1].epoch if self._entries else Epoch(0)

    def extended(self, entries: Iterable[Entry]) -> "Fold":
        """A new index with these entries after the present ones; this one stays as it is."""
        copy = Fold()
        copy._entries = list(self._entries)
        copy._records = dict(self._records)
        for entry in entries:
            copy.add(entry)
        return copy

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def record(self, entry_id: str) -> Record | None:
        """What an id says; None if it never occurred."""
        return self._records.get(entry_id)

    def intent(self, entry_id: str) -> Entry | None:
        """Intent of an id, if it had one."""
        record = self._records.get(entry_id)
        return record.intent if record else None

    def outcome(self, entry_id: str) -> Entry | None:
        """First outcome of an id, if it has one."""
        record = self._records.get(entry_id)
        return record.outcome if record else None

    def done(self, entry_id: str) -> Entry | None:
        """Outcome of an id if that is `done`."""
        entry = self.outcome(entry_id)
        return entry if entry is not None and entry.state is EntryState.DONE else None

    def of_kind(self, kind: str) -> tuple[Entry, ...]:
        """Entries of a kind, in order."""
        return tuple(entry for entry in self._entries if entry.kind == kind)

    def last(self, kind: str, state: EntryState | None = None) -> Entry | None:
        """Last entry of a kind, in a state if one is given."""
        for entry in reversed(self._entries):
            if entry.kind == kind and (state is None or entry.state is state):
                return entry
        return None

    def open_intents(self) -> tuple[Entry, ...]:
        """Intents without outcome, in order. `commands` are settled by their step: not listed."""
        return tuple(
            record.intent
            for record in self._records.values()
            if record.outcome is None
            and record.intent is not None
            and record.intent.kind != "commands"
        )

    def replay_of(self, draft: Draft) -> Entry | None:
        """Find the entry that a draft repeats.

        Returns None if the replay key (id, state) is free. Raises ChainError if the key is taken
        by other content, or if the id has another outcome already.
        """
        record = self._records.get(draft.id)
        if record is None:
            return None
        known = record.intent if draft.state is EntryState.INTENT else record.outcome
        if known is not None:
            if known.state is draft.state and known.draft.content == draft.content:
                return known
            raise ChainError(
                f"entry {draft.id!r} {draft.state.value} contradicts entry {known.seq}"
            )
        if record.outcome is not None:
            raise ChainError(f"entry {draft.id!r} has its outcome already")
        return None
