"""`identity.json`: which run, generation and nonce a workspace belongs to (upgrade-run.md §13.1).

Callers: the start of an incarnation. A workspace without the journal's nonce is lost or foreign.
"""

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from upgraderun_protocol.ids import RunUid
from upgraderun_protocol.records import RecordError, from_bytes, to_bytes
from upgraderun_runner.workspace.errors import PathRefused
from upgraderun_runner.workspace.files import read_file, replace_file
from upgraderun_runner.workspace.layout import Layout

_IDENTITY_BYTES_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class WorkspaceIdentity:
    """What `identity.json` says."""

    run_uid: RunUid
    generation: int
    nonce: str


class IdentityMatch(Enum):
    """How a workspace compares with the journal."""

    OURS = "ours"
    ABSENT = "absent"
    FOREIGN = "foreign"


def create_workspace(layout: Layout, identity: WorkspaceIdentity) -> None:
    """Make the directories of a generation and write its identity last.

    Raises FileExistsError for a generation that has a directory: a name is never used twice.
    """
    layout.directory.mkdir(mode=0o755)
    for directory in (
        layout.work,
        layout.snapshots,
        layout.staging_root,
        layout.cache_root,
        layout.spool,
    ):
        directory.mkdir(mode=0o755)
    replace_file(layout.directory, layout.identity.name, to_bytes(identity))


def compare_identity(layout: Layout, expected: WorkspaceIdentity) -> IdentityMatch:
    """Read `identity.json` and compare. What can't be read as one is foreign."""
    if not layout.directory.is_dir():
        return IdentityMatch.ABSENT
    try:
        content = read_file(layout.directory, layout.identity.name, _IDENTITY_BYTES_MAX)
        if content is None:
            return IdentityMatch.ABSENT
        found = from_bytes(WorkspaceIdentity, content)
    except (PathRefused, RecordError):
        return IdentityMatch.FOREIGN
    return IdentityMatch.OURS if found == expected else IdentityMatch.FOREIGN


def next_generation(root: Path) -> int:
    """One above every generation that has a directory on the volume; 1 on an empty one."""
    names = (name.name for name in root.iterdir())
    taken = (int(m[1]) for name in names if (m := re.fullmatch(r"ws-([1-9][0-9]{0,8})", name)))
    return max(taken, default=0) + 1
