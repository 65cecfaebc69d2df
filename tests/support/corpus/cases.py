"""Every case, in the order of the table, and each by its name."""

from support.corpus.declared import Case
from support.corpus.found import FOUND
from support.corpus.known import KNOWN

CASES = (*KNOWN, *FOUND)


def case(name: str) -> Case:
    """The case of that name."""
    return next(found for found in CASES if found.name == name)
