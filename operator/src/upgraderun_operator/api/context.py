"""What every endpoint gets: the tools of this replica, and one checked call."""

from dataclasses import dataclass

from upgraderun_operator.api.errors import ApiError
from upgraderun_operator.api.ports import Bell, Clock, Cluster, Counters, Runs, Store, Writer
from upgraderun_operator.journal.guards import (
    AttemptIs,
    EpochIs,
    GuardFailure,
    MayPublish,
    NoVerdict,
    WriterIs,
)
from upgraderun_operator.journal.records import CurrentWriter, Role
from upgraderun_operator.journal.run import RunView
from upgraderun_operator.journal.writes import (
    Broken,
    Contended,
    Contradicted,
    Done,
    EpochFell,
    Full,
    Gone,
    GuardFailed,
    Unavailable,
    WriteResult,
)
from upgraderun_operator.keys import Key
from upgraderun_operator.observe.ports import ForgeTokens
from upgraderun_protocol.effects import FaultPoint, no_fault
from upgraderun_protocol.ids import Epoch
from upgraderun_protocol.kinds import Writer as WriterKind
from upgraderun_protocol.messages import ErrorCode


@dataclass(frozen=True, slots=True)
class Tools:
    """One replica's access to cluster, journal and store; stateless but for caches."""

    cluster: Cluster
    runs: Runs
    writer: Writer
    store: Store
    clock: Clock
    counters: Counters
    bell: Bell
    tokens: ForgeTokens
    fault: FaultPoint = no_fault


@dataclass(frozen=True, slots=True)
class Call:
    """A call that passed its checks: the run as read, the writer that calls, its epoch."""

    view: RunView
    caller: CurrentWriter
    epoch: Epoch

    @property
    def key(self) -> Key:
        """Name of the run."""
        return Key(self.view.ref.namespace, self.view.ref.name)

    @property
    def writer_kind(self) -> WriterKind:
        """How the table of kinds names this writer."""
        publishes = self.caller.role is Role.PUBLISHER
        return WriterKind.PUBLISHER if publishes else WriterKind.RUNNER


def done_or_refuse(result: WriteResult) -> Done:
    """Give the success of a write; raise ApiError for everything else."""
    match result:
        case Done() as done:
            return done
        case GuardFailed(failure, _):
            raise _guard_error(failure)
        case EpochFell():
            raise ApiError(ErrorCode.EPOCH_STALE, "a newer process speaks for the run")
        case Contradicted(message, _):
            raise ApiError(ErrorCode.JOURNAL_CONFLICT, message)
        case Full(size, _):
            raise ApiError(ErrorCode.JOURNAL_FULL, f"the status would have {size} bytes")
        case Gone():
            raise ApiError(ErrorCode.RUN_UNKNOWN, "the run is gone")
        case Broken(message, _, _):
            raise ApiError(ErrorCode.JOURNAL_CONFLICT, f"the stored journal is broken: {message}")
        case Contended():
            raise ApiError(ErrorCode.CONTENDED, "too many writers at once; try again", 1)
        case Unavailable(cause):
            raise ApiError(ErrorCode.STORE_UNAVAILABLE, f"not known whether it stands: {cause}", 2)


def _guard_error(failure: GuardFailure) -> ApiError:
    match failure.guard:
        case NoVerdict():
            return ApiError(ErrorCode.RUN_TERMINAL, f"the run has ended: {failure.found}")
        case WriterIs() | AttemptIs():
            return ApiError(ErrorCode.NOT_CURRENT_WRITER, f"now speaks: {failure.found}")
        case EpochIs():
            return ApiError(ErrorCode.EPOCH_STALE, f"now holds: {failure.found}")
        case MayPublish():
            return ApiError(ErrorCode.PUBLICATION_HELD, failure.found)
        case _:
            return ApiError(ErrorCode.JOURNAL_CONFLICT, f"the run moved on: {failure.found}")
