"""Gate A and Gate B on models: what a staged pair may differ in (upgrade-run.md §8.3, §8.4).

Callers: staging, readiness, publisher. Pure. Every violation is listed. Models are compared, never
lines: markers and keys of a lock change whenever forks come or go (uv-facts §2).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from upgraderun_runner.ecosystems.base import (
    DirectDependency,
    GateViolation,
    LockChange,
    LockEntry,
    LockModel,
    Pair,
    Target,
)
from upgraderun_runner.ecosystems.python.lock import is_local, lock_model, registry_of
from upgraderun_runner.ecosystems.python.manifest import parse_manifest
from upgraderun_runner.ecosystems.python.uvsettings import effective_indexes, normal_index
from upgraderun_runner.ecosystems.python.versions import parse_version

_ALLOWS_PRERELEASES: Final = '"allow"'


def judge_pair(base: Pair, candidate: Pair, target: Target) -> tuple[GateViolation, ...]:
    """Judge a pair against the base by everything that needs no command (Gate B's pure part)."""
    before, after = lock_model(base), lock_model(candidate)
    indexes = effective_indexes(parse_manifest(base.manifest))
    return gate(before, after, target, frozenset(normal_index(index.url) for index in indexes))


def gate(
    before: LockModel, after: LockModel, target: Target, registries: frozenset[str]
) -> tuple[GateViolation, ...]:
    """List every violation. `registries` are the allowed indexes, as `normal_index` spells them."""
    return (
        *_target_rule(before, after, target),
        *_setting_rule(before, after, target),
        *_direct_rule(before, after),
        *_version_rules(before, after, target),
        *_source_rule(before, after, registries),
        *_integrity_rule(before, after),
    )


def _target_rule(before: LockModel, after: LockModel, target: Target) -> Iterator[GateViolation]:
    """`target_not_set`: exactly at the version; in a forked lock exactly the one fork moves."""
    old = _versions(before, target.name)
    expected = {target.to_version if v == target.from_version else v for v in old}
    observed = _versions(after, target.name)
    if target.from_version not in old or observed != expected:
        yield GateViolation(
            "target_not_set", target.name, _join(expected or {target.to_version}), _join(observed)
        )


def _versions(model: LockModel, name: str) -> set[str]:
    return {entry.version for entry in model.named(name)}


def _join(values: Iterable[str]) -> str:
    return ", ".join(sorted(values)) or "absent"


def _setting_rule(before: LockModel, after: LockModel, target: Target) -> Iterator[GateViolation]:
    """`setting_changed`: everything but the one specifier, and that only if it excluded the target."""
    old = {setting.key: setting.value for setting in before.settings}
    new = {setting.key: setting.value for setting in after.settings}
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            yield GateViolation(
                "setting_changed", key, old.get(key, "absent"), new.get(key, "absent")
            )
    yield from _constraint_changes(before, after, target)


def _constraint_changes(
    before: LockModel, after: LockModel, target: Target
) -> Iterator[GateViolation]:
    for old, new in _same_places(before.direct, after.direct):
        if old.constraint == new.constraint:
            continue
        subject = f"{old.where}:{old.name}"
        if old.name != target.name or _admits(old.constraint, target.to_version):
            yield GateViolation("setting_changed", subject, old.constraint, new.constraint)
        elif not _admits(new.constraint, target.to_version):
            yield GateViolation(
                "setting_changed", subject, f"admits {target.to_version}", new.constraint
            )


def _admits(constraint: str, version: str) -> bool:
    return SpecifierSet(constraint).contains(Version(version), prereleases=True)


def _same_places(
    before: tuple[DirectDependency, ...], after: tuple[DirectDependency, ...]
) -> Iterator[tuple[DirectDependency, DirectDependency]]:
    rest = list(after)
    for old in before:
        match = next((new for new in rest if _place(new) == _place(old)), None)
        if match is not None:
            rest.remove(match)
            yield old, match


def _place(dependency: DirectDependency) -> tuple[str, str, str, tuple[str, ...]]:
    return dependency.name, dependency.where, dependency.marker, dependency.extras


def _direct_rule(before: LockModel, after: LockModel) -> Iterator[GateViolation]:
    """`direct_dependency_added`, `_removed`, and of Gate B `direct_became_indirect`."""
    old, new = _counts(before.direct), _counts(after.direct)
    names_after = {dependency.name for dependency in after.direct}
    for place in sorted(old.keys() | new.keys()):
        name, where = place[0], place[1]
        if new.get(place, 0) > old.get(place, 0):
            yield GateViolation("direct_dependency_added", name, "absent", where)
        if new.get(place, 0) < old.get(place, 0):
            yield GateViolation("direct_dependency_removed", name, where, "absent")
            if name not in names_after and after.named(name):
                yield GateViolation("direct_became_indirect", name, where, "only in the lock")


def _counts(
    direct: tuple[DirectDependency, ...],
) -> Mapping[tuple[str, str, str, tuple[str, ...]], int]:
    counts: dict[tuple[str, str, str, tuple[str, ...]], int] = {}
    for dependency in direct:
        counts[_place(dependency)] = counts.get(_place(dependency), 0) + 1
    return counts


def entering(before: LockModel, after: LockModel) -> tuple[LockEntry, ...]:
    """List registry entries whose name and version the lock didn't have before."""
    known = {(entry.name, entry.version) for entry in before.entries}
    return tuple(
        entry
        for entry in after.entries
        if not is_local(entry) and (entry.name, entry.version) not in known
    )


def _version_rules(before: LockModel, after: LockModel, target: Target) -> Iterator[GateViolation]:
    """`version_decreased`, `increase_outside_closure`, `entry_outside_closure`, `closure_not_final`."""
    closure = closure_of(after, target)
    final_only = not any(
        s.key == "manifest:tool.uv.prerelease" and s.value == _ALLOWS_PRERELEASES
        for s in after.settings
    )
    for entry in entering(before, after):
        if entry.name == target.name:
            continue
        old = _versions(before, entry.name)
        if old and _order(entry.version) < max(map(_order, old)):
            yield GateViolation("version_decreased", entry.name, _join(old), entry.version)
        if entry.slot not in closure:
            code = "increase_outside_closure" if old else "entry_outside_closure"
            yield GateViolation(code, entry.name, _join(old), entry.version)
        if final_only and _order(entry.version).is_prerelease:
            yield GateViolation("closure_not_final", entry.name, "a final version", entry.version)


def _order(version: str) -> Version:
    return parse_version(version) or Version("0")


def closure_of(model: LockModel, target: Target) -> frozenset[str]:
    """Collect what the target's version requires, transitively, all markers and extras (§8.5)."""
    needs: dict[str, list[str]] = {}
    for edge in model.edges:
        needs.setdefault(edge.source, []).append(edge.target)
    stack = [e.slot for e in model.named(target.name) if e.version == target.to_version]
    seen: set[str] = set()
    while stack:
        slot = stack.pop()
        if slot not in seen and slot != model.project_slot:
            seen.add(slot)
            stack += needs.get(slot, [])
    return frozenset(seen)


def _source_rule(
    before: LockModel, after: LockModel, registries: frozenset[str]
) -> Iterator[GateViolation]:
    """`source_changed`: a kept entry moved, or a new one isn't from an allowed registry or origin."""
    old: dict[tuple[str, str], set[str]] = {}
    for entry in before.entries:
        old.setdefault((entry.name, entry.version), set()).add(entry.source)
    origins = _origins(before) | {_origin(url) for url in registries}
    for entry in after.entries:
        known = old.get((entry.name, entry.version))
        if known is not None and entry.source not in known:
            yield GateViolation("source_changed", entry.name, _join(known), entry.source)
        elif known is None and normal_index(registry_of(entry)) not in registries:
            allowed = _join(registries)
            yield GateViolation("source_changed", entry.name, allowed, entry.source)
        for file in entry.files:
            if _origin(file.url) not in origins:
                yield GateViolation("source_changed", entry.name, _join(origins), file.url)


def _origins(model: LockModel) -> set[str]:
    return {_origin(file.url) for entry in model.entries for file in entry.files}


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _integrity_rule(before: LockModel, after: LockModel) -> Iterator[GateViolation]:
    """`integrity_changed`: a file name in both with other hashes, or a file that went (uv-facts)."""
    new = {entry.slot: entry for entry in after.entries}
    for entry in before.entries:
        kept = new.get(entry.slot)
        if kept is None:
            continue
        hashes = {file.name: file.sha256 for file in kept.files}
        for file in entry.files:
            observed = hashes.get(file.name, "absent")
            if observed != file.sha256:
                subject = f"{entry.name} {entry.version} {file.name}"
                yield GateViolation("integrity_changed", subject, file.sha256, observed)


def drift(base: LockModel, neutral: LockModel) -> tuple[tuple[GateViolation, ...], tuple[str, ...]]:
    """Compare the base with a re-lock that upgrades nothing (uv-facts, correction of §8.5).

    Versions that move without any upgrade are violations: the change would carry them along. Files
    that the registry added to kept versions are only noted.
    """
    violations = []
    for change in changes(base, neutral, ""):
        if change.kind == "left":
            continue
        code = "version_decreased" if change.kind == "lowered" else "increase_outside_closure"
        observed = f"{_join(change.after)} (the registry alone moves it, without the upgrade)"
        violations.append(GateViolation(code, change.name, _join(change.before), observed))
    return tuple(violations), added_files(base, neutral)


def added_files(before: LockModel, after: LockModel) -> tuple[str, ...]:
    """Note how many files entered kept versions since they were locked."""
    old = {entry.slot: entry for entry in before.entries}
    notes = []
    for entry in after.entries:
        names = {file.name for file in old[entry.slot].files} if entry.slot in old else None
        count = sum(file.name not in names for file in entry.files) if names is not None else 0
        if count:
            notes.append(
                f"{entry.name} {entry.version}: {count} files were published since the lock"
            )
    return tuple(notes)


def changes(before: LockModel, after: LockModel, target: str) -> tuple[LockChange, ...]:
    """List every name whose locked versions differ, by name."""
    names = sorted({e.name for e in (*before.entries, *after.entries) if not is_local(e)})
    found = []
    for name in names:
        old, new = _versions(before, name), _versions(after, name)
        if old != new:
            kind = "target" if name == target else _kind(old, new)
            found.append(LockChange(name, kind, _sorted(old), _sorted(new)))
    return tuple(found)


def _sorted(versions: set[str]) -> tuple[str, ...]:
    return tuple(sorted(versions, key=_order))


def _kind(old: set[str], new: set[str]) -> str:
    if not old:
        return "entered"
    if not new - old:
        return "left"
    lower = min(map(_order, new - old)) < max(map(_order, old))
    return "lowered" if lower else "raised"
