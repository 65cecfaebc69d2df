"""Error families: an error's class says how it is handled (house style, §3).

    OperatorError
    ├── Retry       the world isn't ready or didn't answer: back off, count, change nothing
    ├── Refused     policy or security says no: terminal outcome, warning Event
    ├── Stalled     can't go on until a person acts: condition and Event, once
    └── Conflict    journal and world contradict each other: evidence, alert, hands off

Anything else that is raised is a bug: the pass is dropped and the run's state doesn't change.
Raised where the family can be named, caught at the one exit (`reconcile`), nowhere else.
"""

from upgraderun_protocol.outcomes import ConflictKind


class OperatorError(Exception):
    """Root of the families; never raised itself."""


class Retry(OperatorError):  # noqa: N818 - the family's name is the vocabulary's (house style §3)
    """The world isn't ready, or didn't answer: never a verdict.

    `reason` is a condition reason such as `RemoteUnreachable`; `after_seconds` None leaves the
    wait to the queue's back-off.
    """

    def __init__(self, reason: str, message: str, after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.after_seconds = after_seconds


class Refused(OperatorError):  # noqa: N818 - as above
    """Policy or security says no. `outcome` is a journal name of the outcome table."""

    def __init__(self, outcome: str, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome


class Stalled(OperatorError):  # noqa: N818 - as above
    """A person must act; the message says what and what ends the wait."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Conflict(OperatorError):  # noqa: N818 - as above
    """Journal and world contradict each other; nothing is touched again."""

    def __init__(self, kind: ConflictKind, expected: str, observed: str) -> None:
        super().__init__(f"{kind}: expected {expected}, observed {observed}")
        self.kind = kind
        self.expected = expected
        self.observed = observed
