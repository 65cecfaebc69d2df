"""The report of a loop's end: what was tried, what was found, what stands in `work/` (DESIGN §3).

Caller: `run`, for every end but a frozen proposal, whose report was stored with it.
"""

from upgraderun_protocol.ids import Sha256
from upgraderun_protocol.records import parse_json, to_bytes
from upgraderun_runner.agent.ending import End
from upgraderun_runner.agent.report import (
    ReportFacts,
    build_report,
    candidate_notes,
    closure_notes,
    held_notes,
    untried_notes,
    validation_notes,
)
from upgraderun_runner.agent.telling import in_whole_words
from upgraderun_runner.agent.view import RunView, StepView
from upgraderun_runner.ecosystems.base import ValidationRecord
from upgraderun_runner.evidence import ValidationEvidence
from upgraderun_runner.tools.bench import Bench
from upgraderun_runner.tools.proposing import all_changes, promotions
from upgraderun_runner.workspace.diff import diff_trees, patch_of
from upgraderun_runner.workspace.limits import PATCH_BYTES_MAX


async def store_end_report(bench: Bench, view: RunView, end: End) -> tuple[End, Sha256]:
    """Word the end, build and store its report; message and digest go into the verdict."""
    after = await _last_validation(bench, view)
    record = None if after is None else after.record
    told = in_whole_words(end, view, record)
    facts = await _facts(bench, view, told, record)
    return told, await bench.journal.store(to_bytes(build_report(facts, bench.redactor)))


async def _facts(
    bench: Bench, view: RunView, end: End, after: ValidationRecord | None
) -> ReportFacts:
    tree = await bench.tree()
    diff = await diff_trees(bench.git, bench.context.base_tree, tree)
    patch = await patch_of(bench.git, bench.context.base_tree, tree, PATCH_BYTES_MAX)
    changes = all_changes(await promotions(bench))
    target = view.target
    return ReportFacts(
        outcome=end.outcome,
        message=end.message,
        target=target,
        patch=patch.text,
        patch_is_cut=patch.truncated,
        baseline=bench.baseline,
        after=after,
        notes=(
            *await _refusals(bench, view),
            *(() if target is None else closure_notes(changes, target.name)),
            *held_notes(changes),
            *(() if target is None else untried_notes(bench.context.profile.untried, target)),
            *(() if after is None else validation_notes(bench.baseline, after)),
            *(candidate_notes(bench.candidates) if target is None else _others(bench, view)),
            *bench.context.profile.notes,
        ),
        counts={"files": len(diff.files), "steps": len(view.steps)},
    )


async def _last_validation(bench: Bench, view: RunView) -> ValidationEvidence | None:
    step = view.validations[-1] if view.validations else None
    if step is None or step.record is None:
        return None
    return await bench.journal.fetch_record(ValidationEvidence, step.record)


async def _refusals(bench: Bench, view: RunView) -> tuple[str, ...]:
    """What the last failed steps were refused for, violation by violation."""
    notes: list[str] = []
    for step in [s for s in view.settled if s.is_failed][-3:]:
        notes += await _refusal(bench, step)
    return tuple(notes)


async def _refusal(bench: Bench, step: StepView) -> list[str]:
    if step.observation is None:
        return []
    value = parse_json(await bench.journal.fetch(step.observation))
    result = value.get("result", {})
    notes = [f"step {step.index} {step.tool or 'without tool'}: {value.get('message', '')}"]
    notes += [
        f"{v['code']} {v['subject']}: expected {v['expected']}, observed {v['observed']}"
        for v in result.get("violations", ())
    ]
    notes += [f"{f['code']}: {f['detail']}" for f in result.get("failures", ())]
    if result.get("text"):
        notes.append(str(result["text"]))
    return notes


def _others(bench: Bench, view: RunView) -> tuple[str, ...]:
    """Other eligible versions, which a person may name in the next run."""
    target = view.target
    others = [
        f"{item.name} {item.from_version} -> {item.to_version}"
        for item in bench.candidates.ranked
        if target is None or item.name != target.name
    ]
    return (f"also eligible: {', '.join(others)}",) if others else ()
