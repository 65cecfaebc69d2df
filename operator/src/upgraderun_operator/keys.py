"""What the engine and `reconcile` say to each other: which run, and when to look again.

Callers: `main`, `engine`, `reconcile`, `handlers`. Below all, since they may not import each other.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """One run by name. Its UID is compared by whoever reads the object: names come again."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class News:
    """What a watch told about a run: a version of it or `of_pod`; None if it must be looked at.

    `is_new`: the run has no journal yet.
    """

    version: str | None = None
    is_new: bool = False


def of_pod(version: str) -> str:
    """Keep a pod's version apart from the run's: numbers of two kinds may meet (reliability.md §2)."""
    return f"pod/{version}"


@dataclass(frozen=True, slots=True)
class Wake:
    """When a key needs a worker again without any event.

    `after_seconds` None: an event or the resync will do. `backoff`: the world didn't answer, so
    use the key's own back-off. `gone`: the run is finished or deleted, forget the key.
    """

    after_seconds: float | None = None
    backoff: bool = False
    gone: bool = False
