"""What each kind of conflict means, and what a person can do about it: one table.

The kinds themselves are `upgraderun_protocol.outcomes.ConflictKind`. The page `docs/reasons.md` is
generated from here, so that the label of the alert leads to an entry.
"""

from types import MappingProxyType
from typing import Final

from upgraderun_operator.model.conditions import ReasonRow
from upgraderun_protocol.outcomes import OUTCOMES, ConflictKind

_NEW_RUN: Final = "create a new run; it works on a volume of its own"
_OTHER_WRITER: Final = "find out who made it and remove or rename it, then create a new run"

CONFLICTS: Final = MappingProxyType(
    {
        ConflictKind.FOREIGN_POD: ReasonRow(
            "a pod has the name of ours and another owner or UID", _OTHER_WRITER
        ),
        ConflictKind.FOREIGN_CLAIM: ReasonRow(
            "a volume claim has the name of ours and another owner", _OTHER_WRITER
        ),
        ConflictKind.FOREIGN_LEASE: ReasonRow(
            "a Lease has the name of ours and another owner", _OTHER_WRITER
        ),
        ConflictKind.JOURNAL_BROKEN: ReasonRow(
            "entries of the journal don't hash to its head, or don't follow each other",
            "find out who wrote the status (audit log) or restored a backup; then create a new run",
        ),
        ConflictKind.WORKSPACE_LOST: ReasonRow(
            "the volume is gone after an upgrade was moved into the work tree", _NEW_RUN
        ),
        ConflictKind.WORKSPACE_FOREIGN: ReasonRow(
            "the volume says that it belongs to another run or generation",
            "find out who swapped the volume; then create a new run",
        ),
        ConflictKind.STAGING_LOST: ReasonRow(
            "one of two files was moved into the work tree and no copy of the other is left",
            _NEW_RUN,
        ),
        ConflictKind.PROMOTION_CONTRADICTED: ReasonRow(
            "manifest or lock in the work tree are neither as before nor as after the upgrade",
            "find out who wrote on the volume; then create a new run",
        ),
        ConflictKind.FILE_CONTRADICTED: ReasonRow(
            "a source file is neither as before nor as after the repair",
            "find out who wrote on the volume; then create a new run",
        ),
        ConflictKind.PROPOSAL_REF_MOVED: ReasonRow(
            "the ref of the proposal in the workspace names another commit",
            "find out who wrote on the volume; then create a new run",
        ),
        ConflictKind.RECIPE_MISMATCH: ReasonRow(
            "the journaled recipe gives another commit than the journaled one", _NEW_RUN
        ),
        ConflictKind.FENCED_WITHOUT_SUCCESSOR: ReasonRow(
            "a pod says that another process took its Lease, and the journal knows of none",
            "report it with the journal of the run",
        ),
        ConflictKind.FOREIGN_BRANCH: ReasonRow(
            "our branch existed before our push, at a commit that isn't ours",
            "look who pushed it; a new run has another branch name",
        ),
        ConflictKind.HEAD_MOVED: ReasonRow(
            "somebody pushed to our branch after we did",
            "keep that work or remove it; nothing of it was touched",
        ),
        ConflictKind.FOREIGN_PULL_REQUEST: ReasonRow(
            "a pull request from our branch lacks our marker, or goes to another base",
            "look who opened it; nothing of it was touched",
        ),
        ConflictKind.DUPLICATE_PULL_REQUEST: ReasonRow(
            "two pull requests carry the marker of this run",
            "close one of them",
        ),
    }
)
"""Meaning and next step of every kind of conflict."""


def next_step_of(outcome: str, conflict: str | None) -> str:
    """Say what a person does after an end: a kind of conflict knows it better than its outcome."""
    if conflict is None:
        return OUTCOMES[outcome].next_step
    return CONFLICTS[ConflictKind(conflict)].next_step
