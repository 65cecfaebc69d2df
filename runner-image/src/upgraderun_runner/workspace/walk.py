"""Looking at a directory without following a link (security.md H29). Blocking; call in a thread.

Callers: `snapshot` (verification), `candidate`.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from upgraderun_runner.workspace import limits
from upgraderun_runner.workspace.errors import TreeRefused, Violation
from upgraderun_runner.workspace.paths import shown
from upgraderun_runner.workspace.trees import EXECUTABLE, LINK, REGULAR, TreeEntry

_DEEPEST_BYTES = limits.SYSTEM_PATH_BYTES_MAX - 512
"""Leaves room for the root that the path stands below."""
_CHUNK = 1 * limits.MIB


@dataclass(frozen=True, slots=True)
class Scan:
    """What lies beneath a directory: files and links as a tree would list them, and directories."""

    entries: dict[str, TreeEntry]
    directories: frozenset[str]


def scan(root: Path) -> Scan:
    """List and hash everything beneath `root`.

    Raises TreeRefused for a FIFO, socket, device, a name that isn't UTF-8, or more than twice the
    files of a tree (a bound on work, not the rule of §6).
    """
    entries: dict[str, TreeEntry] = {}
    directories: set[str] = set()
    for path, found in _names(root):
        if len(entries) + len(directories) > 2 * limits.TREE_FILES_MAX:
            raise TreeRefused((Violation("too_many_files", ".", "more than a tree may hold"),))
        if stat.S_ISDIR(found.st_mode):
            directories.add(path)
        else:
            entries[path] = _entry(root, path, found)
    return Scan(entries, frozenset(directories))


def _names(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    pending = [""]
    while pending:
        parent = pending.pop()
        with os.scandir(root / parent) as names:
            for name in names:
                path = f"{parent}{name.name}"
                _require_path(path)
                found = name.stat(follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    pending.append(f"{path}/")
                yield path, found


def _require_path(path: str) -> None:
    """Stop before a name that no tree holds, or a depth that no call could open."""
    try:
        data = path.encode("utf-8")
    except UnicodeEncodeError:
        raise TreeRefused((Violation("path", shown(path), "not UTF-8"),)) from None
    if len(data) > _DEEPEST_BYTES:
        raise TreeRefused((Violation("path", shown(path), "too deep"),))


def _entry(root: Path, path: str, found: os.stat_result) -> TreeEntry:
    if stat.S_ISLNK(found.st_mode):
        target = os.fsencode(os.readlink(root / path))  # noqa: PTH115 - bytes are what git hashes
        return TreeEntry(path, LINK, blob_id(target), len(target))
    if not stat.S_ISREG(found.st_mode):
        raise TreeRefused((Violation("mode", shown(path), "neither file, link nor directory"),))
    mode = EXECUTABLE if found.st_mode & 0o100 else REGULAR
    size, blob = _hash(root / path, found.st_size)
    return TreeEntry(path, mode, blob, size)


def blob_id(content: bytes) -> str:
    """The id git gives these bytes as a blob."""
    header = f"blob {len(content)}\0".encode("ascii")
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


def _hash(path: Path, size: int) -> tuple[int, str]:
    digest = hashlib.sha1(f"blob {size}\0".encode("ascii"), usedforsecurity=False)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise TreeRefused((Violation("mode", shown(path.name), "became a link"),)) from error
    total = 0
    with os.fdopen(descriptor, "rb") as file:
        while chunk := file.read(_CHUNK):
            total += len(chunk)
            digest.update(chunk)
    return total, digest.hexdigest()
