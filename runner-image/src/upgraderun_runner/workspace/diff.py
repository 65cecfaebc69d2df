"""What lies between two trees: files, lines, patch (upgrade-run.md §9.2 `git_diff`, §9.4 scope).

Callers: tools, policy (projected diff), readiness, report, proposal. Attributes of the repository
have no say: a file is binary only if it holds a NUL, and its lines count all the same.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from upgraderun_protocol.ids import TreeId
from upgraderun_runner.workspace.git import Git

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
    counts = await _numstat(git, old, new, "--text")
    shown = await _numstat(git, old, new)
    fields = raw.split(b"\0")
    changes: list[FileChange] = []
    for head, name in zip(fields[0::2], fields[1::2], strict=False):
        old_mode, new_mode, old_blob, new_blob, _ = head.decode("ascii")[1:].split()
        path = name.decode("utf-8")
        added, removed = counts.get(path, (0, 0))
        changes.append(
            FileChange(
                path,
                old_mode if old_blob != _NO_OBJECT else None,
                new_mode if new_blob != _NO_OBJECT else None,
                old_blob if old_blob != _NO_OBJECT else None,
                new_blob if new_blob != _NO_OBJECT else None,
                added,
                removed,
                path not in shown and added + removed > 0,
            )
        )
    return TreeDiff(old, new, tuple(sorted(changes, key=lambda change: change.path)))


async def _numstat(git: Git, old: TreeId, new: TreeId, *options: str) -> dict[str, tuple[int, int]]:
    """Lines per path; binary files, which git counts as `-`, are left out."""
    out = await git.check(
        "diff-tree", "-r", "-z", "--numstat", *options, *_PLAIN, "--end-of-options", old, new
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
