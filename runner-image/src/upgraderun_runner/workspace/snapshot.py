"""Exact, verified copies of trees (upgrade-run.md §6): raw blobs, no filter, no attribute.

Callers: profile, staging and validation; `checkout` fills `work/` once after the clone.
"""

import asyncio
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from upgraderun_protocol.ids import TreeId
from upgraderun_runner.workspace import limits
from upgraderun_runner.workspace.errors import TreeRefused, Violation, WorkspaceContradicts
from upgraderun_runner.workspace.git import Git
from upgraderun_runner.workspace.layout import Layout
from upgraderun_runner.workspace.paths import shown
from upgraderun_runner.workspace.trees import EXECUTABLE, LINK, TreeEntry, list_tree, read_blobs
from upgraderun_runner.workspace.walk import scan

HALF_MADE_SUFFIX = ".partial"
_DIFFERENCES_MAX = 20


async def make_snapshot(git: Git, layout: Layout, tree: TreeId) -> Path:
    """The directory with an exact copy of a tree; one that is already there is verified again.

    Raises TreeRefused before a byte is written, WorkspaceContradicts if a copy differs.
    """
    entries = await list_tree(git, tree)
    final = layout.snapshot(tree)
    if not final.exists():
        partial = final.with_name(f"{tree}{HALF_MADE_SUFFIX}")
        await asyncio.to_thread(shutil.rmtree, partial, ignore_errors=True)
        partial.mkdir(parents=True)
        await _materialise(git, entries, partial)
        await _require_exact(entries, partial)
        partial.rename(final)
        return final
    await _require_exact(entries, final)
    return final


async def checkout(git: Git, layout: Layout, tree: TreeId) -> tuple[TreeEntry, ...]:
    """Fill the empty `work/` with a tree in the same way, and return its listing."""
    entries = await list_tree(git, tree)
    await _materialise(git, entries, layout.work)
    await _require_exact(entries, layout.work)
    return entries


async def verify_snapshot(entries: tuple[TreeEntry, ...], directory: Path) -> tuple[str, ...]:
    """Compare a directory with a listing: path set, sizes, blob ids, executable bits, link targets.

    Returns the differences as short texts, at most 20; empty means exact. Follows no link.
    """
    found = await asyncio.to_thread(scan, directory)
    expected = {entry.path: entry for entry in entries}
    parents = {parent for path in expected for parent in _parents(path)}
    differences = [
        *(f"missing: {path}" for path in sorted(expected.keys() - found.entries.keys())),
        *(f"foreign: {path}" for path in sorted(found.entries.keys() - expected.keys())),
        *(f"foreign directory: {path}" for path in sorted(found.directories - parents)),
        *(
            f"differs: {path}"
            for path in sorted(expected.keys() & found.entries.keys())
            if expected[path] != found.entries[path]
        ),
    ]
    return tuple(differences[:_DIFFERENCES_MAX])


async def _require_exact(entries: tuple[TreeEntry, ...], directory: Path) -> None:
    if differences := await verify_snapshot(entries, directory):
        raise WorkspaceContradicts("snapshot", f"{len(entries)} files", "; ".join(differences[:5]))


def _parents(path: str) -> Iterable[str]:
    parent = path.rpartition("/")[0]
    while parent:
        yield parent
        parent = parent.rpartition("/")[0]


async def _materialise(git: Git, entries: tuple[TreeEntry, ...], directory: Path) -> None:
    """Write files first, links last: nothing is ever written through a link."""
    room = limits.SYSTEM_PATH_BYTES_MAX - len(os.fsencode(directory)) - 2
    long = tuple(entry for entry in entries if len(entry.path.encode("utf-8")) > room)
    if long:
        refused = (Violation("path", shown(entry.path), "too long to be opened") for entry in long)
        raise TreeRefused(tuple(refused)[: limits.VIOLATIONS_MAX])
    for parent in sorted({parent for entry in entries for parent in _parents(entry.path)}):
        (directory / parent).mkdir(mode=0o755)
    files = tuple(entry for entry in entries if entry.mode != LINK)
    links = tuple(entry for entry in entries if entry.mode == LINK)
    async for entry, content in read_blobs(git, (*files, *links)):
        if entry.mode == LINK:
            os.symlink(content, os.fsencode(directory / entry.path))  # noqa: PTH211 - targets are bytes
        else:
            _write_new(directory / entry.path, content, executable=entry.mode == EXECUTABLE)


def _write_new(path: Path, content: bytes, *, executable: bool) -> None:
    mode = 0o755 if executable else 0o644
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, mode), "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(content)
