"""What lies between two trees: files, lines, patch (upgrade-run.md §9.2 `git_diff`, §9.4 scope).

Callers: tools, policy (projected diff), readiness, report, proposal. Attributes of the repository
have no say: a file is binary only if it holds a NUL, and its lines count all the same.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from upgraderun_protocol.ids import TreeId
from upgraderun_runner.workspace.git import Git

_HUNK = re.compile(rb"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", re.MULTILINE)
_NO_OBJECT = "0" * 40
_PLAIN = ("--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")


@dataclass(frozen=True, slots=True)
class FileChange:
    """One changed path. Absent sides have mode and blob None."""

    path: str
    old_mode: str | None
    new_mode: str | None
    old_blob: str | None
    new_blob: str | None
    added: int
    removed: int
    binary: bool


@dataclass(frozen=True, slots=True)
class TreeDiff:
    """All changes, sorted by path; no rename is guessed."""

    old: TreeId
    new: TreeId
    files: tuple[FileChange, ...]

    def without(self, paths: Iterable[str]) -> "TreeDiff":
        """The same without some paths, such as the pair."""
        left_out = frozenset(paths)
        return replace(self, files=tuple(f for f in self.files if f.path not in left_out))

    @property
    def lines(self) -> int:
        """Added and removed lines of all files: the scope of upgrade-run.md §9.4."""
        return sum(change.added + change.removed for change in self.files)


@dataclass(frozen=True, slots=True)
class Patch:
    """A unified diff as text; cut at a line when longer than the bound."""

    text: str
    truncated: bool


async def diff_trees(git: Git, old: TreeId, new: TreeId) -> TreeDiff:
    """Compare two trees."""
    raw = await git.check(
        "diff-tree", "-r", "-z", "--raw", "--no-abbrev", *_PLAIN, "--end-of-options", old, new
    )  # fmt: skip
    counts = await _numstat(git, old, new)
    fields = raw.split(b"\0")
    changes: list[FileChange] = []
    for head, name in zip(fields[0::2], fields[1::2], strict=False):
        old_mode, new_mode, old_blob, new_blob, _ = head.decode("ascii")[1:].split()
        path = name.decode("utf-8")
        binary = path not in counts
        added, removed = await _count_as_text(git, old, new, path) if binary else counts[path]
        changes.append(
            FileChange(
                path,
                old_mode if old_blob != _NO_OBJECT else None,
                new_mode if new_blob != _NO_OBJECT else None,
                old_blob if old_blob != _NO_OBJECT else None,
                new_blob if new_blob != _NO_OBJECT else None,
                added,
                removed,
                binary,
            )
        )
    return TreeDiff(old, new, tuple(sorted(changes, key=lambda change: change.path)))


async def _count_as_text(git: Git, old: TreeId, new: TreeId, path: str) -> tuple[int, int]:
    """Lines of a file that git calls binary: a NUL must not hide a change from the scope limits."""
    out = await git.check(
        "diff-tree", "-r", "-p", "--text", "--unified=0", *_PLAIN, "--end-of-options", old, new,
        "--", path,
    )  # fmt: skip
    removed, added = 0, 0
    for match in _HUNK.finditer(out):
        removed += int(match[1] or 1)
        added += int(match[2] or 1)
    return added, removed


async def _numstat(git: Git, old: TreeId, new: TreeId) -> dict[str, tuple[int, int]]:
    """Lines per path; binary files, which git counts as `-`, are left out."""
    out = await git.check(
        "diff-tree", "-r", "-z", "--numstat", *_PLAIN, "--end-of-options", old, new
    )  # fmt: skip
    counts: dict[str, tuple[int, int]] = {}
    for line in out.split(b"\0"):
        if line:
            added, removed, path = line.split(b"\t", 2)
            if added != b"-":
                counts[path.decode("utf-8")] = (int(added), int(removed))
    return counts


async def patch_of(git: Git, old: TreeId, new: TreeId, bytes_max: int) -> Patch:
    """The patch, for people and for the report; invalid UTF-8 is replaced."""
    out = await git.check(
        "diff-tree", "-r", "-p", "--full-index", *_PLAIN, "--end-of-options", old, new
    )  # fmt: skip
    if len(out) <= bytes_max:
        return Patch(out.decode("utf-8", errors="replace"), truncated=False)
    kept = out[:bytes_max]
    kept = kept[: kept.rfind(b"\n") + 1]
    return Patch(kept.decode("utf-8", errors="replace"), truncated=True)
