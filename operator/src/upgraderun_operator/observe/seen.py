"""Which versions of a run and its pod the passes of this process have gone on from.

A watch tells of our own writes, too: what a pass wrote or read itself is no news, and needs no
second pass. Callers: `reconcile` notes, `main` asks when a watch told something. Equality only:
versions aren't ordered here (reliability.md §2).
"""

from collections import deque
from typing import Final

from upgraderun_operator.keys import Key

VERSIONS_MAX: Final = 12


class SeenVersions:
    """The newest few versions per key; what fell out is news again, which costs a look."""

    def __init__(self) -> None:
        self._versions: dict[Key, deque[str]] = {}

    def note(self, key: Key, version: str) -> None:
        """A pass in hand goes on from this version."""
        known = self._versions.setdefault(key, deque(maxlen=VERSIONS_MAX))
        if version not in known:
            known.append(version)

    def has(self, key: Key, version: str | None) -> bool:
        """Whether a pass went on from exactly this version."""
        return version in self._versions.get(key, ())

    def forget(self, key: Key) -> None:
        """Drop a run that is over."""
        self._versions.pop(key, None)
