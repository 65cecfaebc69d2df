"""The closed list of guards: where each stands, how it is taken away, and which tests must tell of it.

Callers: `guardlib.cli`; the tidy test, which holds every edit against the sources and the names against
the list. Whoever moves a guard changes its edit; whoever drops one finds that a test needs it.
"""

from collections.abc import Mapping
from typing import Final

from guardlib import journal_guards, world_guards
from guardlib.removal import Guard

NAMES: Final = (
    "compare-and-set append",
    "quorum read before an effect",
    "epoch fence",
    "owner-UID match",
    "second observation",
    "stamp compare-and-set",
    "approval check at the push intent",
    "create-only push",
    "refusal of a foreign branch",
    "head check after create",
    "look-up before create",
    "journal cap",
    "repository lease",
)
"""The guards whose removal must be noticed (reliability.md §8), in the order in which they are tried."""

_KNOWN: Final[Mapping[str, Guard]] = {
    guard.name: guard for guard in (*journal_guards.GUARDS, *world_guards.GUARDS)
}

GUARDS: Final = tuple(_KNOWN[name] for name in NAMES)
