"""`UpgradeApproval.spec`: one answer to one digest of one run (upgrade-run.md §11).

A kind of its own, so that RBAC can give it to other people than runs. Callers: `objects`,
`observe`.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from upgraderun_operator.model.base import ApiModel, Name, Sha256Text, Uid, UserName


class ApprovalKind(StrEnum):
    """What is approved."""

    PUBLICATION = "Publication"
    SCOPE_EXPANSION = "ScopeExpansion"
    UNEXERCISED_REPAIR = "UnexercisedRepair"


class ApprovalDecision(StrEnum):
    """The answer."""

    APPROVE = "Approve"
    REJECT = "Reject"


class RunReference(ApiModel):
    """The run that is answered, in the same namespace."""

    name: Name
    """Name of the run."""

    uid: Uid
    """UID of the run: a run that is created again is another one."""


class UpgradeApprovalSpec(ApiModel):
    """The answer. Immutable; to take it back, delete the object before the push."""

    run_ref: RunReference
    """The run that is answered."""

    kind: ApprovalKind = ApprovalKind.PUBLICATION
    """What is approved, as `status.pendingApproval.kind` says. Publication: the proposal goes out.
    ScopeExpansion: the repair may grow up to the policy's hard scope. UnexercisedRepair: a proposal
    may hold repaired lines that no test runs."""

    digest: Sha256Text
    """The digest that the run asks about: `status.pendingApproval.digest`."""

    decision: ApprovalDecision
    """Approve or Reject. One Reject ends the run."""

    approver: UserName
    """Who answers: exactly the user name of whoever creates this object."""

    comment: Annotated[str, Field(max_length=1000)] | None = None
    """A remark for the record."""
