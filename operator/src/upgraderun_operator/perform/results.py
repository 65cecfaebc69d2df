"""How an effect can end. Values only; `reconcile` turns them into the next step of a pass."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from upgraderun_operator.decide.decision import Need
from upgraderun_operator.journal.run import RunView


@dataclass(frozen=True, slots=True)
class Applied:
    """It stands. What it changed is seen, not assumed.

    `view`: the version of the run that this effect wrote, as the API server answered; None if it
    wrote none. `found`: what it made, as the API server answered.
    """

    view: RunView | None = field(default=None, compare=False)
    found: Mapping[Need, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Exists:
    """Something stands under that name, or may: read it, its owner tells whose it is."""

    need: Need


@dataclass(frozen=True, slots=True)
class Moved:
    """The world wasn't what was decided on; nothing of it is known to stand. Look again."""

    why: str


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Nothing is known of the outcome: back off, then look (DESIGN §2, principle 5).

    `where`: cluster, store or forge.
    """

    where: str
    cause: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """The API server said no for good: a person must act. `reason` is a StalledReason."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class RunGone:
    """No run of that name and UID is left."""


NotApplied = Moved | NoAnswer | Refusal | RunGone
Result = Applied | Exists | NotApplied
