"""Closed lists of words in entries' data: why a pod ended, why it yielded, what was answered.

Callers: both sides; `kinds` checks drafts against them.
"""

from enum import StrEnum
from typing import Final


class EndCause(StrEnum):
    """`cause` of `<tag>/end` (runner-protocol.md §5.3, §5.4)."""

    VERDICT = "verdict"
    """A verdict came and the run stays active: frozen proposal, publication wanted."""
    YIELD = "yield"
    """The pod parked itself; `reason` is a YieldReason."""
    GAVE_UP = "gave_up"
    """Exit 75: the pod was fine, the operator was away."""
    CRASHED = "crashed"
    """An exit code without what it promises, or one that nobody explains."""
    OUT_OF_MEMORY = "out_of_memory"
    """137 with `OOMKilled`; the message tells the limit."""
    DISRUPTED = "disrupted"
    """Evicted, preempted, drained."""
    POD_GONE = "pod_gone"
    """Absent by two live reads, or its node lost track of it."""
    FENCED = "fenced"
    """Exit 77 with a successor in the journal."""
    STOPPED = "stopped"
    """The operator deleted it on a wish of people, such as `suspend` before `hello`."""


LOSSES: Final = frozenset(
    {EndCause.CRASHED, EndCause.OUT_OF_MEMORY, EndCause.DISRUPTED, EndCause.POD_GONE}
)
"""Causes that count against `lostAttempts` (upgrade-run.md §9.5)."""


class YieldReason(StrEnum):
    """`reason` of an end with cause `yield` (exit code 76; 5 where people are asked)."""

    SUSPENDED = "suspended"
    JOURNAL_FULL = "journal_full"
    NOT_RESUMABLE = "not_resumable"
    FORGE_LIMITED = "forge_limited"
    """The forge wants to be left alone; `until` says how long."""
    ANOTHER_PYTHON = "another_python"
    """The project needs the Python of another image; `python` is its version in the policy."""
    AWAITING_APPROVAL = "awaiting_approval"
    """The runner asks people; the artifact `question` says what (upgrade-run.md §11)."""


class MintPurpose(StrEnum):
    """`purpose` of `<tag>/mint/<k>`: what the token may do (security.md H18, H19)."""

    CLONE = "clone"
    PUSH = "push"


class RequestDecision(StrEnum):
    """`decision` of `req/<n>` done (upgrade-run.md §11)."""

    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    VOID = "void"
    """A grant unused for 24 h, or a request that no longer fits; asked anew under a new nonce."""
