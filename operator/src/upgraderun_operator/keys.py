"""What the engine and `reconcile` say to each other: which run, and when to look again.

Callers: `engine`, `reconcile`, `handlers`. Below both, since neither may import the other's layer.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """One run by name. Its UID is compared by whoever reads the object: names come again."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Wake:
    """When a key needs a worker again without any event.

    `after_seconds` None: an event or the resync will do. `backoff`: the world didn't answer, so
    use the key's own back-off. `gone`: the run is finished or deleted, forget the key.
    """

    after_seconds: float | None = None
    backoff: bool = False
    gone: bool = False
