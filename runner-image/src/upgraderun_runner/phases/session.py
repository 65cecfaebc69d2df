"""What one runner process works with before there is a bench: bundle, journal, tools of the image.

Callers: every module of `phases`; `run` makes the one session. Phases are recorded through it: an
intent before the first effect, one outcome, and for an end the report that people will read.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from upgraderun_protocol.bundle import Bundle
from upgraderun_protocol.effects import FaultPoint
from upgraderun_protocol.entries import Draft, Entry, EntryState
from upgraderun_protocol.ids import EntryId, Sha256
from upgraderun_protocol.records import to_bytes
from upgraderun_protocol.redact import Redactor
from upgraderun_runner.agent.loop import Control
from upgraderun_runner.agent.report import ReportFacts, build_report
from upgraderun_runner.client.journal import Journal
from upgraderun_runner.client.operator import OperatorClient
from upgraderun_runner.client.transport import Seams
from upgraderun_runner.ecosystems.python.ecosystem import PythonEcosystem
from upgraderun_runner.errors import RunEnds
from upgraderun_runner.sandbox.driver import Sandbox
from upgraderun_runner.sandbox.recorder import PlannedCommand, StepCommands
from upgraderun_runner.text import brief
from upgraderun_runner.tools.step import commands_intent
from upgraderun_runner.workspace.git import Credential, GitSettings


@dataclass(frozen=True, slots=True)
class Session:
    """One process of the runner. `root` is the workspace volume, `python` the image's, as `3.11`."""

    bundle: Bundle
    client: OperatorClient
    journal: Journal
    root: Path
    git: GitSettings
    credential: Callable[[], Awaitable[Credential | None]]
    ecosystem: PythonEcosystem
    sandbox: Sandbox
    control: Control
    redactor: Redactor
    seams: Seams
    fault: FaultPoint
    python: str

    def phase(self, kind: str) -> "PhaseStep":
        """The next repetition of a prelude phase: `baseline/1`, then `baseline/2`."""
        taken = {entry.id for entry in self.journal.fold.of_kind(kind)}
        return PhaseStep(self, kind, EntryId(f"{kind}/{len(taken) + 1}"))

    def finished(self, kind: str) -> Entry | None:
        """The last `done` of a prelude phase. Raises RunEnds if the phase ended the run already."""
        for entry in reversed(self.journal.fold.of_kind(kind)):
            if entry.state is EntryState.FAILED:
                raise RunEnds(
                    entry.data["outcome"], entry.data["message"], entry.artifacts.get("detail")
                )
            if entry.state is EntryState.DONE:
                return entry
        return None


class PhaseStep:
    """One try of one prelude phase."""

    def __init__(self, session: Session, kind: str, entry: EntryId) -> None:
        self._session = session
        self._kind = kind
        self._intent: Draft | None = None
        self.id = entry

    @property
    def scratch_name(self) -> str:
        """Name of a scratch directory that only this try uses."""
        return self.id.replace("/", "-")

    def intend(self, **data: str) -> None:
        """Word the intent; it is appended before the first effect, or with the outcome at last."""
        self._intent = Draft(self.id, self._kind, EntryState.INTENT, data)

    async def begin(self, *more: Draft) -> None:
        """Append the intent, and whatever was deferred, in one write."""
        intent, self._intent = self._intent, None
        await self._session.journal.append(*(() if intent is None else (intent,)), *more)

    def commands(self) -> StepCommands:
        """Commands of this try; its intent is appended together with their plan."""
        return StepCommands(self._session.sandbox, self.id, self._announce)

    async def _announce(self, plan: tuple[PlannedCommand, ...]) -> None:
        await self.begin(await commands_intent(self._session.journal, self.id, plan))

    def done(
        self,
        data: Mapping[str, str],
        artifacts: Mapping[str, Sha256],
        recorded: Callable[[], None] | None = None,
    ) -> None:
        """Defer the outcome: it travels with the next phase's intent. Then `recorded` is called."""
        draft = Draft(self.id, self._kind, EntryState.DONE, data, artifacts)
        pending = () if self._intent is None else (self._intent,)
        self._intent = None
        self._session.journal.defer(*pending, draft, recorded=recorded)

    async def ends(self, facts: ReportFacts) -> RunEnds:
        """Record that this phase ends the run: report first, then the entry that names it."""
        session = self._session
        report = await session.journal.store(to_bytes(build_report(facts, session.redactor)))
        message = brief(session.redactor, facts.message)
        await self.begin(
            Draft(
                self.id,
                self._kind,
                EntryState.FAILED,
                {"outcome": facts.outcome, "message": message},
                {"detail": report},
            )
        )
        return RunEnds(facts.outcome, facts.message, report)
