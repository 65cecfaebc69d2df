"""The tree that `work/` would commit now (upgrade-run.md §6, "candidate tree").

Callers: policy, diff, validation, readiness. Writes objects, never an index of the repository.
"""

import asyncio
import shutil
from collections.abc import Iterable

from upgraderun_protocol.ids import TreeId
from upgraderun_runner.workspace import limits
from upgraderun_runner.workspace.errors import GitFailed, TreeRefused
from upgraderun_runner.workspace.files import read_entry, read_file
from upgraderun_runner.workspace.git import Git
from upgraderun_runner.workspace.index import REMOVED, temporary_index, write_tree
from upgraderun_runner.workspace.layout import Layout
from upgraderun_runner.workspace.paths import path_violation
from upgraderun_runner.workspace.trees import TreeEntry, list_tree, write_blob
from upgraderun_runner.workspace.walk import scan

_CANDIDATE_INDEX = "candidate.index"
_IGNORE_INDEX = "ignore.index"


async def candidate_tree(git: Git, layout: Layout, base_tree: TreeId) -> TreeId:
    """Write the tree of `work/`: a temporary index seeded from the base tree, all changes added.

    Tracked files stay tracked though an ignore rule matches them; ignored untracked files never
    enter; only the tree's own `.gitignore` files say what is ignored. No attribute, no filter.
    Raises TreeRefused for what can't be in a tree (devices, nested repositories).
    """
    base = {entry.path: entry for entry in await list_tree(git, base_tree)}
    found = (await asyncio.to_thread(scan, layout.work)).entries
    _require_paths(found)
    async with temporary_index(git, layout.scratch(_CANDIDATE_INDEX), base_tree) as index:
        untracked = found.keys() - base.keys()
        if untracked:
            out = await git.with_work_tree(layout.work).check(
                "ls-files", "--others", "--exclude-per-directory=.gitignore", "-z", index=index
            )
            untracked &= {name.decode("utf-8") for name in out.split(b"\0") if name}
        kept = {path: found[path] for path in (found.keys() & base.keys()) | untracked}
        changes = dict.fromkeys(base.keys() - found.keys(), REMOVED)
        for path, entry in kept.items():
            if base.get(path) != entry:
                await _store(git, layout, entry, base.get(path))
                changes[path] = (entry.mode, entry.blob)
        return await write_tree(git, index, changes)


def _require_paths(paths: Iterable[str]) -> None:
    refused = tuple(violation for path in paths if (violation := path_violation(path)) is not None)
    if refused:
        raise TreeRefused(refused[: limits.VIOLATIONS_MAX])


async def _store(git: Git, layout: Layout, entry: TreeEntry, base: TreeEntry | None) -> None:
    """Write the object of a changed file; what is hashed is what was compared, or nothing."""
    if base is not None and base.blob == entry.blob:
        return
    content = await asyncio.to_thread(read_entry, layout.work, entry.path)
    stored = await write_blob(git, content)
    if stored != entry.blob:
        raise GitFailed("hash-object", 0, f"{entry.path} changed while it was read")


async def ignored_paths(
    git: Git, layout: Layout, base_tree: TreeId, paths: tuple[str, ...]
) -> frozenset[str]:
    """Which of these paths are untracked in the base and ignored: refused for writes (§9.4).

    They need not exist. The `.gitignore` files of `work/` count, each for what lies beneath it.
    """
    _require_paths(paths)
    tracked = {entry.path for entry in await list_tree(git, base_tree)}
    wished = tuple(path for path in paths if path not in tracked)
    return frozenset([path for path in wished if await _is_ignored(git, layout, base_tree, path)])


async def _is_ignored(git: Git, layout: Layout, base_tree: TreeId, path: str) -> bool:
    """Ask git about an empty file of that name among copies of the ignore files above it.

    `check-ignore` would answer directly, but refuses literal pathspecs (git 2.39).
    """
    stage = layout.scratch("ignore")
    shutil.rmtree(stage, ignore_errors=True)
    (stage / path).parent.mkdir(parents=True)
    try:
        for parent in ("", *_parents(path)):
            name = f"{parent}.gitignore"
            rules = read_file(layout.work, name, limits.PROPOSAL_FILE_BYTES_MAX)
            if rules is not None:
                (stage / name).write_bytes(rules)
        (stage / path).touch()
        async with temporary_index(git, layout.scratch(_IGNORE_INDEX), base_tree) as index:
            out = await git.with_work_tree(stage).check(
                "ls-files", "--others", "--ignored", "--exclude-per-directory=.gitignore", "-z",
                index=index,
            )  # fmt: skip
    finally:
        shutil.rmtree(stage)
    return path.encode("utf-8") in out.split(b"\0")


def _parents(path: str) -> Iterable[str]:
    """`a/` and `a/b/` of `a/b/c`."""
    segments = path.split("/")[:-1]
    return ("/".join(segments[: depth + 1]) + "/" for depth in range(len(segments)))
