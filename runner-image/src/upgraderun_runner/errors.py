"""How a runner or publisher process can stop, as exceptions; the class says how it is handled.

    RunnerError
    |- TransportError   a call to the operator failed for good: endpoint, class, status, code
    |   `- Refused      the operator answered with an error that no repetition mends
    |- Stop             the process ends without a verdict of its own; `exit_code` says how
    |   |- Fenced       somebody else speaks for the run now: no further effect, exit 77
    |   |- Terminal     the run has ended (cancel, deadline, loss): exit at once
    |   |- GaveUp       the operator didn't answer for too long: exit 75, the run goes on elsewhere
    |   `- Yielded      suspended, journal full: exit 76, a planned attempt goes on later
    |       `- Asks     people are asked: exit 5, the next attempt goes on with their answer
    |- RunEnds          an outcome of upgrade-run.md §4: becomes the verdict
    `- RunConflicts     journal and workspace contradict each other: verdict with both sides

Callers: every module of the runner raises them; `supervise` is the one exit that catches.
"""

from enum import StrEnum

from upgraderun_protocol.ends import YieldReason
from upgraderun_protocol.ids import Sha256
from upgraderun_protocol.messages import FENCED, ErrorCode
from upgraderun_protocol.outcomes import (
    AWAITING_APPROVAL_EXIT,
    CONFLICT_OUTCOMES,
    FENCED_EXIT,
    GAVE_UP_EXIT,
    OUTCOMES,
    YIELDED_EXIT,
    ConflictKind,
)


class RunnerError(Exception):
    """Parent of everything that a runner raises on purpose."""


class LossClass(StrEnum):
    """How a call failed (runner-protocol.md §2.1)."""

    UNDELIVERED = "undelivered"
    AMBIGUOUS = "ambiguous"
    LIMITED = "limited"
    FATAL = "fatal"


class TransportError(RunnerError):
    """A call ended without success after all its tries (runner-protocol.md §2.2).

    `elapsed_ms` counts from the call's start; `answer` is status and code, None where none was read.
    """

    def __init__(
        self,
        endpoint: str,
        loss: LossClass,
        *,
        attempts: int,
        elapsed_ms: int,
        answer: tuple[int, str | None] | None = None,
        text: str = "",
    ) -> None:
        status, code = answer if answer is not None else (None, None)
        said = f", answer {status} {code or ''}".rstrip() if status is not None else ""
        super().__init__(
            f"{endpoint}: {loss.value} after {attempts} tries in {elapsed_ms} ms{said}: {text}"
        )
        self.endpoint = endpoint
        self.loss = loss
        self.attempts = attempts
        self.elapsed_ms = elapsed_ms
        self.status = status
        self.code = code
        self.text = text

    @property
    def is_recorded(self) -> bool:
        """Whether the run has ended: status 409 and code `run_terminal`, nothing else (§2.2)."""
        return self.status == 409 and self.code == ErrorCode.RUN_TERMINAL.value

    @property
    def is_fenced(self) -> bool:
        """Whether another writer speaks for the run (§1.4), or holds its Lease (§1.8)."""
        fenced = {(403, ErrorCode.NOT_CURRENT_WRITER), (409, ErrorCode.EPOCH_STALE)}
        fenced |= {(409, ErrorCode.LEASE_LOST)}
        assert {code for _, code in fenced} >= FENCED
        return (self.status, self.code) in {(status, code.value) for status, code in fenced}

    @property
    def is_outage(self) -> bool:
        """Whether the operator simply wasn't there: worth patience (§1.8)."""
        return self.loss is not LossClass.FATAL


class Stop(RunnerError):  # noqa: N818 - names an end, not a mistake
    """The process ends without a verdict of its own."""

    exit_code = 1


class Fenced(Stop):
    """Somebody else speaks for the run now."""

    exit_code = FENCED_EXIT


class Terminal(Stop):
    """The run has ended already; there is nothing left to say."""

    exit_code = OUTCOMES["cancelled"].exit_code


class GaveUp(Stop):
    """The operator was away for longer than OUTAGE_PATIENCE_SECONDS."""

    exit_code = GAVE_UP_EXIT


class Yielded(Stop):
    """The attempt parks itself; `reason` is a word such as `suspended`.

    `until` is a time, `python` the version whose image is needed.
    """

    exit_code = YIELDED_EXIT

    def __init__(
        self, reason: str, message: str, until: str | None = None, python: str | None = None
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.until = until
        self.python = python


class Asks(Yielded):
    """People are asked; `question` and `report` are artifacts (upgrade-run.md §11)."""

    exit_code = AWAITING_APPROVAL_EXIT

    def __init__(self, message: str, question: Sha256, report: Sha256) -> None:
        super().__init__(YieldReason.AWAITING_APPROVAL, message)
        self.question = question
        self.report = report


class RunEnds(RunnerError):  # noqa: N818 - names an end, not a mistake
    """The run ends with an outcome of the table of upgrade-run.md §4.

    `report` is the digest of the stored report record that tells people why.
    """

    def __init__(self, outcome: str, message: str, report: Sha256 | None = None) -> None:
        super().__init__(f"{outcome}: {message}")
        assert outcome in OUTCOMES, f"no outcome is called {outcome!r}"
        self.outcome = outcome
        self.message = message
        self.report = report


class RunConflicts(RunnerError):  # noqa: N818 - names an end, not a mistake
    """Journal and world contradict each other: told with both sides, nothing is touched (§13)."""

    def __init__(self, kind: ConflictKind, expected: str, observed: str) -> None:
        super().__init__(f"{kind.value}: expected {expected}, observed {observed}")
        self.kind = kind
        self.expected = expected
        self.observed = observed

    @property
    def outcome(self) -> str:
        """The outcome that this kind of conflict ends in."""
        return CONFLICT_OUTCOMES[self.kind]
