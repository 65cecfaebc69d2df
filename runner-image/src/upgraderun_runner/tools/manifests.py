"""Tools that change the pair: `apply_upgrade`, `normalize_manifests` (upgrade-run.md §8).

Callers: `tools.registry`. Everything is staged and gated first; only a pair without violations is
promoted into `work/`, under an intent that recovery can finish or abort (§8.6, §13.3).
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.entries import Draft, EntryState
from upgraderun_protocol.ids import EntryId
from upgraderun_protocol.outcomes import ConflictKind
from upgraderun_protocol.records import to_bytes, to_json
from upgraderun_runner.agent.report import violation_notes
from upgraderun_runner.ecosystems.base import Pair, Select, StagedPair, Target
from upgraderun_runner.ecosystems.requests import ApplyRequest, NormalizeRequest
from upgraderun_runner.errors import RunConflicts
from upgraderun_runner.evidence import RECORD_VERSION, PromotionEvidence, summary_of
from upgraderun_runner.sandbox.recorder import StepCommands
from upgraderun_runner.text import essence
from upgraderun_runner.tools.bench import Bench
from upgraderun_runner.tools.step import Step, ToolFailed
from upgraderun_runner.workspace.errors import WorkspaceContradicts
from upgraderun_runner.workspace.promotion import (
    PROMOTION_SECOND,
    PairHashes,
    Promotes,
    PromotionPlan,
    delete_staging,
    image_digests,
    retain_pair,
    write_pair,
)


async def apply_upgrade(bench: Bench, step: Step, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Stage one eligible pair, judge it by Gate A, promote it."""
    target = _eligible(bench, str(arguments["dependency"]), str(arguments["version"]))
    step.intend(name=target.name, **{"from": target.from_version, "to": target.to_version})
    commands = step.commands(bench.sandbox)
    staging = bench.layout.staging(step.id)
    request = ApplyRequest(
        pair=bench.pair(),
        profile=bench.context.profile,
        platform=bench.acquisition.platform,
        target=target,
        select=Select(bench.bundle.upgrade.select),
        minimum_age_seconds=bench.bundle.upgrade.minimum_release_age_seconds,
        plan_time=_plan_time(bench),
        staging=staging,
        cache=bench.cache,
    )
    staged = await _staged(bench, step, bench.ecosystem.stage_apply(commands, request))
    _require_no_violation(bench, step, staged, "admission_refused")
    await promote(bench, step, _Promotion(Promotes.UPGRADE, target, staged, commands))
    return await _observed(bench, staged, target)


async def normalize_manifests(bench: Bench, step: Step, target: Target) -> dict[str, Any]:
    """Normalise the pair, judge it by Gate B against the base, promote it if a byte changed."""
    step.intend()
    commands = step.commands(bench.sandbox)
    request = NormalizeRequest(
        base=await bench.base_pair(),
        pair=bench.pair(),
        profile=bench.context.profile,
        platform=bench.acquisition.platform,
        target=target,
        minimum_age_seconds=bench.bundle.upgrade.minimum_release_age_seconds,
        plan_time=_plan_time(bench),
        staging=bench.layout.staging(step.id),
        cache=bench.cache,
    )
    staged = await _staged(bench, step, bench.ecosystem.stage_normalize(commands, request))
    _require_no_violation(bench, step, staged, "normalization_refused")
    if staged.changed:
        await promote(bench, step, _Promotion(Promotes.NORMALIZE, target, staged, commands))
    else:
        delete_staging(bench.layout, step.id, bench.fault)
    return await _observed(bench, staged, target)


class _Promotion:
    """What is promoted, and what led to it."""

    def __init__(
        self, promotes: Promotes, target: Target, staged: StagedPair, commands: StepCommands
    ) -> None:
        self.promotes = promotes
        self.target = target
        self.staged = staged
        self.commands = commands


async def promote(bench: Bench, step: Step, promotion: _Promotion) -> None:
    """Steps 1 to 5 of §8.6; staging is deleted once the `done` stands."""
    before, after = promotion.staged.before, promotion.staged.after
    manifest_path, lock_path = bench.pair_paths
    plan = PromotionPlan(
        promotion.promotes, manifest_path, lock_path, hashes(before), hashes(after), step.id
    )
    await asyncio.to_thread(
        retain_pair, bench.layout, plan, after.manifest, after.lock, bench.fault
    )
    evidence = PromotionEvidence(
        RECORD_VERSION,
        plan,
        promotion.target,
        summary_of(promotion.staged),
        promotion.commands.executed,
    )
    stored = {
        await bench.journal.store(after.manifest),
        await bench.journal.store(after.lock),
    }
    assert stored == set(image_digests(plan)), "the plan names what is stored"
    entry = EntryId(f"{step.id}/promotion")
    await bench.journal.append(
        Draft(
            entry,
            "promotion",
            EntryState.INTENT,
            {
                "promotes": promotion.promotes.value,
                "name": promotion.target.name,
                "from": promotion.target.from_version,
                "to": promotion.target.to_version,
            },
            {"plan": await bench.journal.store(to_bytes(evidence))},
        )
    )
    try:
        await asyncio.to_thread(
            write_pair, bench.layout, plan, after.manifest, after.lock, bench.fault
        )
    except WorkspaceContradicts as error:
        await bench.journal.append(conflict_draft(entry, "promotion", error))
        raise as_conflict(error) from error
    bench.journal.defer(
        Draft(entry, "promotion", EntryState.DONE),
        recorded=lambda: PROMOTION_SECOND.recorded(bench.fault),
    )
    bench.promoted_staging.append(step.id)


def as_conflict(error: WorkspaceContradicts) -> RunConflicts:
    """The same contradiction as an end of the run."""
    return RunConflicts(ConflictKind(error.kind), error.expected, error.observed)


def conflict_draft(entry: EntryId, kind: str, error: WorkspaceContradicts) -> Draft:
    """Word the conflict of an effect: both sides, so that a person can compare."""
    return Draft(
        entry,
        kind,
        EntryState.CONFLICT,
        {
            "conflict": ConflictKind(error.kind).value,
            "expected": error.expected[:96],
            "observed": error.observed[:96],
        },
    )


def hashes(pair: Pair) -> PairHashes:
    """Both SHA-256 of a pair."""
    return PairHashes(sha256_of(pair.manifest), sha256_of(pair.lock))


def _eligible(bench: Bench, name: str, version: str) -> Target:
    for candidate in bench.candidates.candidates:
        if candidate.eligible and (candidate.name, candidate.version) == (name, version):
            return candidate.target
    raise ToolFailed("not_eligible", f"{name} {version} is no eligible candidate")


def _plan_time(bench: Bench) -> datetime:
    return datetime.fromisoformat(bench.candidates.plan_time)


async def _staged(bench: Bench, step: Step, staging: Any) -> StagedPair:
    """Await staging; whatever goes wrong leaves no staging directory behind."""
    try:
        staged: StagedPair = await staging
    except Exception:
        delete_staging(bench.layout, step.id, bench.fault)
        raise
    return staged


def _require_no_violation(bench: Bench, step: Step, staged: StagedPair, outcome: str) -> None:
    """Refuse a pair that a gate or the resolver refused; `work/` stays as it is (§8.2)."""
    reason = staged.outcome or (outcome if staged.violations else "")
    if not reason:
        return
    delete_staging(bench.layout, step.id, bench.fault)
    raise ToolFailed(
        reason,
        refusal_of(staged) or reason,
        {
            "violations": to_json(staged.violations),
            "changes": to_json(staged.changes),
            "notes": list(staged.notes),
            "text": staged.text[:2000],
        },
    )


def refusal_of(staged: StagedPair) -> str:
    """One violation in full; several by code and subject, so that none is cut away."""
    if not staged.violations:
        return essence(staged.text)
    if len(staged.violations) == 1:
        return violation_notes(staged.violations)[0]
    return ", ".join(f"{v.code} {v.subject}" for v in staged.violations)


async def _observed(bench: Bench, staged: StagedPair, target: Target) -> dict[str, Any]:
    return {
        "target": to_json(target),
        "changed": staged.changed,
        "changes": to_json(staged.changes),
        "edits": to_json(staged.edits),
        "notes": list(staged.notes),
        "tree": await bench.tree(),
    }
