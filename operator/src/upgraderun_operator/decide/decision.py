"""What a pass decides: one effect, or a wait with its reason. Values only."""

from dataclasses import dataclass

from upgraderun_operator.decide.effects import Effect


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing to do now. `after_seconds` None: an event wakes the run.

    `shown`: people are told by `status.wait` and one Event; a pause that isn't shown removes an
    older wait. `backoff`: the world didn't answer, the queue decides how long.
    `over`: the run is finalized or gone, forget it.
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
    what: Effect | Pause
    rule: str = ""
