"""A temporary index (upgrade-run.md §6): seeded from a tree, never the repository's own.

Callers: `candidate`, `verify`.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from upgraderun_protocol.ids import TreeId
from upgraderun_runner.workspace.git import Git

REMOVED: Final = ("0", "0" * 40)
"""What a change map says of a path that leaves the tree."""


@asynccontextmanager
async def temporary_index(git: Git, path: Path, tree: TreeId) -> AsyncIterator[Path]:
    """An index file that holds `tree`, removed at the end; a left-over one is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove(path)
    try:
        await git.check("read-tree", "--end-of-options", tree, index=path)
        yield path
    finally:
        _remove(path)


def _remove(path: Path) -> None:
    for file in (path, path.with_name(path.name + ".lock")):
        file.unlink(missing_ok=True)


async def write_tree(git: Git, index: Path, changes: Mapping[str, tuple[str, str]]) -> TreeId:
    """The tree of an index after changes: path to (mode, blob), or `REMOVED`."""
    ordered = sorted(changes.items(), key=lambda item: (item[1] != REMOVED, item[0]))
    lines = b"".join(f"{mode} {blob}\t{path}\0".encode() for path, (mode, blob) in ordered)
    if lines:
        await git.check("update-index", "-z", "--index-info", stdin=lines, index=index)
    out = await git.check("write-tree", index=index)
    return TreeId(out.decode("ascii").strip())
