"""What a pass decides: one effect, a pause with its reason, or one more look. Values only."""

from dataclasses import dataclass
from enum import Enum

from upgraderun_operator.decide.effects import Effect


class Need(Enum):
    """A part of the world that a rule asks for; the value is its field in `Observation`."""

    POLICY = "policy"
    FROZEN = "frozen"
    DECISIONS = "decisions"
    DESTINATION = "destination"
    REMOTE = "remote"
    REPOSITORY = "repository"
    POD = "pod"
    OLD_PODS = "old_pods"
    CLAIM = "claim"
    LEASE = "lease"
    APPROVALS = "approvals"
    RECORD = "record"
    REPORT = "report"
    QUESTION = "question"


@dataclass(frozen=True, slots=True)
class Look:
    """Read this part of the world, then decide again."""

    need: Need


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing to do now. `after_seconds` None: an event wakes the run.

    `shown`: people are told by `status.wait` and one Event; a pause that isn't shown removes an
    older wait. `backoff`: the world didn't answer, the queue decides how long; a wait that is
    shown stays. `over`: the run is finalized or gone, forget it.
    """

    after_seconds: float | None = None
    shown: bool = False
    backoff: bool = False
    over: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """One answer. `rule` is the name of the rule that gave it, `<chain>.<rule>`."""

    reason: str
    message: str
    what: Effect | Pause | Look
    rule: str = ""
