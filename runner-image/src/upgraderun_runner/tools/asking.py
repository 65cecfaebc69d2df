"""How the loop asks people: the question and what they read, stored; then the attempt parks itself.

Caller: the loop. Everything of the asking step is in the append that ends the attempt, so a kill before
it loses nothing but the asking. The next attempt decides the same again, and policy and grant judge it
anew (upgrade-run.md §11).
"""

from upgraderun_protocol.entries import EntryState
from upgraderun_protocol.ids import Sha256, TreeId
from upgraderun_protocol.outcomes import AWAITING_APPROVAL
from upgraderun_protocol.questions import (
    QUESTION_VERSION,
    RANGE_MAX,
    RANGES_MAX,
    QuestionKind,
    QuestionRecord,
)
from upgraderun_protocol.records import to_bytes
from upgraderun_runner.agent.policy import Ask
from upgraderun_runner.agent.report import ReportFacts, build_report, validation_notes
from upgraderun_runner.agent.view import RunView
from upgraderun_runner.errors import Asks
from upgraderun_runner.text import brief
from upgraderun_runner.tools import proposing
from upgraderun_runner.tools.bench import Bench
from upgraderun_runner.tools.step import Step, store_observation
from upgraderun_runner.tools.writing import PlannedWrite
from upgraderun_runner.workspace.diff import TreeDiff, patch_of
from upgraderun_runner.workspace.limits import PATCH_BYTES_MAX


async def ask(
    bench: Bench, step: Step, view: RunView, ruling: Ask, planned: PlannedWrite | None
) -> Asks:
    """Store question and report, and settle the step as interrupted: it is decided again."""
    diff = await _with(bench, planned)
    ranges: tuple[str, ...] = ()
    if ruling.kind is QuestionKind.UNEXERCISED_REPAIR:
        unexercised = await proposing.unexercised(bench, view)
        ranges = unexercised.ranges if unexercised is not None else ()
    sources = diff.without(bench.pair_paths)
    scope = bench.bundle.policy.scope
    expands = ruling.kind is QuestionKind.SCOPE_EXPANSION
    question = QuestionRecord(
        version=QUESTION_VERSION,
        kind=ruling.kind.value,
        step=step.id,
        tool=step.tool,
        subject=ruling.subject,
        files=len(sources.files),
        lines=sources.lines,
        files_max=scope.hard_files if expands else 0,
        lines_max=scope.hard_lines if expands else 0,
        tree="" if expands else diff.new,
        ranges=_shown(bench, ranges),
    )
    report = await _store_report(bench, view, ruling, diff)
    digest = await bench.journal.store(to_bytes(question))
    message = brief(bench.redactor, ruling.message)
    observation = await store_observation(
        bench.journal,
        {
            "tool": step.tool,
            "state": "interrupted",
            "reason": AWAITING_APPROVAL,
            "message": ruling.message,
        },
    )
    data = {"reason": AWAITING_APPROVAL, "message": message}
    step.settle(EntryState.INTERRUPTED, data, observation)
    return Asks(ruling.message, digest, report)


async def _with(bench: Bench, planned: PlannedWrite | None) -> TreeDiff:
    """What would differ from the base with this write done."""
    if planned is None:
        return await bench.sources(await bench.tree())
    return await bench.projected({planned.path: planned.after})


def _shown(bench: Bench, ranges: tuple[str, ...]) -> tuple[str, ...]:
    texts = tuple(bench.redactor.redact(text, RANGE_MAX) for text in ranges)
    if len(texts) <= RANGES_MAX:
        return texts
    return (*texts[: RANGES_MAX - 1], f"and {len(texts) - RANGES_MAX + 1} more")


async def _store_report(bench: Bench, view: RunView, ruling: Ask, diff: TreeDiff) -> Sha256:
    patch = await patch_of(bench.git, bench.context.base_tree, TreeId(diff.new), PATCH_BYTES_MAX)
    validation = await proposing.accepted_evidence(bench, view)
    facts = ReportFacts(
        outcome=AWAITING_APPROVAL,
        message=ruling.message,
        target=view.target,
        patch=patch.text,
        patch_is_cut=patch.truncated,
        baseline=bench.baseline,
        after=None if validation is None else validation.record,
        notes=() if validation is None else validation_notes(bench.baseline, validation.record),
        counts={"files": len(diff.files), "steps": len(view.steps)},
    )
    return await bench.journal.store(to_bytes(build_report(facts, bench.redactor)))
