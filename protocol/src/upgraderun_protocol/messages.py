"""What travels between runner, publisher and operator (runner-protocol.md §1.5).

All are records (`upgraderun_protocol.records`): strict, bounded, camelCase on the wire.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from upgraderun_protocol.ids import CommitId, Epoch, PodUid, RunUid, Sha256, TreeId
from upgraderun_protocol.limits import (
    ENTRIES_PER_APPEND_MAX,
    ENTRIES_PER_READ_MAX,
    FORGE_TOKEN_MAX,
    VERDICT_MESSAGE_MAX,
)
from upgraderun_protocol.records import bounded

HEADER_PROTOCOL: Final = "UpgradeRun-Protocol"
HEADER_EPOCH: Final = "UpgradeRun-Epoch"
HEADER_REQUEST: Final = "UpgradeRun-Request"
HEADER_TRY: Final = "UpgradeRun-Try"
HEADER_SHA256: Final = "UpgradeRun-SHA256"
TOKEN_AUDIENCE: Final = "upgraderun-operator"  # noqa: S105 - an audience is no secret


class ErrorCode(StrEnum):
    """Codes in `{"error": {"code", "message", "details"}}`; the status belongs to the code."""

    UNAUTHENTICATED = "unauthenticated"
    AUTH_UNAVAILABLE = "auth_unavailable"
    RUN_UNKNOWN = "run_unknown"
    PROTOCOL_UNSUPPORTED = "protocol_unsupported"
    RUN_TERMINAL = "run_terminal"
    NOT_CURRENT_WRITER = "not_current_writer"
    ROLE_FORBIDDEN = "role_forbidden"
    EPOCH_STALE = "epoch_stale"
    RATE_LIMITED = "rate_limited"
    TOO_LARGE = "too_large"
    INVALID_REQUEST = "invalid_request"
    NOT_READY = "not_ready"
    RUN_LEASED = "run_leased"
    LOSS_PENDING = "loss_pending"
    ALREADY_CLAIMED = "already_claimed"
    WORKSPACE_BASE_MISMATCH = "workspace_base_mismatch"
    JOURNAL_CONFLICT = "journal_conflict"
    JOURNAL_FULL = "journal_full"
    ARTIFACT_MISSING = "artifact_missing"
    ARTIFACT_UNKNOWN = "artifact_unknown"
    DIGEST_MISMATCH = "digest_mismatch"
    LEASE_LOST = "lease_lost"
    VERDICT_CONFLICT = "verdict_conflict"
    VERDICT_STALE = "verdict_stale"
    FINALIZATION_IN_PROGRESS = "finalization_in_progress"
    PUBLICATION_HELD = "publication_held"
    TOKENS_SPENT = "tokens_spent"
    FORGE_DENIED = "forge_denied"
    FORGE_UNAVAILABLE = "forge_unavailable"
    STORE_UNAVAILABLE = "store_unavailable"
    CONTENDED = "contended"


STATUS_OF: Final[Mapping[ErrorCode, int]] = {
    ErrorCode.UNAUTHENTICATED: 401,
    ErrorCode.AUTH_UNAVAILABLE: 503,
    ErrorCode.RUN_UNKNOWN: 404,
    ErrorCode.PROTOCOL_UNSUPPORTED: 426,
    ErrorCode.RUN_TERMINAL: 409,
    ErrorCode.NOT_CURRENT_WRITER: 403,
    ErrorCode.ROLE_FORBIDDEN: 403,
    ErrorCode.EPOCH_STALE: 409,
    ErrorCode.RATE_LIMITED: 429,
    ErrorCode.TOO_LARGE: 413,
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.NOT_READY: 503,
    ErrorCode.RUN_LEASED: 503,
    ErrorCode.LOSS_PENDING: 503,
    ErrorCode.ALREADY_CLAIMED: 409,
    ErrorCode.WORKSPACE_BASE_MISMATCH: 409,
    ErrorCode.JOURNAL_CONFLICT: 409,
    ErrorCode.JOURNAL_FULL: 409,
    ErrorCode.ARTIFACT_MISSING: 409,
    ErrorCode.ARTIFACT_UNKNOWN: 404,
    ErrorCode.DIGEST_MISMATCH: 400,
    ErrorCode.LEASE_LOST: 409,
    ErrorCode.VERDICT_CONFLICT: 409,
    ErrorCode.VERDICT_STALE: 409,
    ErrorCode.FINALIZATION_IN_PROGRESS: 503,
    ErrorCode.PUBLICATION_HELD: 409,
    ErrorCode.TOKENS_SPENT: 409,
    ErrorCode.FORGE_DENIED: 409,
    ErrorCode.FORGE_UNAVAILABLE: 503,
    ErrorCode.STORE_UNAVAILABLE: 503,
    ErrorCode.CONTENDED: 503,
}

FENCED: Final = frozenset({ErrorCode.NOT_CURRENT_WRITER, ErrorCode.EPOCH_STALE})
"""Codes after which a runner starts no further effect and exits 77."""


@dataclass(frozen=True, slots=True)
class ProtocolRange:
    """Versions that a client can speak."""

    min: int
    max: int


@dataclass(frozen=True, slots=True)
class HelloRequest:
    """First call of a process. `boot_nonce`: 32 hex digits, new for each process."""

    protocol: ProtocolRange
    boot_nonce: str = bounded(string_max=32)
    version: str = bounded(string_max=64)


@dataclass(frozen=True, slots=True)
class ArtifactRef:
    """A stored artifact: its digest and its size in bytes."""

    sha256: Sha256 = bounded(string_max=64)
    size: int = 0


@dataclass(frozen=True, slots=True)
class MintedToken:
    """A token of the forge for one repository, `owner/name`; it stays in the process that got it.

    `api_url` is the policy's: where the token is revoked.
    """

    token: str = bounded(string_max=FORGE_TOKEN_MAX, shown=False)
    expires_at: str = bounded(string_max=40)
    repository: str = bounded(string_max=512)
    api_url: str = bounded(string_max=2048)


@dataclass(frozen=True, slots=True)
class HelloResponse:
    """The claim: from now on this process speaks for the run under `epoch`.

    `clone_credential` says where the credential is: `mounted`, `minted` (a runner gets it here as
    `clone_token`, a publisher asks `push-token`), or `none`.
    """

    protocol: int
    writer: str
    epoch: Epoch
    lease_seconds: int
    bundle: ArtifactRef
    clone_credential: str
    server_time: str
    clone_token: MintedToken | None = None


@dataclass(frozen=True, slots=True)
class PushTokenRequest:
    """A publisher asks for the token of its delivery: number of `d<n>`, digest of the proposal."""

    delivery_attempt: int
    proposal_digest: str = bounded(string_max=64)


@dataclass(frozen=True, slots=True)
class WorkspaceMessage:
    """Base commit and tree, 40 hex digits each: request and answer of `workspace`."""

    base_commit: CommitId = bounded(string_max=40)
    base_tree: TreeId = bounded(string_max=40)


@dataclass(frozen=True, slots=True)
class JournalAppendRequest:
    """Drafts in the order in which they shall stand; all are taken or none."""

    entries: tuple[Mapping[str, Any], ...] = bounded(items_max=ENTRIES_PER_APPEND_MAX)


@dataclass(frozen=True, slots=True)
class Accepted:
    """Where one draft stands now. `replayed`: it was there before."""

    id: str
    seq: int
    digest: Sha256
    replayed: bool


@dataclass(frozen=True, slots=True)
class Head:
    """End of the chain."""

    seq: int
    digest: Sha256
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class JournalAppendResponse:
    """Answer of an append, in the order of the drafts."""

    accepted: tuple[Accepted, ...]
    head: Head


@dataclass(frozen=True, slots=True)
class JournalReadResponse:
    """Entries after the asked `seq`, at most 100; `head` tells whether more follow."""

    entries: tuple[Mapping[str, Any], ...] = bounded(items_max=ENTRIES_PER_READ_MAX)
    head: Head | None = None


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """Renewal by the process that holds the run Lease."""

    boot_nonce: str = bounded(string_max=32)


@dataclass(frozen=True, slots=True)
class LeaseResponse:
    """The renewed Lease, and what people want meanwhile."""

    epoch: Epoch
    expires_at: str
    server_time: str
    suspend: bool
    cancel: bool


@dataclass(frozen=True, slots=True)
class PullRequestRef:
    """The pull request as the forge answered it; `url` is built from policy host and number."""

    number: int
    state: str
    url: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a runner or publisher says of its end: built once, at most 3,400 bytes.

    `outcome`: a journal name of the outcome table. `proposal_digest` with outcome
    `proposal_prepared` may only end the attempt: the operator goes on if publication is wanted.
    """

    version: int
    verdict_id: str = bounded(string_max=64)
    run_uid: RunUid = bounded(string_max=64)
    writer: str = bounded(string_max=16)
    pod_uid: PodUid = bounded(string_max=64)
    outcome: str = bounded(string_max=64)
    message: str = bounded(string_max=VERDICT_MESSAGE_MAX)
    exit_code: int = 0
    report: Sha256 | None = bounded(string_max=64, default=None)
    proposal_digest: str | None = bounded(string_max=64, default=None)
    pull_request: PullRequestRef | None = None
    conflict: str | None = bounded(string_max=64, default=None)
    expected: str | None = bounded(string_max=256, default=None)
    observed: str | None = bounded(string_max=256, default=None)


@dataclass(frozen=True, slots=True)
class ResultResponse:
    """Answer of `result`: the verdict stands; `finalized` says that nothing is left to do."""

    verdict_id: str
    recorded: bool
    finalized: bool
