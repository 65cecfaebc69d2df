"""Listing a tree and the rules it must keep before a byte of it is written (upgrade-run.md §6).

Callers: `snapshot`, `candidate`, `verify`, and the profile phase, which turns `TreeRefused` into
`unsupported` with every violation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from upgraderun_protocol.ids import TreeId

from upgraderun_runner.workspace.errors import Violation
from upgraderun_runner.workspace.git import Git

Mode = Literal["100644", "100755", "120000"]


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One file or link of a tree; `blob` is its SHA-1 object id."""

    path: str
    mode: str
    blob: str
    size: int


async def list_tree(git: Git, tree: TreeId) -> tuple[TreeEntry, ...]:
    """Every file of a tree, sorted by path bytes, *checked*: raises TreeRefused with all violations.

    Codes: `mode`, `submodule`, `path`, `duplicate`, `too_many_files`, `too_large`, `file_too_large`,
    `link`.
    """
    raise NotImplementedError


def tree_violations(
    entries: tuple[TreeEntry, ...], link_targets: Mapping[str, bytes]
) -> tuple[Violation, ...]:
    """Judge a listing. Pure; `link_targets` maps the path of every link to its target."""
    raise NotImplementedError


async def read_blob(git: Git, blob: str, size_max: int) -> bytes:
    """Content of one blob. Raises GitFailed if it is missing, no blob, or larger."""
    raise NotImplementedError
