"""`RunState`: the typed fold of a run's whole journal, segments included.

The only reading of the journal that decisions, API and projections share (DESIGN §6, §6a). Built by
`run_state(fold)`; holds no clock, no spec and nothing beside the entries. Facts that aren't history
(loss stamps, leader epoch, wait) stand in `journal.facts`.

    attempts  a1 ── end(loss)   a2 ── end(verdict)                     writer while not ended
    proposal                        ── proposal/s4 done
    requests                              ── req/1 intent ── done      nobody writes
    deliveries                                                 d1      writer while not ended
    outcome                                                      ── outcome ── finalized
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from upgraderun_operator.journal.records import (
    Admission,
    Base,
    Baseline,
    Conflict,
    Context,
    CurrentWriter,
    LossCount,
    Outcome,
    PodRecord,
    Proposal,
    PullRequest,
    Push,
    Request,
    Role,
    Target,
    Validation,
)
from upgraderun_protocol.ends import EndCause, RequestDecision, YieldReason
from upgraderun_protocol.entries import EntryState
from upgraderun_protocol.fold import Fold
from upgraderun_protocol.ids import Epoch, Sha256


class Lifecycle(StrEnum):
    """States of runner-protocol.md §9. Folded, never stored."""

    QUEUED = "Queued"
    PROVISIONING = "Provisioning"
    RUNNING = "Running"
    AWAITING_APPROVAL = "AwaitingApproval"
    PUBLISHING = "Publishing"
    SUSPENDED = "Suspended"
    FINALIZING = "Finalizing"
    FINISHED = "Finished"


class Stage(StrEnum):
    """What a runner does now; `status.phase` shows it while Running (DESIGN §3)."""

    PREPARING = "Preparing"
    BASELINE = "Baseline"
    SELECTING = "Selecting"
    UPGRADING = "Upgrading"
    VALIDATING = "Validating"
    FREEZING = "Freezing"


@dataclass(frozen=True, slots=True)
class Usage:
    """Counts for people."""

    attempts: int = 0
    deliveries: int = 0
    steps: int = 0
    validations: int = 0


_NO_LOSSES: Final = LossCount()


@dataclass(frozen=True, slots=True)
class RunState:
    """Everything that the journal says of a run. Tuples are in journal order.

    `fold` answers questions about single ids: `state.fold.done("base")`. Nobody adds to it.
    """

    fold: Fold = field(repr=False, compare=False)
    admission: Admission | None = None
    attempts: tuple[PodRecord, ...] = ()
    deliveries: tuple[PodRecord, ...] = ()
    base: Base | None = None
    context: Context | None = None
    baseline: Baseline | None = None
    candidate: Target | None = None
    promoted: Target | None = None
    validation: Validation | None = None
    proposal: Proposal | None = None
    requests: tuple[Request, ...] = ()
    pushes: tuple[Push, ...] = ()
    pull_requests: tuple[PullRequest, ...] = ()
    outcome: Outcome | None = None
    conflict: Conflict | None = None
    finalized_at: str | None = None
    stage: Stage = Stage.PREPARING
    usage: Usage = Usage()
    attempt_losses: LossCount = _NO_LOSSES
    delivery_losses: LossCount = _NO_LOSSES
    gave_up_in_row: int = 0
    """Attempts that gave up one after the other without a new entry of their own (§5.4)."""

    @property
    def seq(self) -> int:
        """Number of the last entry."""
        return self.fold.seq

    @property
    def epoch(self) -> Epoch:
        """Highest epoch of the journal; entries of the operator carry it."""
        return self.fold.epoch

    @property
    def attempt(self) -> PodRecord | None:
        """The present runner pod, or the last one."""
        return self.attempts[-1] if self.attempts else None

    @property
    def delivery(self) -> PodRecord | None:
        """The present publisher pod, or the last one."""
        return self.deliveries[-1] if self.deliveries else None

    @property
    def last_pod(self) -> PodRecord | None:
        """The pod that was planned last; deliveries come after attempts."""
        return self.delivery or self.attempt

    @property
    def writer(self) -> CurrentWriter | None:
        """The one pod that may speak for the run now, or none (runner-protocol.md §1.1)."""
        pod = self.last_pod
        if self.outcome is not None or pod is None or not pod.is_open:
            return None
        return _as_writer(pod)

    @property
    def last_writer(self) -> CurrentWriter | None:
        """The pod that spoke last, also after its end: `result` is open to it (§1.4, row 5)."""
        return _as_writer(self.last_pod) if self.last_pod else None

    @property
    def tag(self) -> str:
        """What a new entry says in `attempt`: tag of the last planned pod, empty before the first."""
        return self.last_pod.tag if self.last_pod else ""

    @property
    def target(self) -> Target | None:
        """The upgrade, as far as it is known: frozen, else promoted, else the listed pick."""
        return self.proposal.target if self.proposal else self.promoted or self.candidate

    @property
    def request(self) -> Request | None:
        """The last question to people."""
        return self.requests[-1] if self.requests else None

    @property
    def pending_request(self) -> Request | None:
        """The question that waits for its answer."""
        request = self.request
        return request if request is not None and request.answer is None else None

    @property
    def publication_request(self) -> Request | None:
        """The last question about the publication; a runner's own questions are none."""
        asked = (request for request in reversed(self.requests) if request.question is None)
        return next(asked, None)

    @property
    def grant(self) -> Request | None:
        """The last request for the publication, if it was approved."""
        request = self.publication_request
        if request is None or request.answer is None:
            return None
        return request if request.answer.decision == RequestDecision.APPROVED else None

    @property
    def push(self) -> Push | None:
        """The last push."""
        return self.pushes[-1] if self.pushes else None

    @property
    def pull_request(self) -> PullRequest | None:
        """The last pull request entry."""
        return self.pull_requests[-1] if self.pull_requests else None

    @property
    def pushed(self) -> Push | None:
        """The push that is known to have happened."""
        return next((push for push in self.pushes if push.state is EntryState.DONE), None)

    @property
    def opened(self) -> PullRequest | None:
        """The pull request that is known to exist."""
        return next((pr for pr in self.pull_requests if pr.state is EntryState.DONE), None)

    @property
    def parked(self) -> str | None:
        """Why the last pod parked itself, a YieldReason; None if it didn't."""
        pod = self.last_pod
        if pod is None or pod.end is None or pod.end.cause is not EndCause.YIELD:
            return None
        return pod.end.reason or YieldReason.NOT_RESUMABLE

    @property
    def python(self) -> str | None:
        """Which of the policy's Pythons a runner asked for; None: the runner image's."""
        ends = (pod.end for pod in reversed(self.attempts) if pod.end is not None)
        return next((end.python for end in ends if end.python is not None), None)

    @property
    def question(self) -> Sha256 | None:
        """What the last runner asks people in the middle of its work; None if it asks nothing."""
        pod = self.last_pod
        if pod is None or pod.end is None or self.parked != YieldReason.AWAITING_APPROVAL:
            return None
        return pod.end.question if self.proposal is None else None

    @property
    def is_resumable(self) -> bool:
        """Whether a context is journaled (upgrade-run.md §3, phase 3)."""
        return self.context is not None

    def lifecycle(self, *, suspended: bool) -> Lifecycle:
        """Where the run stands; `suspended` is the wish `spec.suspend`."""
        if self.finalized_at is not None:
            return Lifecycle.FINISHED
        if self.outcome is not None:
            return Lifecycle.FINALIZING
        writer = self.writer
        if writer is not None and writer.role is Role.PUBLISHER:
            return Lifecycle.PUBLISHING
        if writer is not None:
            return Lifecycle.PROVISIONING if writer.epoch is None else Lifecycle.RUNNING
        if suspended:
            return Lifecycle.SUSPENDED
        if self.pushes:
            return Lifecycle.PUBLISHING
        if self.proposal is not None or self.question is not None:
            return Lifecycle.AWAITING_APPROVAL
        return Lifecycle.PROVISIONING if self.attempts else Lifecycle.QUEUED


def _as_writer(pod: PodRecord) -> CurrentWriter:
    return CurrentWriter(pod.tag, pod.role, pod.number, pod.pod_name, pod.pod_uid, pod.epoch)
