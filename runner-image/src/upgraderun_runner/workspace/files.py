"""Reading, hashing and replacing files beneath a root without following a link (security.md H29).

Callers: promotion, file tools, candidate. A replacement is atomic: a sibling is written, synced,
renamed, the directory synced; mode is kept. Blocking; short.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.ids import Sha256
from upgraderun_runner.workspace import limits
from upgraderun_runner.workspace.errors import PathRefused, Violation
from upgraderun_runner.workspace.paths import path_violation, shown

ABSENT: Final = "absent"
"""The hash of a file that isn't there (upgrade-run.md §8.5)."""

TEMPORARY_PREFIX: Final = ".upgraderun-tmp-"
"""Names of temporary siblings: what a sweep may remove."""

_CHUNK: Final = 1 * limits.MIB
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def read_file(root: Path, path: str, bytes_max: int) -> bytes | None:
    """Content of a regular file beneath root, or None if it is absent.

    Raises PathRefused for a link component, something not regular, a file with a second name, or
    more than `bytes_max`.
    """
    with _parent(root, path, create=False) as parent:
        if parent is None:
            return None
        name = path.rpartition("/")[2]
        try:
            descriptor = os.open(name, _FILE, dir_fd=parent)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _refused(path, "link", "a link or no file") from error
        try:
            _require_plain(descriptor, path)
            content = _read_up_to(descriptor, bytes_max + 1)
        finally:
            os.close(descriptor)
    if len(content) > bytes_max:
        raise _refused(path, "too_large", f"more than {bytes_max} bytes")
    return content


def _require_plain(descriptor: int, path: str) -> None:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise _refused(path, "not_regular", "not a regular file")
    if found.st_nlink > 1:
        raise _refused(path, "hard_link", "has a second name elsewhere")


def _read_up_to(descriptor: int, bytes_max: int) -> bytes:
    content = bytearray()
    while len(content) < bytes_max:
        chunk = os.read(descriptor, min(_CHUNK, bytes_max - len(content)))
        if not chunk:
            break
        content += chunk
    return bytes(content)


def read_entry(root: Path, path: str) -> bytes:
    """Bytes that git would hash: a file's content or a link's target. Raises PathRefused."""
    with _parent(root, path, create=False) as parent:
        if parent is not None:
            name = path.rpartition("/")[2]
            try:
                return os.fsencode(os.readlink(name, dir_fd=parent))
            except OSError as error:
                if error.errno not in {errno.EINVAL, errno.ENOENT}:
                    raise
    content = read_file(root, path, limits.TREE_FILE_BYTES_MAX)
    if content is None:
        raise _refused(path, "absent", "vanished while it was read")
    return content


def hash_file(root: Path, path: str) -> Sha256 | None:
    """SHA-256 of a regular file beneath root, or None if it is absent. Raises PathRefused."""
    content = read_file(root, path, limits.TREE_FILE_BYTES_MAX)
    return None if content is None else sha256_of(content)


def replace_file(root: Path, path: str, content: bytes) -> None:
    """Write a file wholly or not at all. A new file is 0644 and its directories are made.

    Raises PathRefused for a link component or a target neither absent nor regular.
    """
    with _parent(root, path, create=True) as parent:
        assert parent is not None
        name = path.rpartition("/")[2]
        mode = _mode_to_keep(parent, name, path)
        temporary = temporary_name(path)
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=parent)
        with os.fdopen(os.open(temporary, _NEW, 0o600, dir_fd=parent), "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        os.fsync(parent)


def temporary_name(path: str) -> str:
    """Name of the sibling that a path is written to first; the same for the same path."""
    return TEMPORARY_PREFIX + sha256_of(path.encode("utf-8"))[:16]


def _mode_to_keep(parent: int, name: str, path: str) -> int:
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return 0o644
    if not stat.S_ISREG(found.st_mode):
        raise _refused(path, "not_regular", "neither absent nor a regular file")
    return stat.S_IMODE(found.st_mode) & 0o777


@contextmanager
def _parent(root: Path, path: str, *, create: bool) -> Iterator[int | None]:
    """Open the directory of a path, component by component; None if it isn't there."""
    if refused := path_violation(path):
        raise PathRefused(refused)
    opened = [os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
    try:
        for segment in path.split("/")[:-1]:
            step = _step_into(opened[-1], segment, path, create=create)
            if step is None:
                yield None
                return
            opened.append(step)
        yield opened[-1]
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _step_into(parent: int, segment: str, path: str, *, create: bool) -> int | None:
    try:
        return os.open(segment, _DIRECTORY, dir_fd=parent)
    except FileNotFoundError:
        if not create:
            return None
    except OSError as error:
        raise _refused(path, "link", f"{shown(segment)} is a link or no directory") from error
    os.mkdir(segment, 0o755, dir_fd=parent)
    os.fsync(parent)
    return os.open(segment, _DIRECTORY, dir_fd=parent)


def _refused(path: str, code: str, detail: str) -> PathRefused:
    return PathRefused(Violation(code, shown(path), detail))
