"""Errors of a stored journal.

JournalError
├── JournalBroken   it contradicts itself: conflict `journal_broken`, no effect follows
└── JournalTooNew   a later version wrote it: the run stalls until the operator is upgraded
"""


class JournalError(ValueError):
    """The stored journal can't be used."""


class JournalBroken(JournalError):  # noqa: N818  a state of the journal, named as in the specs
    """Chain, numbers, epochs or entries contradict each other (reliability.md I3, I4)."""


class JournalTooNew(JournalError):  # noqa: N818  as above
    """The format, or the kind of an entry, is unknown to this version."""
