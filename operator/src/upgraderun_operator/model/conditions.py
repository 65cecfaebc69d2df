"""Condition types and every reason that a condition or wait may carry. One table, no logic.

The ends of a run stand in `upgraderun_protocol.outcomes`; here is what a live run says. The page
`docs/reasons.md` is generated from both. Callers: projections, `decide`, metrics.
"""

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from upgraderun_protocol.outcomes import OUTCOMES


class ConditionStatus(StrEnum):
    """Unknown is an answer: neither true nor false yet."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class ConditionType(StrEnum):
    """Conditions of a run (DESIGN §3), in the order in which they are written."""

    SUCCEEDED = "Succeeded"
    RECONCILING = "Reconciling"
    BASELINE_VALIDATED = "BaselineValidated"
    UPGRADE_SELECTED = "UpgradeSelected"
    VALIDATED = "Validated"
    PROPOSAL_FROZEN = "ProposalFrozen"
    APPROVED = "Approved"
    PUBLISHED = "Published"
    SUSPENDED = "Suspended"
    STALLED = "Stalled"
    CONFLICT = "Conflict"
    NOT_ISOLATED = "NotIsolated"


class WaitReason(StrEnum):
    """Why nothing moves for now; passes by itself."""

    REPOSITORY_BUSY = "RepositoryBusy"
    LEASE_HELD = "LeaseHeld"
    REMOTE_UNREACHABLE = "RemoteUnreachable"
    FORGE_LIMITED = "ForgeLimited"
    ARTIFACT_STORE_UNREACHABLE = "ArtifactStoreUnreachable"
    POD_PENDING = "PodPending"


class StalledReason(StrEnum):
    """Why nothing moves until a person acts."""

    PREVIOUS_ATTEMPT_NOT_GONE = "PreviousAttemptNotGone"
    POD_UNSCHEDULABLE = "PodUnschedulable"
    IMAGE_UNAVAILABLE = "ImageUnavailable"
    STORAGE_UNAVAILABLE = "StorageUnavailable"
    FORGE_DENIED = "ForgeDenied"
    REQUESTER_UNKNOWN = "RequesterUnknown"
    JOURNAL_FULL = "JournalFull"
    JOURNAL_TOO_NEW = "JournalTooNew"
    RUNNER_API_UNREACHABLE = "RunnerAPIUnreachable"


class LiveReason(StrEnum):
    """Reasons of conditions while a run goes its way."""

    QUEUED = "Queued"
    PROGRESSING = "Progressing"
    AWAITING_APPROVAL = "AwaitingApproval"
    FINALIZING = "Finalizing"
    CANCEL_TOO_LATE = "CancelTooLate"
    SUSPENDED = "SuspendRequested"
    NOT_SUSPENDED = "NotSuspended"
    MOVING = "Moving"
    CONSISTENT = "Consistent"
    NOT_YET = "NotYet"
    NOT_REACHED = "NotReached"
    NOT_WANTED = "NotWanted"
    BASELINE_PASSED = "BaselinePassed"
    TARGET_CHOSEN = "TargetChosen"
    TREE_PASSED = "TreePassed"
    COMMIT_FROZEN = "CommitFrozen"
    APPROVAL_COUNTED = "ApprovalCounted"
    PULL_REQUEST_OPEN = "PullRequestOpen"
    INLINE_SANDBOX = "InlineSandbox"


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """What a reason means and what a person can do."""

    meaning: str
    next_step: str


WAITS: Final = MappingProxyType(
    {
        WaitReason.REPOSITORY_BUSY: ReasonRow(
            "another run of the same repository is active, in this namespace or another",
            "nothing to do; it goes on when that run ends or waits for people",
        ),
        WaitReason.LEASE_HELD: ReasonRow(
            "an earlier runner process still holds the run's Lease",
            "nothing to do; the message says when the Lease expires",
        ),
        WaitReason.REMOTE_UNREACHABLE: ReasonRow(
            "the forge didn't answer, three times in a row or more",
            "look at the forge's state and at the operator's way out of the cluster",
        ),
        WaitReason.FORGE_LIMITED: ReasonRow(
            "the forge limits how often the account of the token may ask; the message says until "
            "when",
            "nothing to do; if it comes again and again, give this product an account or App of its own",
        ),
        WaitReason.ARTIFACT_STORE_UNREACHABLE: ReasonRow(
            "the artifact store didn't answer",
            "look at the operator's volume",
        ),
        WaitReason.POD_PENDING: ReasonRow(
            "the pod is created and its containers haven't started yet",
            "nothing to do for five minutes; then the run says what holds the pod back",
        ),
    }
)
"""Waits that pass by themselves: `Succeeded` stays Unknown with this reason."""

STALLS: Final = MappingProxyType(
    {
        StalledReason.PREVIOUS_ATTEMPT_NOT_GONE: ReasonRow(
            "the old pod can't be judged: its node is silent, so it may still write",
            "bring the node back, or delete its Node object if the machine is surely off",
        ),
        StalledReason.POD_UNSCHEDULABLE: ReasonRow(
            "no node takes the pod",
            "read the pod's events; add capacity or loosen what holds it back",
        ),
        StalledReason.IMAGE_UNAVAILABLE: ReasonRow(
            "the image of the policy can't be pulled",
            "mend `spec.images` of the policy, or the registry credentials of the node",
        ),
        StalledReason.STORAGE_UNAVAILABLE: ReasonRow(
            "the volume can't be bound or mounted, or lacks locks or atomic rename",
            "mend `spec.workspace.storageClassName` of the policy, or the storage class",
        ),
        StalledReason.FORGE_DENIED: ReasonRow(
            "the forge refused the push or the pull request",
            "give the push token contents and pull requests, write; look at branch rules",
        ),
        StalledReason.REQUESTER_UNKNOWN: ReasonRow(
            "the run says nowhere who requested it, so self-approval can't be excluded",
            "create the run again with the annotation `upgraderun.dev/requested-by`",
        ),
        StalledReason.JOURNAL_FULL: ReasonRow(
            "the status reached its hard bound",
            "cancel the run and report it: compaction should have prevented this",
        ),
        StalledReason.JOURNAL_TOO_NEW: ReasonRow(
            "the journal was written by a newer version of the operator",
            "upgrade the operator again",
        ),
        StalledReason.RUNNER_API_UNREACHABLE: ReasonRow(
            "runner after runner gave up because the operator's API didn't answer it",
            "look at the operator's Service, its certificate and the NetworkPolicies of the "
            "namespace; the next runner starts half an hour after the last one",
        ),
    }
)
"""Needs of a person: `Stalled` becomes True with this reason."""

OUTCOME_REASONS: Final = frozenset(row.reason for row in OUTCOMES.values())
"""Reasons of `Succeeded` once a run has ended; equal to `status.outcome`."""

REASONS: Final = frozenset(
    {
        *OUTCOME_REASONS,
        *(reason.value for reason in WaitReason),
        *(reason.value for reason in StalledReason),
        *(reason.value for reason in LiveReason),
    }
)
"""Every reason that a condition of a run may carry."""


class Phase(StrEnum):
    """`status.phase`: where a run stands (DESIGN §3; runner-protocol.md §9)."""

    QUEUED = "Queued"
    PROVISIONING = "Provisioning"
    PREPARING = "Preparing"
    BASELINE = "Baseline"
    SELECTING = "Selecting"
    UPGRADING = "Upgrading"
    VALIDATING = "Validating"
    FREEZING = "Freezing"
    AWAITING_APPROVAL = "AwaitingApproval"
    PUBLISHING = "Publishing"
    SUSPENDED = "Suspended"
    FINALIZING = "Finalizing"
    FINISHED = "Finished"
