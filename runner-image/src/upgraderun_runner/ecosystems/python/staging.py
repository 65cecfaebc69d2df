"""Phases 7 and 9: stage an upgrade or a normalisation, compare models, gate (§8.2 to §8.4).

Callers: `PythonEcosystem`. Never writes `work/`: returns the pair before and after with every violation.
Order of an upgrade: edit, neutral re-lock, upgrade, nearest closure (≤ 5 tries), young closure
(≤ 3 tries), Gate A.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from upgraderun_runner.ecosystems.base import (
    ConstraintEdit,
    GateViolation,
    LockChange,
    LockEntry,
    LockModel,
    Pair,
    Select,
    StagedPair,
    Target,
)
from upgraderun_runner.ecosystems.python.candidates import age_reasons, fork_environment
from upgraderun_runner.ecosystems.python.closure import (
    YOUNG_ROUNDS_MAX,
    Bounds,
    NearestClosure,
    forked_movers,
    movers,
)
from upgraderun_runner.ecosystems.python.gates import (
    added_files,
    changes,
    drift,
    entering,
    gate,
    judge_pair,
)
from upgraderun_runner.ecosystems.python.lock import lock_model, parse_lock, registry_of
from upgraderun_runner.ecosystems.python.manifest import (
    ManifestError,
    edit_manifest,
    parse_manifest,
)
from upgraderun_runner.ecosystems.python.registry import (
    ProjectPage,
    Wanted,
    marker_environment,
    metadata_command,
    parse_metadata,
)
from upgraderun_runner.ecosystems.python.resolve import (
    NotResolved,
    Resolved,
    Resolver,
    pins,
    refusal_of,
)
from upgraderun_runner.ecosystems.python.toolchain import PythonToolchain
from upgraderun_runner.ecosystems.python.uverrors import UvFailure
from upgraderun_runner.ecosystems.python.uvsettings import effective_indexes, normal_index
from upgraderun_runner.ecosystems.requests import ApplyRequest, NormalizeRequest
from upgraderun_runner.sandbox.commands import CommandResult
from upgraderun_runner.sandbox.recorder import StepCommands


async def stage_apply(
    commands: StepCommands, toolchain: PythonToolchain, request: ApplyRequest
) -> StagedPair:
    """Stage one target. `staging` must be a new or empty directory."""
    request.staging.mkdir(parents=True, exist_ok=True)
    stager = _Apply(commands, toolchain, request)
    return await stager.run()


@dataclass(frozen=True, slots=True)
class _Closure:
    """The resolution that was taken, and what was held back on the way."""

    resolved: Resolved
    bounds: Bounds
    unheld: LockModel
    notes: tuple[str, ...] = ()


class _Apply:
    """One upgrade in staging."""

    def __init__(
        self, commands: StepCommands, toolchain: PythonToolchain, request: ApplyRequest
    ) -> None:
        self._commands = commands
        self._request = request
        self._base = lock_model(request.pair)
        self._resolver = Resolver(
            commands, toolchain, request.profile, request.staging, request.cache
        )
        self._young = _Youth(commands, toolchain, self._resolver, request)
        self._pins = pins(self._base, request.target, neutral=False)

    async def run(self) -> StagedPair:
        request = self._request
        try:
            manifest, edits = edit_manifest(
                request.pair.manifest,
                request.target.name,
                Version(request.target.to_version),
                fork_environment(self._base.named(request.target.name), request.platform),
            )
        except ManifestError as error:
            violation = GateViolation("constraint_form", request.target.name, "", str(error))
            return _refused(request.pair, "admission_refused", violation, str(error))
        edited = Pair(manifest, request.pair.lock)
        neutral_pins = pins(self._base, request.target, neutral=True)
        await self._commands.plan(
            [
                self._resolver.planned("neutral", neutral_pins),
                self._resolver.planned("upgrade", self._pins),
            ]
        )
        neutral = await self._resolver.lock("neutral", request.pair, neutral_pins)
        if isinstance(neutral, NotResolved):
            return self._unresolved(neutral)
        first = await self._resolver.lock("upgrade", edited, self._pins)
        if isinstance(first, NotResolved):
            return self._unresolved(first)
        closure = _Closure(first, Bounds(), first.model)
        if request.select is Select.SMALLEST:
            closure = await self._nearest(edited, closure)
        closure = await self._older(edited, closure)
        return self._judged(neutral, closure, edits)

    def _unresolved(self, failed: NotResolved) -> StagedPair:
        newer = failed.failure is UvFailure.NEWER_TOOLCHAIN
        outcome = "requires_newer_toolchain" if newer else "admission_refused"
        violation = _resolution_refused(self._request.target, failed)
        return _refused(self._request.pair, outcome, violation, failed.text)

    async def _nearest(self, edited: Pair, closure: _Closure) -> _Closure:
        target = self._request.target
        search = NearestClosure(closure.bounds)
        while True:
            bounds = search.next(movers(self._base, closure.resolved.model, target))
            if bounds is None:
                break
            tried = await self._resolver.lock(
                f"nearest-{search.rounds}", edited, (*self._pins, *bounds.upgrades)
            )
            if isinstance(tried, NotResolved):
                search.refused()
            else:
                search.resolved()
                closure = replace(closure, resolved=tried, bounds=bounds)
        forked = forked_movers(self._base, closure.resolved.model, target)
        notes = tuple(f"{name} is locked in several versions and wasn't held" for name in forked)
        return replace(closure, notes=closure.notes + notes)

    async def _older(self, edited: Pair, closure: _Closure) -> _Closure:
        for round_number in range(1, YOUNG_ROUNDS_MAX + 1):
            young = await self._young.among(self._base, closure.resolved.model)
            if not young:
                break
            bounds = closure.bounds.with_bounds((v.subject, v.observed) for v in young)
            tried = await self._resolver.lock(
                f"older-{round_number}", edited, (*self._pins, *bounds.upgrades)
            )
            if isinstance(tried, NotResolved):
                break
            notes = tuple(f"{v.subject} {v.observed} is too young and was held" for v in young)
            closure = replace(closure, resolved=tried, bounds=bounds, notes=closure.notes + notes)
        return closure

    def _judged(
        self, neutral: Resolved, closure: _Closure, edits: tuple[ConstraintEdit, ...]
    ) -> StagedPair:
        request, after = self._request, closure.resolved.model
        drifted, published = drift(self._base, neutral.model)
        violations = (
            *drifted,
            *gate(self._base, after, request.target, allowed_registries(request.pair)),
            *self._young.known(self._base, after),
        )
        before = parse_lock(request.pair.lock, request.profile.project).revision
        written = parse_lock(closure.resolved.pair.lock, request.profile.project).revision
        raised = (f"uv.lock's revision changes from {before} to {written}",)
        return StagedPair(
            before=request.pair,
            after=closure.resolved.pair,
            changed=closure.resolved.pair != request.pair,
            outcome="admission_refused" if violations else "",
            violations=violations,
            changes=_with_held(changes(self._base, after, request.target.name), closure.unheld),
            edits=edits,
            notes=(
                *closure.notes,
                *(published or added_files(self._base, after)),
                *(raised if before != written else ()),
            ),
        )


def _with_held(found: tuple[LockChange, ...], unheld: LockModel) -> tuple[LockChange, ...]:
    """Say of each change what the resolver alone would have taken, where that differs."""
    result = []
    for change in found:
        free = tuple(sorted({entry.version for entry in unheld.named(change.name)}, key=Version))
        differs = free != change.after and change.kind != "target"
        result.append(replace(change, held_from=", ".join(free)) if differs else change)
    return tuple(result)


def _resolution_refused(target: Target, failed: NotResolved) -> GateViolation:
    wish = f"{target.name} {target.to_version}"
    return GateViolation("resolution_refused", target.name, wish, failed.reason)


def _refused(pair: Pair, outcome: str, violation: GateViolation, text: str) -> StagedPair:
    return StagedPair(
        before=pair,
        after=pair,
        changed=False,
        outcome=outcome,
        violations=(violation,),
        changes=(),
        edits=(),
        notes=(),
        text=text,
    )


def allowed_registries(base: Pair) -> frozenset[str]:
    """The indexes that the base's settings name; the profile refused those outside the policy."""
    return frozenset(normal_index(i.url) for i in effective_indexes(parse_manifest(base.manifest)))


class _Youth:
    """Asks for the publish times of what enters, once per name, and judges them (§5.3)."""

    def __init__(
        self,
        commands: StepCommands,
        toolchain: PythonToolchain,
        resolver: Resolver,
        request: ApplyRequest | NormalizeRequest,
    ) -> None:
        self._commands = commands
        self._toolchain = toolchain
        self._resolver = resolver
        self._request = request
        self._pages: dict[str, ProjectPage] = {}

    async def among(self, before: LockModel, after: LockModel) -> tuple[GateViolation, ...]:
        """Judge what enters, asking for names that aren't known yet."""
        if self._request.minimum_age_seconds:
            rows = {e.name: registry_of(e) for e in self._entering(before, after)}
            wanted = tuple(
                Wanted(name, index)
                for name, index in sorted(rows.items())
                if name not in self._pages
            )
            if wanted:
                command = metadata_command(self._toolchain, self._resolver.room, wanted)
                self._pages |= parse_metadata(await self._commands.run(command), wanted)
        return self.known(before, after)

    def known(self, before: LockModel, after: LockModel) -> tuple[GateViolation, ...]:
        """Judge what enters by the pages that were read: `closure_too_young`."""
        limit = self._request.minimum_age_seconds
        found = []
        for entry in self._entering(before, after):
            page = self._pages.get(entry.name)
            release = page.release(Version(entry.version)) if page else None
            published = release.published if release else None
            found += [
                GateViolation("closure_too_young", entry.name, reason.detail, entry.version)
                for reason in age_reasons(published, self._request.plan_time, limit)
            ]
        return tuple(found)

    def _entering(self, before: LockModel, after: LockModel) -> list[LockEntry]:
        return [e for e in entering(before, after) if e.name != self._request.target.name]


async def stage_normalize(
    commands: StepCommands, toolchain: PythonToolchain, request: NormalizeRequest
) -> StagedPair:
    """Normalise, prove that a second time changes nothing, verify contents, apply Gate B."""
    request.staging.mkdir(parents=True, exist_ok=True)
    resolver = Resolver(commands, toolchain, request.profile, request.staging, request.cache)
    directory = request.staging / "normal"
    check = resolver.uv.lock_check(directory, resolver.room)
    export = resolver.uv.export(directory, resolver.room)
    fetch = resolver.uv.fetch(directory, resolver.room)
    await commands.plan([resolver.planned("normal", ()), check, export, fetch])
    normal = await resolver.lock("normal", request.pair)
    if isinstance(normal, NotResolved):
        violation = _resolution_refused(request.target, normal)
        return _refused(request.pair, "normalization_refused", violation, normal.text)
    registry = request.profile.registries[0] if request.profile.registries else ""
    violations = list(judge_pair(request.base, normal.pair, request.target))
    base = lock_model(request.base)
    violations += await _Youth(commands, toolchain, resolver, request).among(base, normal.model)
    checked = refusal_of(await commands.run(check), registry)
    if checked is not None:
        violations.append(GateViolation("not_normal", "uv.lock", "no change", checked.reason))
    violations += _resolution_rule(await commands.run(export), request)
    fetched = refusal_of(await commands.run(fetch), registry)
    if fetched is not None:
        violations.append(GateViolation("verify_failed", "uv.lock", "", fetched.reason))
    return StagedPair(
        before=request.pair,
        after=normal.pair,
        changed=normal.pair != request.pair,
        outcome="normalization_refused" if violations else "",
        violations=tuple(violations),
        changes=changes(base, normal.model, request.target.name),
        edits=(),
        notes=added_files(base, normal.model),
    )


def _resolution_rule(result: CommandResult, request: NormalizeRequest) -> list[GateViolation]:
    """`target_not_resolved`: installing from the frozen lock gives another version (§8.4).

    A target that the selected groups don't install isn't in the list; its lock entry was judged.
    """
    registry = request.profile.registries[0] if request.profile.registries else ""
    failed = refusal_of(result, registry)
    target = request.target
    if failed is not None:
        return [GateViolation("target_not_resolved", target.name, target.to_version, failed.reason)]
    environment = marker_environment(request.platform)
    lines = result.stdout.decode("utf-8", "replace").splitlines()
    versions = set(_exported(lines, target, environment))
    if versions <= {target.to_version}:
        return []
    observed = ", ".join(sorted(versions))
    return [GateViolation("target_not_resolved", target.name, target.to_version, observed)]


def _exported(lines: Iterable[str], target: Target, environment: dict[str, str]) -> Iterable[str]:
    for line in lines:
        try:
            requirement = Requirement(line.strip())
        except InvalidRequirement:
            continue
        if requirement.name != target.name:
            continue
        marker = requirement.marker
        if marker is None or Marker(str(marker)).evaluate(environment):
            yield from (clause.version for clause in requirement.specifier)
