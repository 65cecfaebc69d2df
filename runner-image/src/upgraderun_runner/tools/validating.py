"""The tool `run_validation`: the same checks on exactly the candidate tree (upgrade-run.md §7, phase 10).

Caller: `tools.registry`. It acquires for this tree first, which is a no-op where nothing is missing,
and measures coverage where sources beyond the pair changed.
"""

import shutil
from typing import Any, Final

from upgraderun_protocol.canonical import digest_of
from upgraderun_protocol.ids import Sha256, TreeId
from upgraderun_protocol.records import to_bytes, to_json
from upgraderun_runner import limits
from upgraderun_runner.ecosystems.base import CheckResult, CoverageRecord, ValidationRecord
from upgraderun_runner.ecosystems.python.ecosystem import PythonEcosystem
from upgraderun_runner.ecosystems.requests import (
    AcquireRequest,
    CoverageRequest,
    ValidationRequest,
)
from upgraderun_runner.evidence import RECORD_VERSION, ValidationEvidence
from upgraderun_runner.performing import AsyncEffect
from upgraderun_runner.sandbox.recorder import StepCommands
from upgraderun_runner.tools.bench import Bench
from upgraderun_runner.tools.step import Step
from upgraderun_runner.workspace.snapshot import make_snapshot


async def run_validation(
    bench: Bench, step: Step
) -> tuple[dict[str, Any], ValidationRecord, Sha256]:
    """Validate `work/` as it is: observation, record and the digest of the evidence."""
    tree = await bench.tree()
    step.intend(tree=tree)
    commands = step.commands(bench.sandbox)
    try:
        request = await _request(bench, step, tree, commands)
        record = await VALIDATION(bench.fault, bench.ecosystem, commands, request)
        coverage = await _coverage(bench, commands, request, record)
    finally:
        shutil.rmtree(bench.layout.scratch(step.id), ignore_errors=True)
    bench.journal.defer(recorded=lambda: VALIDATION.recorded(bench.fault))
    evidence = ValidationEvidence(RECORD_VERSION, record, commands.executed, coverage)
    digest = await bench.journal.store(to_bytes(evidence))
    return _observed(record, coverage), record, digest


async def _validate(
    ecosystem: PythonEcosystem, commands: StepCommands, request: ValidationRequest
) -> ValidationRecord:
    return await ecosystem.validate(commands, request)


VALIDATION: Final = AsyncEffect("validation", _validate)


async def _request(
    bench: Bench, step: Step, tree: TreeId, commands: StepCommands
) -> ValidationRequest:
    snapshot = await make_snapshot(bench.git, bench.layout, tree)
    scratch = bench.layout.scratch(step.id)
    acquisition = await bench.ecosystem.acquire(
        commands,
        AcquireRequest(
            snapshot=snapshot,
            profile=bench.context.profile,
            cache=bench.cache,
            scratch=scratch / "acquire",
            nonce=bench.seams.new_id(),
            previous=bench.acquisition,
        ),
    )
    return ValidationRequest(
        tree=tree,
        config_hash=bench.context.config_hash,
        snapshot=snapshot,
        profile=bench.context.profile,
        acquisition=acquisition,
        cache=bench.cache,
        scratch=scratch / "checks",
        base_tag=bench.context.base_tag,
        check_timeout_seconds=bench.bundle.policy.check_timeout_seconds,
        baseline=bench.baseline,
        base_snapshot=await bench.base_snapshot(),
    )


async def _coverage(
    bench: Bench, commands: StepCommands, request: ValidationRequest, record: ValidationRecord
) -> CoverageRecord | None:
    """Coverage of changed sources, asked only where nothing was introduced (§7.4)."""
    sources = await bench.sources(TreeId(record.tree))
    if not sources.files or record.introduced or not record.conclusive:
        return None
    assert request.base_snapshot is not None
    return await bench.ecosystem.coverage(
        commands,
        CoverageRequest(
            tree=request.tree,
            config_hash=request.config_hash,
            snapshot=request.snapshot,
            base_snapshot=request.base_snapshot,
            changed_paths=tuple(change.path for change in sources.files),
            profile=request.profile,
            acquisition=request.acquisition,
            cache=request.cache,
            scratch=request.scratch.with_name("coverage"),
            base_tag=request.base_tag,
            check_timeout_seconds=request.check_timeout_seconds,
            flaky=record.flaky,
        ),
    )


def introduced_word(record: ValidationRecord) -> str:
    """How the journal spells an introduced set: "0", or count and a digest of its keys."""
    keys = sorted(finding.key for finding in record.introduced)
    return f"{len(keys)}:{digest_of(keys)[:16]}" if keys else "0"


def _observed(record: ValidationRecord, coverage: CoverageRecord | None) -> dict[str, Any]:
    return {
        "tree": record.tree,
        "conclusive": record.conclusive,
        "clean": record.clean,
        "introduced": [to_json(finding) for finding in record.introduced],
        "introduced_digest": introduced_word(record),
        "flaky": list(record.flaky),
        "reasons": list(record.reasons),
        "checks": [_check(check) for check in record.checks],
        "unexercised": [] if coverage is None else to_json(coverage.unexercised),
        "coverage_problem": "" if coverage is None else coverage.problem,
    }


def _check(check: CheckResult) -> dict[str, Any]:
    return {
        "name": check.name,
        "kind": check.kind,
        "state": check.state.value,
        "conclusive": check.conclusive,
        "findings": [finding.key for finding in check.findings[:50]],
        "reason": check.reason,
        "stdout": check.stdout_tail[-limits.STDERR_SHOWN_BYTES :],
        "stderr": check.stderr_tail[-limits.STDERR_SHOWN_BYTES :],
    }
