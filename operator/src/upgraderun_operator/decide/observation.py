"""`Observation`: everything that one pass knows. The only input of `decide`.

Made by `observe` in steps: a rule that needs a part of the world answers with `Look`, then all
rules are asked again; what nobody asks for stays NOT_READ. Values only: no clock, no client.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from upgraderun_operator.build.context import BuildOptions
from upgraderun_operator.build.frozen import FrozenAdmission
from upgraderun_operator.decide.readings import NOT_READ, Reading, known
from upgraderun_operator.decide.views import (
    ApprovalView,
    ChildView,
    DestinationRefused,
    DestinationView,
    Malformed,
    PodView,
    RemoteView,
    ReportView,
    RepositoryLeaseView,
)
from upgraderun_operator.journal.facts import Facts
from upgraderun_operator.journal.run import RunView
from upgraderun_operator.journal.state import RunState
from upgraderun_operator.model.objects import UpgradePolicy, UpgradeRun
from upgraderun_operator.model.policy import ResolvedPolicy
from upgraderun_protocol.ids import Epoch
from upgraderun_protocol.questions import QuestionRecord
from upgraderun_protocol.report import ReportRecord


@dataclass(frozen=True, slots=True)
class Observation:
    """One look at one run and at what of the world its state asks for.

    `now`: wall clock, only for messages, stamps and deadlines that stamps give. `fresh`: the run
    was read less than 90 s ago on the monotonic clock. `nonce`: 32 random hex digits that a
    request may use. `announced`: keys of Events that this process knows to exist. `unanswered`:
    passes in a row before this one in which the world didn't answer.
    """

    view: RunView
    run: UpgradeRun
    leader: Epoch
    now: datetime
    nonce: str
    options: BuildOptions
    fresh: bool = True
    announced: frozenset[str] = frozenset()
    unanswered: int = 0

    policy: Reading[UpgradePolicy] = NOT_READ
    frozen: Reading[FrozenAdmission] = NOT_READ
    decisions: Reading[bytes | str] = NOT_READ
    destination: Reading[DestinationView | DestinationRefused] = NOT_READ
    remote: Reading[RemoteView | DestinationRefused] = NOT_READ
    repository: Reading[RepositoryLeaseView] = NOT_READ
    pod: Reading[PodView] = NOT_READ
    old_pods: Reading[tuple[PodView, ...]] = NOT_READ
    claim: Reading[ChildView] = NOT_READ
    lease: Reading[ChildView] = NOT_READ
    approvals: Reading[tuple[ApprovalView, ...]] = NOT_READ
    record: Reading[ReportRecord | Malformed] = NOT_READ
    report: Reading[ReportView] = NOT_READ
    question: Reading[QuestionRecord | Malformed] = NOT_READ

    @property
    def state(self) -> RunState:
        """Fold of the journal."""
        return self.view.state

    @property
    def facts(self) -> Facts:
        """Facts beside the journal."""
        return self.view.facts

    @property
    def resolved(self) -> ResolvedPolicy:
        """The frozen policy. Only where the run is admitted and the policy was read."""
        frozen = known(self.frozen)
        assert frozen is not None
        return frozen.policy

    @property
    def stamp(self) -> str:
        """`now` as it is stored: RFC 3339, UTC, whole seconds."""
        return self.now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    @property
    def holder(self) -> str:
        """This run as holder of the repository Lease: `<namespace>/<name>/<uid>`."""
        ref = self.view.ref
        return f"{ref.namespace}/{ref.name}/{ref.uid}"

    def seconds_since(self, stamp: str) -> float | None:
        """Age of a stored time; never below 0; None if it can't be read."""
        at = read_time(stamp)
        return None if at is None else max(0.0, (self.now - at).total_seconds())

    def seconds_until(self, stamp: str) -> float:
        """How long until a stored time; 0 if it has come or can't be read."""
        at = read_time(stamp)
        return 0.0 if at is None else max(0.0, (at - self.now).total_seconds())

    def after(self, seconds: float) -> str:
        """`now` plus some seconds, as it is stored."""
        at = self.now.astimezone(UTC) + timedelta(seconds=seconds)
        return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def read_time(stamp: str) -> datetime | None:
    """Read RFC 3339; None for anything else, and for a time without zone."""
    try:
        at = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return at if at.tzinfo is not None else None
