"""Is the union of effects closed, bound, and named by kill tests? Judges the packages that it imports.

Callers: the tidy test, on this tree and on scratch copies in which something was added.
"""

import ast
import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, cast, get_args

from support.crash import KILLS
from upgraderun_operator.decide.effects import AppendName, Effect
from upgraderun_operator.observe.world import World
from upgraderun_operator.operating import bindings
from upgraderun_operator.perform.telling import Telling
from upgraderun_protocol.effects import EFFECTS, Program, effects_of, points_of
from upgraderun_protocol.ends import MintPurpose
from upgraderun_runner.effects import BINDINGS

DOORS: Final = frozenset({"performing.py", "transport.py", "table.py", "tokens.py"})
"""Modules that pass fault points: the values of the pods, the wire, the performer, the mint."""
_CLASSES: Final = frozenset({"Effect", "AsyncEffect"})


def problems() -> list[str]:
    """Everything that keeps the matrix from being whole."""
    return [
        *_operator(),
        *_pods(),
        *_second_ways(),
        *_points_by_hand(),
        *_points_without_kill(),
    ]


def _operator() -> Iterator[str]:
    nowhere = cast(World, None)
    bound = bindings(nowhere, Telling(nowhere))
    for member in set(get_args(Effect)) ^ set(bound):
        yield f"operator: {member.__name__} stands in the union or in the table, not in both"
    minted = {f"{purpose.value}_token" for purpose in MintPurpose} & set(EFFECTS)
    names = {binding.name for binding in bound.values()} | set(get_args(AppendName)) | minted
    for name in names ^ {row.name for row in effects_of(Program.OPERATOR)}:
        yield f"operator: {name} has a row or a binding, not both"


def _pods() -> Iterator[str]:
    bound = {binding.name for binding in BINDINGS}
    rows = effects_of(Program.RUNNER) + effects_of(Program.PUBLISHER)
    for name in bound ^ {row.name for row in rows}:
        yield f"pods: {name} has a row or a binding, not both"
    for name, _, path in _values():
        if name not in bound:
            yield f"pods: {name} of {path.name} is in no binding"


def _second_ways() -> Iterator[str]:
    """A performing function that is named beside the effect's own value can be called beside it."""
    named: Counter[tuple[Path, str]] = Counter()
    imported: set[str] = set()
    for path, node in _nodes("upgraderun_runner"):
        if isinstance(node, ast.Name):
            named[path, node.id] += 1
        elif isinstance(node, ast.ImportFrom):
            imported.update(one.name for one in node.names)
    for _, act, home in _values():
        if not act.startswith("_"):
            yield f"pods: {act} of {home.name} can be called by everybody"
        elif act in imported or named[home, act] > 1:
            yield f"pods: {act} of {home.name} is reached beside its fault points"


def _points_by_hand() -> Iterator[str]:
    for package in ("upgraderun_operator", "upgraderun_runner"):
        for path, node in _nodes(package):
            if isinstance(node, ast.Call) and _passes(node) and path.name not in DOORS:
                yield f"{path.name}:{node.lineno} passes a fault point by hand"


def _passes(node: ast.Call) -> bool:
    named = node.func
    name = named.attr if isinstance(named, ast.Attribute) else getattr(named, "id", "")
    return name.strip("_") == "fault" and len(node.args) == 2


def _points_without_kill() -> Iterator[str]:
    for program, kills in KILLS.items():
        for point in set(points_of(program)) - set(kills):
            yield f"{program}: no test strikes at {point}"
        for point in set(kills) - set(points_of(program)):
            yield f"{program}: {point} is no fault point"


def _values() -> Iterator[tuple[str, str, Path]]:
    """Name and performing function of each effect's value in the runner's sources."""
    for path, node in _nodes("upgraderun_runner"):
        if not isinstance(node, ast.Call) or getattr(node.func, "id", "") not in _CLASSES:
            continue
        name, act = node.args[0], node.args[1]
        if isinstance(name, ast.Constant) and isinstance(act, ast.Name):
            yield str(name.value), act.id, path


@cache
def _nodes(package: str) -> tuple[tuple[Path, ast.AST], ...]:
    """Every node of a package's sources, read once, with its file."""
    found: Any = importlib.util.find_spec(package)
    paths = sorted(Path(found.submodule_search_locations[0]).rglob("*.py"))
    return tuple(
        (path, node)
        for path in paths
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


if __name__ == "__main__":
    said = problems()
    sys.stdout.write("\n".join(said))
    sys.exit(bool(said))
