"""The exclusive lock of the volume and the probe of what it can do (upgrade-run.md §13.1 step 2).

Callers: the start of an incarnation, once. The lock ends with the process.
"""

import contextlib
import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from upgraderun_runner.workspace.errors import StorageUnavailable, WorkspaceBusy

_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class WorkspaceLock:
    """Holds the lock file while entered. Raises WorkspaceBusy at once if another process has it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        descriptor = os.open(self._path, _OPEN, 0o600)
        if not _try_lock(descriptor):
            os.close(descriptor)
            raise WorkspaceBusy(f"another process holds {self._path.name}")
        self._descriptor = descriptor
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def probe_volume(root: Path, token: str) -> None:
    """Try locks, atomic rename and fsync on the volume. Raises StorageUnavailable with the reason.

    `token` makes the probe's names unique. Leaves nothing behind.
    """
    first, second = root / f".probe-{token}-1", root / f".probe-{token}-2"
    try:
        _probe_locks(first)
        _probe_rename(root, first, second)
    except OSError as error:
        raise StorageUnavailable(
            f"the workspace volume can't do what is needed: {error}"
        ) from error
    finally:
        for file in (first, second):
            with contextlib.suppress(OSError):
                file.unlink(missing_ok=True)


def _probe_locks(file: Path) -> None:
    """Two opens of one file: the second must not get the lock (true for flock on any kernel)."""
    descriptors = [os.open(file, _OPEN, 0o600), os.open(file, _OPEN, 0o600)]
    try:
        if not _try_lock(descriptors[0]):
            raise StorageUnavailable("the workspace volume gives no lock on a new file")
        if _try_lock(descriptors[1]):
            raise StorageUnavailable("the workspace volume gives one lock twice")
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _probe_rename(root: Path, first: Path, second: Path) -> None:
    for file, text in ((first, "new"), (second, "old")):
        with file.open("w") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
    os.rename(first, second)  # noqa: PTH104 - the very call whose atomicity is needed
    if first.exists() or second.read_text() != "new":
        raise StorageUnavailable("the workspace volume doesn't rename over an existing file")
    directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
