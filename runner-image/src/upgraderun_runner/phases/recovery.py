"""What a start does with intents that nobody closed (upgrade-run.md §13.1 steps 4 to 8, §13.3, §13.4).

Caller: `run`, once per process, between opening the workspace and the loop; a first start passes
through it and finds nothing. A second pass appends nothing.
"""

import asyncio

from upgraderun_protocol.entries import Draft, Entry, EntryState
from upgraderun_protocol.fold import Fold
from upgraderun_protocol.ids import CommitId, EntryId, Sha256
from upgraderun_protocol.outcomes import ConflictKind
from upgraderun_protocol.records import RecordError, parse_json
from upgraderun_runner.agent.calls import read_call
from upgraderun_runner.agent.history import History
from upgraderun_runner.agent.view import step_indexes
from upgraderun_runner.errors import RunConflicts
from upgraderun_runner.evidence import PromotionEvidence
from upgraderun_runner.phases.session import Session
from upgraderun_runner.phases.workspace import PRELUDE, OpenWorkspace
from upgraderun_runner.tools.bench import Bench
from upgraderun_runner.tools.manifests import as_conflict, conflict_draft
from upgraderun_runner.tools.proposing import finish, proposal_entry
from upgraderun_runner.tools.step import store_observation
from upgraderun_runner.workspace.candidate import candidate_tree
from upgraderun_runner.workspace.errors import PathRefused, WorkspaceContradicts
from upgraderun_runner.workspace.files import ABSENT, hash_file
from upgraderun_runner.workspace.git import resolve_ref
from upgraderun_runner.workspace.promotion import (
    PROMOTION_SECOND,
    Abort,
    Contradiction,
    Finish,
    Nothing,
    PromotionJournal,
    decide_promotion,
    observe_pair,
    retained_lock,
    write_lock,
)
from upgraderun_runner.workspace.proposal import (
    ProposalContradiction,
    ProposalJournal,
    ProposalObservation,
    decide_proposal,
    proposal_ref,
    tree_is_present,
)
from upgraderun_runner.workspace.recipe import Recipe, commit_id
from upgraderun_runner.workspace.sweep import Keep, sweep


async def recover_files(session: Session, workspace: OpenWorkspace) -> None:
    """Sweep, promotions, file writes, interrupted prelude steps: before the prelude goes on."""
    fold = session.journal.fold
    await asyncio.to_thread(sweep, workspace.layout, _still_named(fold))
    for intent in fold.open_intents():
        if intent.kind == "promotion":
            await _promotion(session, workspace, intent)
    for intent in session.journal.fold.open_intents():
        if intent.kind == "step" and "path" in intent.data:
            await _file_write(session, workspace, intent)
        elif intent.kind in PRELUDE:
            message = "the runner ended inside; it runs again from the start"
            session.journal.defer(_interrupted(intent.id, intent.kind, message))


async def recover_steps(bench: Bench) -> None:
    """Proposals, then every other open step of the loop: after the prelude, before the loop.

    What is settled here is deferred: it travels with the next decision or with the end.
    """
    for intent in bench.journal.fold.open_intents():
        if intent.kind == "proposal":
            await _proposal(bench, intent)
    fold = bench.journal.fold
    for index in step_indexes(fold):
        if fold.outcome(f"s{index}") is None:
            await _interrupt_step(bench, fold, index)
    for intent in fold.of_kind("promotion"):
        step = intent.id.partition("/")[0]
        if intent.state is EntryState.INTENT and bench.layout.staging(step).exists():
            bench.promoted_staging.append(step)


def _still_named(fold: Fold) -> Keep:
    staging = {
        intent.id.partition("/")[0] for intent in fold.open_intents() if intent.kind == "promotion"
    }
    caches = {
        entry.data["cache"] for entry in fold.of_kind("acquire") if entry.state is EntryState.DONE
    }
    return Keep(frozenset(staging), frozenset(caches))


def _interrupted(entry: EntryId, kind: str, message: str) -> Draft:
    data = {"reason": "restarted", "message": message}
    return Draft(entry, kind, EntryState.INTERRUPTED, data)


async def _promotion(session: Session, workspace: OpenWorkspace, intent: Entry) -> None:
    """The rows of §13.3."""
    evidence = await session.journal.fetch_record(PromotionEvidence, intent.artifacts["plan"])
    plan, layout = evidence.plan, workspace.layout
    lock = retained_lock(layout, plan)
    stored = lock is not None or await session.client.has_artifact(Sha256(plan.after.lock))
    observed = observe_pair(layout, plan)
    decision = decide_promotion(PromotionJournal.OPEN, plan, observed, lock_copy=stored)
    if isinstance(decision, Nothing):
        return
    if isinstance(decision, Contradiction):
        error = WorkspaceContradicts(decision.kind, decision.expected, decision.observed)
        await session.journal.append(conflict_draft(intent.id, "promotion", error))
        raise as_conflict(error)
    if isinstance(decision, Abort):
        message = "the pair was at its before-image; nothing was promoted"
        session.journal.defer(_interrupted(intent.id, "promotion", message))
        return
    assert isinstance(decision, Finish)
    if decision.write_lock:
        content = lock or await session.journal.fetch(Sha256(plan.after.lock))
        await asyncio.to_thread(write_lock, layout, plan, content, session.fault)
    await _promoted(session, workspace, intent, evidence)


async def _promoted(
    session: Session, workspace: OpenWorkspace, intent: Entry, evidence: PromotionEvidence
) -> None:
    """Record promotion and step as done: the upgrade is there, whoever wrote the last byte."""
    tree = await candidate_tree(workspace.git, workspace.layout, workspace.base.tree)
    step = EntryId(intent.id.partition("/")[0])
    opened = session.journal.fold.intent(step)
    assert opened is not None, "a promotion belongs to a step with an intent"
    observation = await store_observation(
        session.journal,
        {
            "tool": opened.data["tool"],
            "state": "done",
            "result": {"recovered": True, "tree": tree, "notes": list(evidence.summary.notes)},
        },
    )
    data = {"tool": opened.data["tool"], "changed": "true", "recovered": "true", "tree": tree}
    if "name" in opened.data:
        data |= {key: opened.data[key] for key in ("name", "from", "to")}
    session.journal.defer(
        Draft(intent.id, "promotion", EntryState.DONE, {"recovered": "true"}),
        Draft(step, "step", EntryState.DONE, data, {"observation": observation}),
        recorded=lambda: PROMOTION_SECOND.recorded(session.fault),
    )


async def _file_write(session: Session, workspace: OpenWorkspace, intent: Entry) -> None:
    """Wholly old or wholly new: interrupted, and the agent is told which; else a conflict (§13.2)."""
    path = await _path_of(session, intent)
    try:
        found = hash_file(workspace.layout.work, path) or ABSENT
    except PathRefused as error:
        found = error.violation.code
    before, after = intent.data["before"], intent.data["after"]
    if found not in {before, after}:
        conflict = contradicted_file(path, before, after, found)
        await session.journal.append(conflict_draft(intent.id, "step", conflict))
        raise as_conflict(conflict)
    text = "the file has its new content" if found == after else "the file has its old content"
    await _settle_interrupted(session, intent.id, intent.data["tool"], text)


def contradicted_file(path: str, before: str, after: str, found: str) -> WorkspaceContradicts:
    """A source file is neither as before nor as after the repair; digests are cut to be read."""
    return WorkspaceContradicts(
        ConflictKind.FILE_CONTRADICTED.value,
        f"{path}: {before[:12]} or {after[:12]}",
        found[:64],
    )


async def _path_of(session: Session, intent: Entry) -> str:
    """The path as the decision has it: an entry may hold only its digest."""
    decision = session.journal.fold.done(f"{intent.id}/decision")
    assert decision is not None, "a step has its decision first"
    try:
        value = parse_json(await session.journal.fetch(decision.artifacts["decision"]))
    except RecordError:
        value = None
    call = read_call(value)
    assert call is not None, "a write had a valid decision"
    return str(call.arguments["path"]).removeprefix("./")


async def _settle_interrupted(
    session: Session | Bench, step: EntryId, tool: str, message: str
) -> None:
    observation = await store_observation(
        session.journal,
        {"tool": tool, "state": "interrupted", "reason": "restarted", "message": message},
    )
    session.journal.defer(
        Draft(
            step,
            "step",
            EntryState.INTERRUPTED,
            {"tool": tool, "reason": "restarted", "message": message},
            {"observation": observation},
        )
    )


async def _interrupt_step(bench: Bench, fold: Fold, index: int) -> None:
    step = EntryId(f"s{index}")
    intent = fold.intent(step)
    decision = fold.done(f"{step}/decision")
    assert decision is not None, "a step has its decision first"
    message = "the runner ended inside" if intent else "the runner ended before it began"
    await _settle_interrupted(bench, step, decision.data["tool"], message)


async def _proposal(bench: Bench, intent: Entry) -> None:
    """The rows of §13.4: finish the freeze under the same recipe, or stop."""
    recipe = await bench.journal.fetch_record(Recipe, intent.artifacts["recipe"])
    present = await tree_is_present(bench.git, recipe.tree)
    decision = decide_proposal(
        ProposalJournal.OPEN,
        ProposalObservation(
            expected=CommitId(intent.data["commit"]),
            ref=await resolve_ref(bench.git, proposal_ref(recipe.proposal)),
            recomputed=commit_id(recipe),
            recipe_tree=recipe.tree,
            tree_present=present,
            work_tree=None if present else await bench.tree(),
        ),
    )
    if isinstance(decision, ProposalContradiction):
        error = WorkspaceContradicts(decision.kind, decision.expected, decision.observed)
        await bench.journal.append(conflict_draft(intent.id, "proposal", error))
        raise RunConflicts(decision.kind, decision.expected, decision.observed)
    index = int(intent.id.removeprefix("proposal/s"))
    view = await History(bench.journal).view()
    await finish(bench, index, recipe, view, recovered=True)
    assert bench.journal.fold.done(proposal_entry(index)) is not None, "the freeze is recorded"
    step = EntryId(f"s{index}")
    observation = await store_observation(
        bench.journal,
        {
            "tool": "prepare_proposal",
            "state": "done",
            "result": {"recovered": True, "proposal": recipe.proposal, "commit": commit_id(recipe)},
        },
    )
    bench.journal.defer(
        Draft(
            step,
            "step",
            EntryState.DONE,
            {"tool": "prepare_proposal", "recovered": "true", "proposal": recipe.proposal},
            {"observation": observation},
        )
    )
