"""From an end or a wait to what people read: the Event of the end, the message of the wait."""

from dataclasses import dataclass
from typing import Any

from support.scenes import Scene, report
from upgraderun_operator.build.drafts import fitted
from upgraderun_operator.decide.decision import Pause
from upgraderun_operator.decide.effects import Announce, Append, WriteReport
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.readings import ABSENT
from upgraderun_operator.decide.run import decide
from upgraderun_operator.journal.conditions import conflict_reason
from upgraderun_operator.model.conflicts import CONFLICTS
from upgraderun_protocol.entries import EntryState
from upgraderun_protocol.limits import OUTCOME_DATA_MESSAGE_MAX, VERDICT_MESSAGE_MAX
from upgraderun_protocol.outcomes import OUTCOMES, ConflictKind
from upgraderun_protocol.redact import Redactor
from upgraderun_protocol.report import ReportRecord
from upgraderun_runner.agent.report import ReportFacts, build_report
from upgraderun_runner.process import Conclusion
from upgraderun_runner.text import brief


@dataclass(frozen=True, slots=True)
class Told:
    """One text under the reason that status shows. `where` must be named in it, `step` as well.

    `conflict` is the kind of contradiction that an end stands for, as status spells it.
    """

    reason: str
    text: str
    where: str
    step: str
    conflict: str | None = None

    @property
    def name(self) -> str:
        """Row under which people look it up: of a contradiction, its kind."""
        return self.conflict or self.reason


def end_of_the_operator(scene: Scene, where: str, **parts: Any) -> Told:
    """Let the operator end this run: report, outcome entry, then the Event that tells the end."""
    known = {"policy": scene.policy, "record": ABSENT, "old_pods": (), **parts}
    decision = decide(scene.seen(**{"report": ABSENT, **known}))
    shown: Any = ABSENT
    if isinstance(decision.what, WriteReport):
        content = decision.what.content
        shown = report(content.outcome, message=content.message)
        decision = decide(scene.seen(**{**known, "report": shown}))
    assert isinstance(decision.what, Append), decision
    for draft in decision.what.change.drafts:
        scene.entry(draft.id, draft.kind, draft.state, draft.data, draft.artifacts)
    return announced(scene, where, record=ABSENT, report=shown)


def end_of_the_runner(facts: ReportFacts, where: str) -> Told:
    """Let a runner end by these facts: its record says the same as its verdict."""
    record = build_report(facts, Redactor())
    return end_of_a_verdict(Conclusion(facts.outcome, facts.message), where, record)


def end_of_a_verdict(
    conclusion: Conclusion,
    where: str,
    record: ReportRecord | None = None,
    scene: Scene | None = None,
) -> Told:
    """Let a pod's verdict end the run, as the runner API records it; a runner's, if none is given."""
    redactor, found = Redactor(), conclusion.conflict
    said = brief(redactor, conclusion.message, VERDICT_MESSAGE_MAX)
    data: dict[str, str] = {"message": redactor.redact(said, OUTCOME_DATA_MESSAGE_MAX)}
    if found is not None:
        data |= {"conflict": found.kind.value}
        data |= {"expected": found.expected[:96], "observed": found.observed[:96]}
    scene = scene or Scene().working()
    entry = fitted("outcome", "outcome", EntryState.DONE, {"outcome": conclusion.outcome, **data})
    scene.entry(entry.id, entry.kind, entry.state, entry.data)
    shown = report(OUTCOMES[conclusion.outcome].reason)
    return announced(scene, where, record=record or ABSENT, report=shown)


def announced(scene: Scene, where: str, **parts: Any) -> Told:
    """Read the Event of a run whose outcome stands."""
    decision = decide(scene.seen(**parts))
    assert isinstance(decision.what, Announce), decision
    event = decision.what.event
    conflict = scene.view.state.conflict
    step = OUTCOMES[event.key.removeprefix("outcome/")].next_step
    if conflict is not None:
        step = CONFLICTS[ConflictKind(conflict.kind)].next_step
    kind = None if conflict is None else conflict_reason(conflict.kind)
    return Told(event.reason, event.message, where, step, kind)


def waiting(seen: Observation, where: str, step: str) -> Told:
    """Read what a run that waits says: it must be shown to people."""
    decision = decide(seen)
    assert isinstance(decision.what, Pause), decision
    assert decision.what.shown, decision
    return Told(decision.reason, decision.message, where, step)
