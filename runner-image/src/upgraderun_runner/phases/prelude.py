"""Phases 3 to 6: profile, acquire, baseline, candidates (upgrade-run.md §3). First start and resume alike.

Caller: `run`. What the fold says is done isn't done again; its record is read from its artifact. The
result is the bench that tools work on.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from upgraderun_protocol.canonical import digest_of
from upgraderun_protocol.entries import EntryState
from upgraderun_protocol.ids import Sha256
from upgraderun_protocol.records import to_bytes, to_json
from upgraderun_runner.ecosystems.base import (
    AcquisitionFailed,
    AcquisitionRecord,
    CandidateList,
    ProfileOptions,
    ProjectProfile,
    Refusal,
    Select,
    SelectionOptions,
    ToolchainImage,
    Unsupported,
    ValidationRecord,
)
from upgraderun_runner.ecosystems.python.refusals import LOCK, MANIFEST
from upgraderun_runner.ecosystems.requests import (
    AcquireRequest,
    CandidatesRequest,
    ValidationRequest,
)
from upgraderun_runner.evidence import (
    RECORD_VERSION,
    AcquireEvidence,
    CandidatesEvidence,
    ContextRecord,
    ValidationEvidence,
)
from upgraderun_runner.performing import AsyncEffect
from upgraderun_runner.phases.ends import (
    baseline_problem,
    not_acquired,
    nothing_eligible,
    unsupported,
)
from upgraderun_runner.phases.pythons import require_python
from upgraderun_runner.phases.session import PhaseStep, Session
from upgraderun_runner.phases.workspace import OpenWorkspace, remove_older, tag_of
from upgraderun_runner.sandbox.recorder import StepCommands
from upgraderun_runner.tools.bench import Bench
from upgraderun_runner.tools.validating import VALIDATION
from upgraderun_runner.workspace.protected import HOUSE_GLOBS, ProtectedPaths
from upgraderun_runner.workspace.snapshot import make_snapshot
from upgraderun_runner.workspace.trees import list_tree


@dataclass(frozen=True, slots=True)
class Acquired:
    """Where the dependency cache lies and what is known of it."""

    record: AcquisitionRecord
    cache: Path


async def prepare(session: Session, workspace: OpenWorkspace, context: ContextRecord) -> Bench:
    """Go through phases 4 to 6; raises RunEnds where one of them ends the run."""
    protected = protected_paths(session, context.profile)
    session.control.check()
    acquired = await _acquired(session, workspace, context)
    session.control.check()
    baseline = await _baseline(session, workspace, context, acquired)
    session.control.check()
    candidates = await _candidates(session, workspace, context, acquired)
    return Bench(
        bundle=session.bundle,
        journal=session.journal,
        git=workspace.git,
        layout=workspace.layout,
        context=context,
        ecosystem=session.ecosystem,
        sandbox=session.sandbox,
        acquisition=acquired.record,
        cache=acquired.cache,
        baseline=baseline,
        candidates=candidates,
        protected=protected,
        redactor=session.redactor,
        seams=session.seams,
        fault=session.fault,
    )


def protected_paths(session: Session, profile: ProjectProfile) -> ProtectedPaths:
    """Globs that nobody changes: ours, the ecosystem's, the policy's additions and releases."""
    policy = session.bundle.policy
    return ProtectedPaths(
        (*HOUSE_GLOBS, *profile.protected),
        add=policy.protected_add,
        release=policy.protected_release,
        directory="" if profile.directory == "." else profile.directory,
    )


# Phase 3


async def read_context(session: Session, workspace: OpenWorkspace) -> ContextRecord:
    """Describe the project and fix what the run rests on; runs nothing of the repository.

    Raises RunEnds where the project isn't supported. The last phase that may ask the git host.
    """
    done = session.finished("profile")
    if done is not None:
        # A kill may have come between the context and this.
        remove_older(session, workspace.layout)
        return await session.journal.fetch_record(ContextRecord, done.artifacts["context"])
    step = session.phase("profile")
    # No effect outside of a generation that nobody resumes before its context stands.
    step.intend()
    try:
        profile = await _profile(session, workspace)
    except Unsupported as error:
        raise await step.ends(unsupported(error.refusals)) from error
    await require_python(session, step, profile)
    base_tag = ""
    if profile.dynamic_version:
        with _scratch(workspace, step) as scratch:
            base_tag = await tag_of(session, workspace.base, step, scratch)
    protected = protected_paths(session, profile)
    context = ContextRecord(
        version=RECORD_VERSION,
        base_commit=workspace.base.commit,
        base_tree=workspace.base.tree,
        branch=workspace.base.branch,
        profile=profile,
        config_hash=config_hash(session, profile, protected),
        images=(profile.image.image,),
        isolation=session.sandbox.isolation.value,
        protected=protected.globs,
        base_tag=base_tag,
    )
    digest = await CONTEXT(session.fault, session, context)

    def recorded() -> None:
        CONTEXT.recorded(session.fault)
        remove_older(session, workspace.layout)

    # With the intent to acquire: a runner that dies before it clones and profiles again.
    step.done(
        {
            "configHash": context.config_hash,
            "ecosystem": profile.ecosystem,
            "python": profile.image.version,
            "isolation": context.isolation,
        },
        {"context": digest},
        recorded,
    )
    return context


async def _store_context(session: Session, context: ContextRecord) -> Sha256:
    return await session.journal.store(to_bytes(context))


CONTEXT: Final = AsyncEffect("context", _store_context)


async def _profile(session: Session, workspace: OpenWorkspace) -> ProjectProfile:
    bundle = session.bundle
    directory = bundle.repository.directory
    entries = await list_tree(workspace.git, workspace.base.tree)
    paths = {entry.path for entry in entries}
    # Half a pair is refused by the profile, which says which half is missing.
    prefix = "" if directory == "." else f"{directory}/"
    half = any(f"{prefix}{name}" in paths for name in (MANIFEST, LOCK))
    if bundle.ecosystem not in {"Auto", "Python"} or not half:
        raise Unsupported(
            (
                Refusal(
                    "no_pair",
                    directory,
                    f"no complete pair of {bundle.ecosystem} in this directory; this version "
                    "serves Python with pyproject.toml and uv.lock",
                    "commit a uv.lock, or name the project's directory in the run",
                ),
            )
        )
    snapshot = await make_snapshot(workspace.git, workspace.layout, workspace.base.tree)
    options = ProfileOptions(
        tuple(ToolchainImage(image.version, image.image) for image in bundle.policy.python_images),
        bundle.policy.python_registries,
    )
    return session.ecosystem.profile(snapshot, directory, options)


def config_hash(session: Session, profile: ProjectProfile, protected: ProtectedPaths) -> Sha256:
    """What evidence is bound to: the policy's part, image, checks, protected globs (§3)."""
    return digest_of(
        {
            "policy": session.bundle.config_hash,
            "image": to_json(profile.image),
            "checks": to_json(profile.checks),
            "protected": list(protected.globs),
        }
    )


# Phase 4


async def _acquired(session: Session, workspace: OpenWorkspace, context: ContextRecord) -> Acquired:
    """The cache of this generation; a cache that is gone is filled again, evidence stays."""
    done = session.finished("acquire")
    if done is not None and done.data.get("generation") == str(workspace.layout.generation):
        cache = workspace.layout.cache_root / done.data["cache"]
        if cache.is_dir():
            evidence = await session.journal.fetch_record(
                AcquireEvidence, done.artifacts["manifest"]
            )
            return Acquired(evidence.record, cache)
    step = session.phase("acquire")
    name = session.seams.new_id()[:16]
    cache = workspace.layout.cache_root / name
    step.intend()
    commands = step.commands()
    with _scratch(workspace, step) as scratch:
        cache.mkdir(parents=True)
        request = AcquireRequest(
            snapshot=await make_snapshot(workspace.git, workspace.layout, workspace.base.tree),
            profile=context.profile,
            cache=cache,
            scratch=scratch,
            nonce=session.seams.new_id(),
        )
        try:
            record = await ACQUIRE(session.fault, session, commands, request)
        except AcquisitionFailed as error:
            raise await step.ends(not_acquired(error, context.profile.registries)) from error
        except Unsupported as error:
            raise await step.ends(unsupported(error.refusals)) from error
    evidence = AcquireEvidence(RECORD_VERSION, record, commands.executed)
    digest = await session.journal.store(to_bytes(evidence))
    step.done(
        {"cache": name, "generation": str(workspace.layout.generation)},
        {"manifest": digest},
        lambda: ACQUIRE.recorded(session.fault),
    )
    return Acquired(record, cache)


async def _acquire(
    session: Session, commands: StepCommands, request: AcquireRequest
) -> AcquisitionRecord:
    return await session.ecosystem.acquire(commands, request)


ACQUIRE: Final = AsyncEffect("acquire", _acquire)


# Phase 5


async def _baseline(
    session: Session, workspace: OpenWorkspace, context: ContextRecord, acquired: Acquired
) -> ValidationRecord:
    done = session.finished("baseline")
    if done is not None:
        evidence = await session.journal.fetch_record(ValidationEvidence, done.artifacts["record"])
        return evidence.record
    step = session.phase("baseline")
    step.intend(tree=workspace.base.tree)
    commands = step.commands()
    with _scratch(workspace, step) as scratch:
        record = await VALIDATION(
            session.fault,
            session.ecosystem,
            commands,
            ValidationRequest(
                tree=workspace.base.tree,
                config_hash=context.config_hash,
                snapshot=await make_snapshot(workspace.git, workspace.layout, workspace.base.tree),
                profile=context.profile,
                acquisition=acquired.record,
                cache=acquired.cache,
                scratch=scratch,
                base_tag=context.base_tag,
                check_timeout_seconds=session.bundle.policy.check_timeout_seconds,
            ),
        )
    require_tests = session.bundle.policy.require_tests
    refused = baseline_problem(workspace.base, record, require_tests=require_tests)
    if refused is not None:
        raise await step.ends(refused)
    digest = await session.journal.store(
        to_bytes(ValidationEvidence(RECORD_VERSION, record, commands.executed))
    )
    tests = sum(len(check.tests) for check in record.checks)
    step.done(
        {
            "tree": record.tree,
            "configHash": context.config_hash,
            "tests": str(tests),
            "flaky": str(len(record.flaky)),
        },
        {"record": digest},
        lambda: VALIDATION.recorded(session.fault),
    )
    return record


# Phase 6


async def _candidates(
    session: Session, workspace: OpenWorkspace, context: ContextRecord, acquired: Acquired
) -> CandidateList:
    done = session.finished("candidates")
    if done is not None:
        evidence = await session.journal.fetch_record(CandidatesEvidence, done.artifacts["list"])
        return evidence.record
    step = session.phase("candidates")
    plan_time = _plan_time(session)
    step.intend(planTime=plan_time)
    commands = step.commands()
    snapshot = await make_snapshot(workspace.git, workspace.layout, workspace.base.tree)
    with _scratch(workspace, step) as scratch:
        request = CandidatesRequest(
            pair=session.ecosystem.read_pair(snapshot, context.profile.directory),
            profile=context.profile,
            platform=acquired.record.platform,
            options=_selection(session),
            plan_time=datetime.fromisoformat(plan_time),
            scratch=scratch,
        )
        try:
            candidates = await session.ecosystem.candidates(commands, request)
        except AcquisitionFailed as error:
            raise await step.ends(not_acquired(error, context.profile.registries)) from error
    if not candidates.ranked:
        raise await step.ends(nothing_eligible(candidates))
    best = candidates.ranked[0]
    digest = await session.journal.store(
        to_bytes(CandidatesEvidence(RECORD_VERSION, candidates, commands.executed))
    )
    step.done(
        {
            "total": str(len(candidates.candidates)),
            "eligible": str(sum(candidate.eligible for candidate in candidates.candidates)),
            "name": best.name,
            "from": best.from_version,
            "to": best.to_version,
        },
        {"list": digest},
    )
    return candidates


def _plan_time(session: Session) -> str:
    """The time that ages are counted from; the first one stands, so that a repeat agrees (§5.3)."""
    for entry in session.journal.fold.of_kind("candidates"):
        if entry.state is EntryState.INTENT:
            return entry.data["planTime"]
    return session.journal.now()


def _selection(session: Session) -> SelectionOptions:
    bundle = session.bundle
    return SelectionOptions(
        select=Select(bundle.upgrade.select),
        allow_major=bundle.upgrade.allow_major,
        dependency=bundle.upgrade.dependency or "",
        version=bundle.upgrade.version or "",
        minimum_age_seconds=bundle.upgrade.minimum_release_age_seconds,
        deny=bundle.policy.deny,
        already_proposed=tuple(_pair_of(target) for target in bundle.earlier.proposed),
        declined=tuple(_pair_of(target) for target in bundle.earlier.declined),
    )


def _pair_of(target: str) -> tuple[str, str]:
    name, _, version = target.rpartition("@")
    return name, version


@contextmanager
def _scratch(workspace: OpenWorkspace, step: PhaseStep) -> Iterator[Path]:
    """A new directory for one try; what is left of it after a kill goes with the next sweep."""
    directory = workspace.layout.scratch(step.scratch_name)
    directory.mkdir(parents=True)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)
