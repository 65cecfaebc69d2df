"""The exclusive lock of the volume and the probe of what it can do (upgrade-run.md §13.1 step 2).

Callers: the start of an incarnation, once. The lock ends with the process.
"""

from pathlib import Path
from types import TracebackType
from typing import Self


class WorkspaceLock:
    """Holds the lock file while entered. Raises WorkspaceBusy at once if another process has it."""

    def __init__(self, path: Path) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        raise NotImplementedError

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        raise NotImplementedError


def probe_volume(root: Path, token: str) -> None:
    """Try locks, atomic rename and fsync on the volume. Raises StorageUnavailable with the reason.

    `token` makes the probe's names unique.
    """
    raise NotImplementedError
