"""Phase 6: every newer version, every reason against it, and the order of the rest (§5).

Callers: `PythonEcosystem`. Pure but for one sandbox command that reads the registry. All reasons of
every newer version are listed, so that `no_candidate` explains itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from packaging.tags import Tag
from packaging.utils import canonicalize_name
from packaging.version import Version

from upgraderun_runner.ecosystems.base import (
    NOT_NAMED,
    NOT_PINNED,
    Candidate,
    CandidateList,
    ChangeClass,
    Ineligibility,
    LockEntry,
    Pair,
    PlatformFacts,
    Select,
    SelectionOptions,
    Target,
)
from upgraderun_runner.ecosystems.python.lock import (
    Lock,
    holds_for,
    parse_lock,
    registry_of,
)
from upgraderun_runner.ecosystems.python.manifest import (
    Declaration,
    Manifest,
    editable_form,
    excludes,
    parse_manifest,
)
from upgraderun_runner.ecosystems.python.registry import (
    ProjectPage,
    Release,
    Wanted,
    marker_environment,
    metadata_command,
    parse_metadata,
    supported_tags,
)
from upgraderun_runner.ecosystems.python.toolchain import PythonToolchain, Workroom
from upgraderun_runner.ecosystems.python.versions import (
    classify,
    is_preliminary,
    parse_version,
    specifier_set,
    uncovered,
)
from upgraderun_runner.ecosystems.requests import CandidatesRequest
from upgraderun_runner.sandbox.recorder import StepCommands


@dataclass(frozen=True, slots=True)
class Upgradable:
    """A direct dependency with the lock entry that the image's environment uses."""

    name: str
    entry: LockEntry
    current: Version
    declarations: tuple[Declaration, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """Everything a version is judged by, beside itself."""

    options: SelectionOptions
    plan_time: datetime
    requires_python: str
    platform: PlatformFacts
    tags: frozenset[Tag]


async def list_candidates(
    commands: StepCommands, toolchain: PythonToolchain, request: CandidatesRequest
) -> CandidateList:
    """Ask the registry once per direct dependency, judge, rank. May be repeated."""
    subjects, notes = upgradables(request.pair, request.platform, request.options)
    wanted = tuple(Wanted(s.name, registry_of(s.entry)) for s in subjects)
    room = Workroom(request.scratch)
    room.create()
    command = metadata_command(toolchain, room, wanted)
    await commands.plan([command] if wanted else [])
    pages = parse_metadata(await commands.run(command), wanted) if wanted else {}
    judgement = Judgement(
        options=request.options,
        plan_time=request.plan_time,
        requires_python=request.profile.requires_toolchain,
        platform=request.platform,
        tags=supported_tags(request.platform),
    )
    found = tuple(c for s in subjects for c in judge_page(s, pages[s.name], judgement))
    problems = [f"{name}: {page.problem}" for name, page in pages.items() if page.problem]
    return CandidateList(
        plan_time=request.plan_time.astimezone(UTC).isoformat(timespec="seconds"),
        candidates=found,
        ranked=rank(found, request.options.select),
        notes=(*notes, *problems),
    )


def upgradables(
    pair: Pair, platform: PlatformFacts, options: SelectionOptions
) -> tuple[tuple[Upgradable, ...], list[str]]:
    """List direct dependencies by name, and say which ones can't be judged."""
    manifest = parse_manifest(pair.manifest)
    lock = parse_lock(pair.lock, manifest.name)
    found, notes = [], []
    for name in sorted({dependency.name for dependency in manifest.direct}):
        entry = current_entry(lock, name, platform)
        version = parse_version(entry.version) if entry else None
        if entry is None or version is None or not registry_of(entry):
            notes.append(f"{name}: not locked for this platform, so it can't be upgraded here")
            continue
        environment = fork_environment(lock.named(name), platform)
        found.append(Upgradable(name, entry, version, manifest.of(name, environment)))
    notes += _named_note(options, manifest)
    return tuple(found), notes


def _named_note(options: SelectionOptions, manifest: Manifest) -> list[str]:
    name = canonicalize_name(options.dependency) if options.dependency else ""
    if not name or any(dependency.name == name for dependency in manifest.direct):
        return []
    return [f"{name} is no direct dependency; name one that pyproject.toml declares"]


def current_entry(lock: Lock, name: str, platform: PlatformFacts) -> LockEntry | None:
    """Find the locked entry that the image's environment would install: a lock may be forked."""
    environment = marker_environment(platform)
    entries = [entry for entry in lock.named(name) if holds_for(entry, environment)]
    return max(entries, key=_entry_order, default=None)


def fork_environment(
    entries: tuple[LockEntry, ...], platform: PlatformFacts
) -> dict[str, str] | None:
    """The environment that tells the image's fork from the others; None where there is one entry."""
    return marker_environment(platform) if len(entries) > 1 else None


def _entry_order(entry: LockEntry) -> Version:
    return parse_version(entry.version) or Version("0")


def judge_page(subject: Upgradable, page: ProjectPage, judgement: Judgement) -> Iterator[Candidate]:
    """Judge every version above the locked one."""
    locked = page.release(subject.current)
    locked_python = locked.requires_python if locked else ""
    for release in page.releases:
        if release.version <= subject.current:
            continue
        published = release.published
        yield Candidate(
            name=subject.name,
            current=subject.entry.version,
            version=str(release.version),
            change_class=classify(subject.current, release.version),
            published=_instant(published) if published else "",
            reasons=tuple(_reasons(subject, release, locked_python, judgement)),
        )


def _instant(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _reasons(
    subject: Upgradable, release: Release, locked_python: str, judgement: Judgement
) -> Iterator[Ineligibility]:
    yield from _version_reasons(subject, release, judgement.options)
    yield from _toolchain_reasons(subject, release, locked_python, judgement)
    yield from _constraint_reasons(subject, release)
    if not release.has_wheel(judgement.tags):
        machine = f"{judgement.platform.machine}, Python {judgement.platform.version}"
        yield Ineligibility("no_binary", f"no wheel for {machine}")
    yield from _wish_reasons(subject.name, str(release.version), judgement.options)
    yield from age_reasons(
        release.published, judgement.plan_time, judgement.options.minimum_age_seconds
    )


def _version_reasons(
    subject: Upgradable, release: Release, options: SelectionOptions
) -> Iterator[Ineligibility]:
    if is_preliminary(release.version):
        yield Ineligibility("prerelease", "a pre-release, development or local version")
    if release.withdrawn:
        yield Ineligibility("withdrawn", "every file was yanked")
    change_class = classify(subject.current, release.version)
    if change_class is ChangeClass.MAJOR and not options.allow_major:
        yield Ineligibility("class_not_allowed", "a major upgrade; allowMajor permits it")


def _toolchain_reasons(
    subject: Upgradable, release: Release, locked_python: str, judgement: Judgement
) -> Iterator[Ineligibility]:
    needs, have = release.requires_python, judgement.platform.version
    offered = specifier_set(needs)
    if offered is not None and not offered.contains(have, prereleases=True):
        yield Ineligibility("toolchain", f"needs Python {needs}, the image has {have}")
        return
    lost = uncovered(needs, judgement.requires_python, subject.entry.markers, locked_python)
    if lost is not None:
        project = judgement.requires_python
        detail = f"needs Python {needs}, the project supports {project} ({lost} would be lost)"
        yield Ineligibility("toolchain", detail)


def _constraint_reasons(subject: Upgradable, release: Release) -> Iterator[Ineligibility]:
    for declaration in subject.declarations:
        specifier = declaration.requirement.specifier
        if excludes(declaration, release.version) and not editable_form(specifier):
            detail = f"{declaration.where} says {declaration.text!r}, which can't be edited safely"
            yield Ineligibility("constraint_form", detail)


def _wish_reasons(name: str, version: str, options: SelectionOptions) -> Iterator[Ineligibility]:
    if name in {canonicalize_name(denied) for denied in options.deny}:
        yield Ineligibility("denied", "the policy denies it")
    if options.dependency and canonicalize_name(options.dependency) != name:
        yield Ineligibility(NOT_NAMED, f"the run names {options.dependency}")
    pinned = bool(options.version) and parse_version(options.version) == Version(version)
    if options.version and not pinned:
        yield Ineligibility(NOT_PINNED, f"the run pins {options.version}")
    if (name, version) in options.already_proposed:
        yield Ineligibility("already_proposed", "an open pull request has this target")
    if (name, version) in options.declined and not pinned:
        yield Ineligibility("declined_by_human", "a pull request with it was closed unmerged")


def age_reasons(
    published: datetime | None, now: datetime, minimum_seconds: int
) -> Iterator[Ineligibility]:
    """Judge the cooldown (§5.3). Equal is old enough; unknown and future times aren't."""
    if minimum_seconds == 0:
        return
    if published is None:
        yield Ineligibility("publish_time_unknown", "the registry gives no time for every file")
    elif published > now:
        yield Ineligibility(
            "publish_time_unknown", f"published in the future: {_instant(published)}"
        )
    elif now - published < timedelta(seconds=minimum_seconds):
        age = int((now - published).total_seconds())
        detail = (
            f"{age // 3600} h {age % 3600 // 60} min old (youngest file {_instant(published)}),"
            f" the limit is {minimum_seconds // 3600} h {minimum_seconds % 3600 // 60} min"
        )
        yield Ineligibility("too_young", detail)


def rank(candidates: tuple[Candidate, ...], select: Select) -> tuple[Target, ...]:
    """Order the eligible pairs, best first (§5.2).

    Smallest: the highest version per class and dependency; Latest: per dependency. Both sort by class,
    then by code points of the name.
    """
    best: dict[tuple[int, str], Candidate] = {}
    for candidate in candidates:
        if not candidate.eligible:
            continue
        rank_key = candidate.change_class.rank if select is Select.SMALLEST else 0
        key = (rank_key, candidate.name)
        if key not in best or Version(best[key].version) < Version(candidate.version):
            best[key] = candidate
    chosen = sorted(best.values(), key=lambda c: (c.change_class.rank, c.name))
    return tuple(candidate.target for candidate in chosen)
