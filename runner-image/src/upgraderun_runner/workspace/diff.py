"""What lies between two trees: files, lines, patch (upgrade-run.md §9.2 `git_diff`, §9.4 scope).

Callers: tools, policy (projected diff), readiness, report, proposal. Attributes of the repository
have no say: a file is binary only if it holds a NUL.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from upgraderun_protocol.ids import TreeId

from upgraderun_runner.workspace.git import Git


@dataclass(frozen=True, slots=True)
class FileChange:
    """One changed path. Absent sides have mode and blob None. Lines of a binary file are 0."""

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
        raise NotImplementedError

    @property
    def lines(self) -> int:
        """Added and removed lines of all files: the scope of upgrade-run.md §9.4."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Patch:
    """A unified diff as text; cut at a line when longer than the bound."""

    text: str
    truncated: bool


async def diff_trees(git: Git, old: TreeId, new: TreeId) -> TreeDiff:
    """Compare two trees."""
    raise NotImplementedError


async def patch_of(git: Git, old: TreeId, new: TreeId, bytes_max: int) -> Patch:
    """The patch, for people and for the report; invalid UTF-8 is replaced."""
    raise NotImplementedError
