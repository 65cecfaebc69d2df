"""The tool `prepare_proposal`: readiness, then the freeze of the one commit (upgrade-run.md §10).

Callers: `tools.registry`, and recovery for the second half (`finish`), which may be repeated: the same
recipe gives the same commit, and the record takes its time from the recipe.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from upgraderun_protocol.entries import Draft, EntryState
from upgraderun_protocol.ids import EntryId, RunUid, Sha256, TreeId
from upgraderun_protocol.records import to_bytes, to_json
from upgraderun_runner.agent.policy import Unexercised
from upgraderun_runner.agent.readiness import Candidate, Failure, failures_of
from upgraderun_runner.agent.report import (
    ReportFacts,
    build_report,
    closure_notes,
    held_notes,
    untried_notes,
    validation_notes,
)
from upgraderun_runner.agent.view import NOT_READY, UNEXERCISED, RunView
from upgraderun_runner.ecosystems.base import CheckResult, LockChange, Target
from upgraderun_runner.evidence import PromotionEvidence, ValidationEvidence
from upgraderun_runner.forge.texts import (
    CheckFact,
    FileFact,
    ProposalFacts,
    proposal_body,
    proposal_title,
)
from upgraderun_runner.performing import AsyncEffect
from upgraderun_runner.tools.bench import Bench
from upgraderun_runner.tools.granted import ApprovedRisk, approved_risk, only_unexercised
from upgraderun_runner.tools.step import Step, ToolFailed
from upgraderun_runner.workspace.diff import TreeDiff, diff_trees, patch_of
from upgraderun_runner.workspace.limits import PATCH_BYTES_MAX
from upgraderun_runner.workspace.proposal import (
    RECORD_VERSION,
    FrozenProposal,
    ProposalRecord,
    change_violations,
    freeze,
    proposal_files,
    proposal_id,
    proposal_ref,
    seal,
)
from upgraderun_runner.workspace.proposal import Target as RecordTarget
from upgraderun_runner.workspace.recipe import Recipe, commit_id, git_identity


async def prepare_proposal(
    bench: Bench, step: Step, arguments: Mapping[str, Any], view: RunView
) -> dict[str, Any]:
    """Judge readiness; if nothing fails, freeze. Raises ToolFailed with every failure."""
    step.intend()
    tree = await PROPOSAL_OBJECTS(bench.fault, bench)
    validation = await accepted_evidence(bench, view)
    diff = await diff_trees(bench.git, bench.context.base_tree, tree)
    failures = await _failures(bench, view, tree, diff, validation)
    risk = await approved_risk(bench.journal, tree, failures)
    if failures and risk is None:
        raise not_ready(failures)
    assert validation is not None, "readiness asks for an accepted validation"
    recipe = await _recipe(bench, step, arguments, diff, validation, risk)
    digest = await bench.journal.store(to_bytes(recipe))
    await step.begin(
        Draft(
            proposal_entry(step.index),
            "proposal",
            EntryState.INTENT,
            {
                "proposal": recipe.proposal,
                "commit": commit_id(recipe),
                "tree": recipe.tree,
                "ref": proposal_ref(recipe.proposal),
            },
            {"recipe": digest},
        )
    )
    await finish(bench, step.index, recipe, view, recovered=False)
    return {"proposal": recipe.proposal, "commit": commit_id(recipe), "tree": recipe.tree}


async def finish(
    bench: Bench, index: int, recipe: Recipe, view: RunView, *, recovered: bool
) -> None:
    """Commit, ref, records, upload; the `done` is deferred. The intent stands already (§10)."""
    commit = await freeze(bench.git, recipe, bench.fault)
    diff = await diff_trees(bench.git, bench.context.base_tree, recipe.tree)
    files, contents = await proposal_files(bench.git, diff, frozenset(bench.pair_paths))
    target = promoted(view)
    validation = await accepted_evidence(bench, view)
    assert validation is not None, "a proposal has an accepted validation"
    time = datetime.fromtimestamp(recipe.unix_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    record = ProposalRecord(
        version=RECORD_VERSION,
        recipe=recipe,
        base_commit=bench.context.base_commit,
        base_tree=bench.context.base_tree,
        commit=commit,
        target=RecordTarget(
            bench.context.profile.ecosystem, target.name, target.from_version, target.to_version
        ),
        pair=bench.pair_paths,
        files=files,
        evidence=evidence_digests(bench, view),
        readiness=("ready",),
        config_hash=bench.context.config_hash,
        images={"toolchain": bench.context.profile.image.image},
        time=time,
    )
    frozen = seal(record, contents)
    await PROPOSAL_UPLOAD(bench.fault, bench, frozen)
    report = await _store_report(bench, recipe, diff, target, validation)
    bench.journal.defer(
        Draft(
            proposal_entry(index),
            "proposal",
            EntryState.DONE,
            {
                "name": target.name,
                "from": target.from_version,
                "to": target.to_version,
                "files": str(len(diff.files)),
                "added": str(sum(change.added for change in diff.files)),
                "removed": str(sum(change.removed for change in diff.files)),
                **({"recovered": "true"} if recovered else {}),
                **({"sources": "true"} if diff.without(bench.pair_paths).files else {}),
            },
            {"record": Sha256(frozen.digest), "report": report},
        ),
        recorded=lambda: PROPOSAL_UPLOAD.recorded(bench.fault),
    )


async def _objects(bench: Bench) -> TreeId:
    """Write the candidate's objects into the run's git."""
    return await bench.tree()


async def _upload(bench: Bench, frozen: FrozenProposal) -> None:
    for artifact in frozen.artifacts:
        await bench.journal.store(artifact.content)


PROPOSAL_OBJECTS: Final = AsyncEffect("proposal_objects", _objects)
PROPOSAL_UPLOAD: Final = AsyncEffect("proposal_upload", _upload)


async def unexercised(bench: Bench, view: RunView) -> Unexercised | None:
    """The ranges that no test runs, where nothing else keeps the candidate from being ready."""
    tree = await bench.tree()
    validation = await accepted_evidence(bench, view)
    diff = await diff_trees(bench.git, bench.context.base_tree, tree)
    return only_unexercised(tree, await _failures(bench, view, tree, diff, validation))


def proposal_entry(index: int) -> EntryId:
    """Id of the proposal that a step freezes."""
    return EntryId(f"proposal/s{index}")


def promoted(view: RunView) -> Target:
    """The run's target; there is one wherever a proposal is made."""
    assert view.target is not None, "an upgrade is promoted before a proposal is prepared"
    return view.target


async def accepted_evidence(bench: Bench, view: RunView) -> ValidationEvidence | None:
    """The evidence of the accepted validation, read from its artifact."""
    step = view.accepted_validation
    if step is None or step.record is None:
        return None
    return await bench.journal.fetch_record(ValidationEvidence, step.record)


def evidence_digests(bench: Bench, view: RunView) -> dict[str, str]:
    """Artifacts that a proposal rests on, by what they are."""
    fold = bench.journal.fold
    found: dict[str, str] = {}
    for kind, role in (("baseline", "record"), ("candidates", "list"), ("profile", "context")):
        entry = fold.last(kind, EntryState.DONE)
        if entry is not None:
            found[kind] = entry.artifacts[role]
    step = view.accepted_validation
    if step is not None and step.record is not None:
        found["validation"] = step.record
    return found


async def promotions(bench: Bench) -> tuple[PromotionEvidence, ...]:
    """What was promoted, in order, read from the artifacts of the promotions that are done."""
    fold = bench.journal.fold
    return tuple(
        [
            await bench.journal.fetch_record(PromotionEvidence, entry.artifacts["plan"])
            for entry in fold.of_kind("promotion")
            if entry.state is EntryState.INTENT and fold.done(entry.id) is not None
        ]
    )


async def _failures(
    bench: Bench,
    view: RunView,
    tree: TreeId,
    diff: TreeDiff,
    validation: ValidationEvidence | None,
) -> tuple[Failure, ...]:
    sources = diff.without(bench.pair_paths)
    target = promoted(view)
    candidate = Candidate(
        tree=tree,
        journaled_tree=view.tree,
        config_hash=bench.context.config_hash,
        images=bench.context.images,
        validation=None if validation is None else validation.record,
        coverage=None if validation is None else validation.coverage,
        violations=bench.ecosystem.judge_pair(await bench.base_pair(), bench.pair(), target),
        protected=tuple(
            change.path
            for change in sources.files
            if bench.protected.match(change.path) is not None
        ),
        sources=tuple(change.path for change in sources.files),
        lines=sources.lines,
        scope=bench.bundle.policy.scope,
    )
    refused = tuple(
        Failure("protected_file_changed", f"{violation.path}: {violation.detail}")
        for violation in change_violations(diff.files)
    )
    return failures_of(candidate) + refused


def not_ready(failures: tuple[Failure, ...]) -> ToolFailed:
    """The refusal of a tree that may not become the commit: every failure of §10."""
    codes = {failure.code for failure in failures}
    reason = UNEXERCISED if codes == {UNEXERCISED} else NOT_READY
    shown = "; ".join(f"{failure.code}: {failure.detail}" for failure in failures)
    return ToolFailed(reason, shown, {"failures": to_json(failures)})


async def _recipe(
    bench: Bench,
    step: Step,
    arguments: Mapping[str, Any],
    diff: TreeDiff,
    validation: ValidationEvidence,
    risk: ApprovedRisk | None,
) -> Recipe:
    """Everything that determines the commit; the time is the intent's, in whole seconds."""
    policy = bench.bundle.policy
    applied = await promotions(bench)
    target = applied[-1].target
    proposal = proposal_id(RunUid(bench.bundle.run.uid), step.index)
    facts = await _facts(bench, arguments, diff, validation)
    if risk is not None:
        facts = replace(facts, unexercised=risk.ranges, approvers=(risk.approver,))
    return Recipe(
        tree=diff.new,
        parent=bench.context.base_commit,
        author_name=git_identity(policy.author_name),
        author_email=git_identity(policy.author_email),
        unix_seconds=int(bench.seams.now().timestamp()),
        title=proposal_title(
            target.name,
            target.from_version,
            target.to_version,
            bench.redactor,
            str(arguments["title"]),
        ),
        body=proposal_body(facts, bench.redactor),
        run_uid=RunUid(bench.bundle.run.uid),
        proposal=proposal,
    )


async def _facts(
    bench: Bench, arguments: Mapping[str, Any], diff: TreeDiff, validation: ValidationEvidence
) -> ProposalFacts:
    """What the body tells, from evidence alone."""
    applied = await promotions(bench)
    target = applied[-1].target
    changes = all_changes(applied)
    chosen = next(
        candidate
        for candidate in bench.candidates.candidates
        if (candidate.name, candidate.version) == (target.name, target.to_version)
    )
    edits = [edit for promotion in applied for edit in promotion.summary.edits]
    baseline = {check.name: shown_state(check) for check in bench.baseline.checks}
    return ProposalFacts(
        ecosystem=bench.context.profile.ecosystem,
        name=target.name,
        from_version=target.from_version,
        to_version=target.to_version,
        change_class=chosen.change_class.value,
        age=f"published {chosen.published}, judged at {bench.candidates.plan_time}",
        constraint_edit="; ".join(f"{e.where}: {e.before} -> {e.after}" for e in edits) or None,
        closure=closure_notes(tuple(c for c in changes if not _left(c)), target.name),
        departures=tuple(f"{c.name} {', '.join(c.before)}" for c in changes if _left(c)),
        files=tuple(FileFact(change.path, change.added, change.removed) for change in diff.files),
        checks=tuple(
            CheckFact(check.name, baseline.get(check.name, "absent"), shown_state(check))
            for check in validation.record.checks
        ),
        coverage=_coverage_sentence(validation),
        notes=(
            *(note for promotion in applied for note in promotion.summary.notes),
            *untried_notes(bench.context.profile.untried, target),
            *validation_notes(bench.baseline, validation.record),
            *bench.context.profile.notes,
        ),
        held=held_notes(changes),
        mode=bench.bundle.mode,
        model=None,
        config_hash=bench.context.config_hash,
        images={"toolchain": bench.context.profile.image.image},
        isolation=bench.sandbox.isolation.value,
        summary=str(arguments["summary"]),
    )


def all_changes(applied: tuple[PromotionEvidence, ...]) -> tuple[LockChange, ...]:
    """What moved in the lock, each name once: a later promotion knows better."""
    last = {change.name: change for promotion in applied for change in promotion.summary.changes}
    return tuple(last.values())


def shown_state(check: CheckResult) -> str:
    """State of a check for people, with the number of tests where it ran some."""
    return f"{check.state.value} ({len(check.tests)} tests)" if check.tests else check.state.value


def _left(change: LockChange) -> bool:
    return change.kind == "left"


def _coverage_sentence(validation: ValidationEvidence) -> str | None:
    coverage = validation.coverage
    if coverage is None:
        return None
    ran = sum(judgement.exercised for judgement in coverage.judgements)
    return f"{ran} of {len(coverage.judgements)} changed ranges were run by a test"


async def _store_report(
    bench: Bench, recipe: Recipe, diff: TreeDiff, target: Target, validation: ValidationEvidence
) -> Sha256:
    patch = await patch_of(bench.git, bench.context.base_tree, recipe.tree, PATCH_BYTES_MAX)
    applied = await promotions(bench)
    changes = all_changes(applied)
    notes = tuple(note for promotion in applied for note in promotion.summary.notes)
    facts = ReportFacts(
        outcome="proposal_prepared",
        message=f"{recipe.title}: one commit is frozen",
        target=target,
        patch=patch.text,
        patch_is_cut=patch.truncated,
        baseline=bench.baseline,
        after=validation.record,
        notes=(
            *closure_notes(changes, target.name),
            *held_notes(changes),
            *untried_notes(bench.context.profile.untried, target),
            *validation_notes(bench.baseline, validation.record),
            *notes,
            *bench.context.profile.notes,
        ),
        counts={
            "files": len(diff.files),
            "added": sum(change.added for change in diff.files),
            "removed": sum(change.removed for change in diff.files),
        },
    )
    return await bench.journal.store(to_bytes(build_report(facts, bench.redactor)))
