"""`UpgradeRun.status`: the journal, the facts beside it, and projections for people (DESIGN §3).

The journal is the truth. Projections are computed anew in each write and read by nobody in the
code. Callers: `journal` (stored form of entries), the status writer, `objects`.
"""

from typing import Annotated, Final

from pydantic import Field

from upgraderun_operator.model.base import (
    ApiModel,
    CommitText,
    Count,
    Message,
    Name,
    PackageName,
    PackageVersion,
    Reason,
    Sha256Text,
    Timestamp,
    Uid,
    Url,
)
from upgraderun_operator.model.conditions import ConditionStatus
from upgraderun_operator.model.run_journal import Journal

EVIDENCE_MAX: Final = 16


class WriteStamp(ApiModel):
    """Which write made this version of the status."""

    id: Annotated[str, Field(min_length=1, max_length=64)]
    """Random name of the write."""

    by: Annotated[str, Field(min_length=1, max_length=253)]
    """Pod that wrote it."""


class Condition(ApiModel):
    """One condition, as the Kubernetes conventions have it."""

    type: Annotated[str, Field(min_length=1, max_length=64)]
    """Name of the condition."""

    status: ConditionStatus
    """True, False or Unknown."""

    reason: Reason
    """One word of docs/reasons.md."""

    message: Message
    """What happened, to what, and what comes next."""

    last_transition_time: Timestamp
    """When `status` changed last."""

    observed_generation: Count | None = None
    """Generation of the spec that it was computed from."""


class Target(ApiModel):
    """The upgrade that was picked."""

    name: PackageName
    """Dependency."""

    from_version: Annotated[PackageVersion, Field(alias="from")]
    """Version before."""

    to_version: Annotated[PackageVersion, Field(alias="to")]
    """Version after."""


class Attempt(ApiModel):
    """The present runner pod, or the last one."""

    number: Count
    """Number of the attempt, from 1."""

    pod_name: Name | None = None
    """Name of its pod."""

    pod_uid: Uid | None = None
    """UID of its pod, once recorded."""

    epoch: Count | None = None
    """Epoch of its last incarnation."""

    loss_observed_at: Timestamp | None = None
    """When its pod was first seen gone; a second look decides."""


class PullRequest(ApiModel):
    """The pull request, as it was when the run looked last."""

    number: Annotated[int, Field(ge=1)]
    """Number."""

    url: Url
    """Link, built from the policy's host and the number."""

    state: Annotated[str, Field(min_length=1, max_length=16)]
    """State."""


class PublicationStatus(ApiModel):
    """What stands on the remote."""

    delivery_attempt: Count | None = None
    """Number of the publisher pod, from 1."""

    pod_name: Name | None = None
    """Name of its pod."""

    pod_uid: Uid | None = None
    """UID of its pod, once recorded."""

    loss_observed_at: Timestamp | None = None
    """When its pod was first seen gone."""

    branch: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    """Our branch."""

    commit: CommitText | None = None
    """Commit that was pushed."""

    pull_request: PullRequest | None = None
    """The pull request."""


class Base(ApiModel):
    """What the run starts from; never rebased."""

    commit: CommitText
    """Commit."""

    tree: CommitText | None = None
    """Its tree."""


class Proposal(ApiModel):
    """The frozen result."""

    digest: Sha256Text
    """SHA-256 of the proposal record."""

    commit: CommitText
    """The one commit."""

    tree: CommitText
    """Its tree."""


class PendingApproval(ApiModel):
    """What is asked of the approvers now (upgrade-run.md §11)."""

    kind: Annotated[str, Field(min_length=1, max_length=32)]
    """Kind of the request."""

    digest: Sha256Text
    """Digest that an approval must name."""

    headline: Annotated[str, Field(min_length=1, max_length=200)]
    """What it is about, in one line."""

    target: Target | None = None
    """The upgrade."""

    files: Count
    """Changed files."""

    lines: Count
    """Added and removed lines."""

    presentation_sha256: Sha256Text
    """SHA-256 of what the run's `UpgradeReport` shows."""

    requested_at: Timestamp
    """When it was asked."""

    expires_at: Timestamp
    """When the run stops waiting."""

    approvals: Count
    """Approvals that count so far."""


class Finalization(ApiModel):
    """The ordered end of the run."""

    finished_at: Timestamp | None = None
    """When the outcome was recorded."""

    renewed_at: Timestamp | None = None
    """When a step of the end was done last."""

    finalized_at: Timestamp | None = None
    """When all was done."""


class ConflictStatus(ApiModel):
    """Where the world contradicts the journal; nothing is repaired or deleted."""

    kind: Reason
    """Kind of the contradiction, one of docs/reasons.md."""

    expected: Annotated[str, Field(max_length=512)]
    """What the journal says."""

    observed: Annotated[str, Field(max_length=512)]
    """What was found."""

    evidence: Annotated[
        tuple[Annotated[str, Field(max_length=256)], ...], Field(max_length=EVIDENCE_MAX)
    ] = ()
    """Where it was found: objects, artifacts, links."""


class Wait(ApiModel):
    """Why nothing moves."""

    reason: Reason
    """One word of docs/reasons.md."""

    message: Message
    """What is awaited, since when, when the next try is, and what a person can do."""

    since: Timestamp
    """When the wait began."""


class Usage(ApiModel):
    """What the run used so far."""

    attempts: Count
    """Runner pods."""

    deliveries: Count
    """Publisher pods."""

    steps: Count
    """Steps of the agent loop."""

    validations: Count
    """Completed validations after the baseline."""


class UpgradeRunStatus(ApiModel):
    """What happened so far. Written by the operator only."""

    journal: Journal | None = None
    """The record of everything that was intended and done."""

    leader_epoch: Count | None = None
    """Epoch of the leader that acted on this run last."""

    write: WriteStamp | None = None
    """Which write made this version."""

    wait: Wait | None = None
    """Why nothing moves."""

    observed_generation: Count | None = None
    """Generation of the spec that this status was computed from."""

    phase: Annotated[str, Field(min_length=1, max_length=32)] | None = None
    """Where the run stands."""

    outcome: Reason | None = None
    """How the run ended, one word of docs/reasons.md."""

    exit_code: Annotated[int, Field(ge=0, le=255)] | None = None
    """Number of the outcome; 5 while an approval is awaited."""

    finished: bool | None = None
    """True once the run is ended and cleaned up."""

    conditions: (
        Annotated[
            tuple[Condition, ...],
            Field(max_length=16, json_schema_extra={"x-kubernetes-list-type": "atomic"}),
        ]
        | None
    ) = None
    """Conditions; `Succeeded` is the summary, Unknown while the run is active."""

    start_time: Timestamp | None = None
    """When the run was admitted."""

    completion_time: Timestamp | None = None
    """When the outcome was recorded."""

    duration_seconds: Count | None = None
    """Seconds between the two."""

    target: Target | None = None
    """The upgrade that was picked."""

    attempt: Attempt | None = None
    """The present runner pod, or the last one."""

    config_hash: Sha256Text | None = None
    """Digest of the configuration that evidence is bound to."""

    base: Base | None = None
    """What the run starts from."""

    proposal: Proposal | None = None
    """The frozen result."""

    pending_approval: PendingApproval | None = None
    """What is asked of the approvers now."""

    publication: PublicationStatus | None = None
    """What stands on the remote."""

    finalization: Finalization | None = None
    """The ordered end of the run."""

    conflict: ConflictStatus | None = None
    """Where the world contradicts the journal."""

    usage: Usage | None = None
    """What the run used so far."""
