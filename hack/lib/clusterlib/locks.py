"""One program at a time: a file lock that ends with its process.

Callers: `whole` and `images`. Tests, shells and CI may all ask for the same cluster or image at once.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clusterlib.binaries import say


@contextmanager
def exclusive(path: Path, what: str) -> Iterator[None]:
    """Hold the lock; say what is waited for if another process has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting: another process {what}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
