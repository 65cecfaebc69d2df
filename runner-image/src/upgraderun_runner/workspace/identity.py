"""`identity.json`: which run, generation and nonce a workspace belongs to (upgrade-run.md §13.1).

Callers: the start of an incarnation. A workspace without the journal's nonce is lost or foreign.
"""

from dataclasses import dataclass
from enum import Enum

from upgraderun_protocol.ids import RunUid

from upgraderun_runner.workspace.layout import Layout


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
    """Make the directories of a generation and write its identity last. Refuses an existing one."""
    raise NotImplementedError


def compare_identity(layout: Layout, expected: WorkspaceIdentity) -> IdentityMatch:
    """Read `identity.json` and compare. Unreadable JSON is foreign."""
    raise NotImplementedError


def next_generation(layout: Layout) -> int:
    """One above every generation that has a directory on the volume; 1 on an empty one."""
    raise NotImplementedError
