"""The one table of outcomes: how a run can end, and what that means for people (upgrade-run.md §4).

The journal says `baseline_failing`, status and conditions say `BaselineFailing`: the same list.
"""

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class RetryClass(StrEnum):
    """When the same wish may work again."""

    NOW = "now"
    LATER = "later"
    CHANGE = "change"
    HUMAN = "human"
    NO = "no"


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """One end of a run.

    `reason` is the condition's reason and `status.outcome`; `exit_code` the runner's and
    `status.exitCode`; `next_step` one sentence that tells a person what to do.
    """

    name: str
    reason: str
    exit_code: int
    retry: RetryClass
    next_step: str

    @property
    def succeeded(self) -> bool:
        """Whether the condition Succeeded becomes True."""
        return self.exit_code == 0


_ROWS: Final = (
    OutcomeRow(
        "proposal_prepared",
        "ProposalPrepared",
        0,
        RetryClass.NO,
        "read the patch in the UpgradeReport of the same name",
    ),
    OutcomeRow(
        "proposal_published", "Published", 0, RetryClass.NO, "merge the pull request or close it"
    ),
    OutcomeRow(
        "unsupported",
        "Unsupported",
        2,
        RetryClass.CHANGE,
        "change what the message names in the repository, then create a new run",
    ),
    OutcomeRow(
        "baseline_failing",
        "BaselineFailing",
        3,
        RetryClass.CHANGE,
        "fix the branch first; the findings stand in the UpgradeReport",
    ),
    OutcomeRow(
        "baseline_inconclusive",
        "BaselineInconclusive",
        3,
        RetryClass.LATER,
        "look at the named check in the UpgradeReport, then create a new run",
    ),
    OutcomeRow(
        "no_candidate",
        "NoCandidate",
        4,
        RetryClass.LATER,
        "wait, or change what keeps versions out: the UpgradeReport has the reasons per version",
    ),
    OutcomeRow(
        "acquisition_failed",
        "AcquisitionFailed",
        6,
        RetryClass.LATER,
        "mend what the message names (host, network, disk), then create a new run",
    ),
    OutcomeRow(
        "admission_refused",
        "AdmissionRefused",
        4,
        RetryClass.CHANGE,
        "loosen what holds the dependency back, or pin another version",
    ),
    OutcomeRow(
        "requires_newer_toolchain",
        "RequiresNewerToolchain",
        4,
        RetryClass.CHANGE,
        "raise requires-python in the repository or add an image to the policy",
    ),
    OutcomeRow(
        "normalization_refused",
        "NormalizationRefused",
        4,
        RetryClass.CHANGE,
        "upgrade by hand or name another version; the violations stand in the UpgradeReport",
    ),
    OutcomeRow(
        "validation_inconclusive",
        "ValidationInconclusive",
        4,
        RetryClass.LATER,
        "look at the named check in the UpgradeReport, then create a new run",
    ),
    OutcomeRow(
        "regressed",
        "Regressed",
        4,
        RetryClass.CHANGE,
        "adapt the code by hand, or add a codemod to the policy",
    ),
    OutcomeRow(
        "not_ready",
        "NotReady",
        4,
        RetryClass.CHANGE,
        "upgrade by hand, or let the policy allow it; all failures stand in the UpgradeReport",
    ),
    OutcomeRow(
        "repair_not_exercised",
        "RepairNotExercised",
        4,
        RetryClass.CHANGE,
        "add a test that runs the named lines",
    ),
    OutcomeRow(
        "blocked",
        "AgentBlocked",
        4,
        RetryClass.CHANGE,
        "upgrade by hand, or extend what the agent may do; the UpgradeReport has its steps",
    ),
    OutcomeRow(
        "approval_rejected",
        "ApprovalRejected",
        4,
        RetryClass.NO,
        "nothing is pushed; create a new run if the reason is gone",
    ),
    OutcomeRow(
        "approval_expired",
        "ApprovalExpired",
        4,
        RetryClass.NOW,
        "create the run again when somebody can decide",
    ),
    OutcomeRow(
        "cancelled",
        "Cancelled",
        4,
        RetryClass.NO,
        "nothing is removed from the forge; create a new run to ask again",
    ),
    OutcomeRow(
        "scope_exceeded",
        "ScopeExceeded",
        4,
        RetryClass.CHANGE,
        "raise the scope limits of the policy or upgrade by hand",
    ),
    OutcomeRow(
        "repair_budget_exhausted",
        "RepairBudgetExhausted",
        4,
        RetryClass.CHANGE,
        "repair by hand: the last findings stand in the UpgradeReport",
    ),
    OutcomeRow(
        "limit_exhausted",
        "LimitExhausted",
        4,
        RetryClass.CHANGE,
        "raise the named limit in run or policy, or upgrade by hand",
    ),
    OutcomeRow(
        "deadline_exceeded",
        "DeadlineExceeded",
        4,
        RetryClass.CHANGE,
        "raise activeDeadlineSeconds or make the slowest step faster",
    ),
    OutcomeRow(
        "loop_detected",
        "LoopDetected",
        4,
        RetryClass.CHANGE,
        "upgrade by hand; the UpgradeReport has the last steps",
    ),
    OutcomeRow(
        "ended_without_proposal",
        "EndedWithoutProposal",
        4,
        RetryClass.CHANGE,
        "extend the decision list or use another mode",
    ),
    OutcomeRow(
        "proposal_invalidated",
        "ProposalInvalidated",
        4,
        RetryClass.NOW,
        "create the run again on the current branch",
    ),
    OutcomeRow(
        "publication_conflict",
        "PublicationConflict",
        4,
        RetryClass.HUMAN,
        "look at the named branch or pull request; nothing of it was touched",
    ),
    OutcomeRow(
        "publication_declined",
        "ClosedByHuman",
        4,
        RetryClass.NO,
        "somebody decided against it; name this version in spec.upgrade to ask again",
    ),
    OutcomeRow(
        "workspace_conflict",
        "WorkspaceConflict",
        4,
        RetryClass.HUMAN,
        "look at the evidence; a new run is safe",
    ),
    OutcomeRow(
        "cluster_conflict",
        "ClusterConflict",
        4,
        RetryClass.HUMAN,
        "remove or rename the foreign object; a new run is safe",
    ),
    OutcomeRow(
        "destination_refused",
        "DestinationRefused",
        1,
        RetryClass.CHANGE,
        "mend the named check of repository, branch or token",
    ),
    OutcomeRow(
        "policy_refused",
        "PolicyRefused",
        1,
        RetryClass.CHANGE,
        "change the run or ask the owner of the policy",
    ),
    OutcomeRow(
        "runner_lost",
        "RunnerLost",
        1,
        RetryClass.NOW,
        "mend what ended the pod (memory, image, node), then create the run again",
    ),
    OutcomeRow(
        "failed",
        "InternalError",
        1,
        RetryClass.HUMAN,
        "report the error id with the log of that pod; a new run is safe",
    ),
)

OUTCOMES: Final = MappingProxyType({row.name: row for row in _ROWS})
"""Every outcome by its journal name."""

AWAITING_APPROVAL: Final = "awaiting_approval"
"""What the report of a live run says while people are asked; no outcome."""
AWAITING_APPROVAL_EXIT: Final = 5
YIELDED_EXIT: Final = 76
FENCED_EXIT: Final = 77
GAVE_UP_EXIT: Final = 75
INTERNAL_ERROR_EXIT: Final = 70


class ConflictKind(StrEnum):
    """What contradicted what. Closed: a metric label and a runbook entry each."""

    FOREIGN_POD = "foreign_pod"
    FOREIGN_CLAIM = "foreign_claim"
    FOREIGN_LEASE = "foreign_lease"
    JOURNAL_BROKEN = "journal_broken"
    WORKSPACE_LOST = "workspace_lost"
    WORKSPACE_FOREIGN = "workspace_foreign"
    STAGING_LOST = "staging_lost"
    PROMOTION_CONTRADICTED = "promotion_contradicted"
    FILE_CONTRADICTED = "file_contradicted"
    PROPOSAL_REF_MOVED = "proposal_ref_moved"
    RECIPE_MISMATCH = "recipe_mismatch"
    FENCED_WITHOUT_SUCCESSOR = "fenced_without_successor"
    FOREIGN_BRANCH = "foreign_branch"
    HEAD_MOVED = "head_moved"
    FOREIGN_PULL_REQUEST = "foreign_pull_request"
    DUPLICATE_PULL_REQUEST = "duplicate_pull_request"


CONFLICT_OUTCOMES: Final = MappingProxyType(
    {
        **dict.fromkeys(
            (
                ConflictKind.WORKSPACE_LOST,
                ConflictKind.WORKSPACE_FOREIGN,
                ConflictKind.STAGING_LOST,
                ConflictKind.PROMOTION_CONTRADICTED,
                ConflictKind.FILE_CONTRADICTED,
                ConflictKind.PROPOSAL_REF_MOVED,
                ConflictKind.RECIPE_MISMATCH,
            ),
            "workspace_conflict",
        ),
        **dict.fromkeys(
            (
                ConflictKind.FOREIGN_POD,
                ConflictKind.FOREIGN_CLAIM,
                ConflictKind.FOREIGN_LEASE,
                ConflictKind.JOURNAL_BROKEN,
                ConflictKind.FENCED_WITHOUT_SUCCESSOR,
            ),
            "cluster_conflict",
        ),
        **dict.fromkeys(
            (
                ConflictKind.FOREIGN_BRANCH,
                ConflictKind.HEAD_MOVED,
                ConflictKind.FOREIGN_PULL_REQUEST,
                ConflictKind.DUPLICATE_PULL_REQUEST,
            ),
            "publication_conflict",
        ),
    }
)
"""Which outcome a conflict ends in."""
