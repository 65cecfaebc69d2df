"""Exact, verified copies of trees (upgrade-run.md §6): raw blobs, no filter, no attribute.

Callers: profile, staging and validation; `checkout` fills `work/` once after the clone.
"""

from pathlib import Path

from upgraderun_protocol.ids import TreeId

from upgraderun_runner.workspace.git import Git
from upgraderun_runner.workspace.layout import Layout
from upgraderun_runner.workspace.trees import TreeEntry


async def make_snapshot(git: Git, layout: Layout, tree: TreeId) -> Path:
    """The directory with an exact copy of a tree; one that is already there is verified again.

    Raises TreeRefused before a byte is written, WorkspaceContradicts if an existing copy differs.
    """
    raise NotImplementedError


async def checkout(git: Git, layout: Layout, tree: TreeId) -> None:
    """Fill the empty `work/` with a tree in the same way."""
    raise NotImplementedError


async def verify_snapshot(entries: tuple[TreeEntry, ...], directory: Path) -> tuple[str, ...]:
    """Compare a directory with a listing: path set, sizes, blob ids, executable bits, link targets.

    Returns the differences as short texts, at most 20; empty means exact. Follows no link.
    """
    raise NotImplementedError
