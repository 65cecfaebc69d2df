"""`pyproject.toml`: what it declares, and the edit of one constraint (upgrade-run.md §8.1).

Callers: profile, lock model, staging, candidates. Pure: bytes in, bytes out. An edit touches nothing
but the version in a requirement string; order, quotes, comments and operators stay.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tomlkit
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version
from tomlkit.items import String

from upgraderun_runner.ecosystems.base import ConstraintEdit, DirectDependency

_CLAUSE = re.compile(r"(===|==|~=|!=|<=|>=|<|>)(\s*)([^\s,;)]+)")


class ManifestError(ValueError):
    """The manifest can't be read or can't be edited exactly; the message says where."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """One requirement string and its place in the document."""

    requirement: Requirement
    text: str
    where: str
    path: tuple[str | int, ...]

    @property
    def name(self) -> str:
        """The normalised name."""
        return canonicalize_name(self.requirement.name)

    def holds_in(self, environment: Mapping[str, str]) -> bool:
        """Whether its marker admits an environment."""
        marker = self.requirement.marker
        return marker is None or marker.evaluate(dict(environment))

    @property
    def direct(self) -> DirectDependency:
        """The declaration as the profile shows it."""
        return DirectDependency(
            self.name,
            str(self.requirement.specifier),
            self.where,
            str(self.requirement.marker or ""),
            tuple(sorted(self.requirement.extras)),
        )


@dataclass(frozen=True, slots=True)
class Manifest:
    """A parsed manifest. `data` is plain TOML data; `groups` maps a group to those it includes."""

    data: Mapping[str, Any]
    declarations: tuple[Declaration, ...]

    @property
    def project(self) -> Mapping[str, Any]:
        """The `[project]` table, empty if there is none."""
        return _table(self.data.get("project"))

    @property
    def name(self) -> str:
        """The project's normalised name."""
        return canonicalize_name(str(self.project.get("name", "")))

    @property
    def requires_python(self) -> str:
        """The declared range, or empty."""
        return str(self.project.get("requires-python", ""))

    @property
    def dynamic(self) -> tuple[str, ...]:
        """Names of fields that the build back end fills."""
        return tuple(str(item) for item in self.project.get("dynamic", ()))

    @property
    def uv(self) -> Mapping[str, Any]:
        """The `[tool.uv]` table."""
        return _table(_table(self.data.get("tool")).get("uv"))

    @property
    def tool(self) -> Mapping[str, Any]:
        """The `[tool]` table."""
        return _table(self.data.get("tool"))

    @property
    def build_system(self) -> Mapping[str, Any]:
        """The `[build-system]` table."""
        return _table(self.data.get("build-system"))

    @property
    def virtual(self) -> bool:
        """Whether uv doesn't install the project itself (uv-facts §1)."""
        package = self.uv.get("package")
        return not package if isinstance(package, bool) else "build-system" not in self.data

    @property
    def direct(self) -> tuple[DirectDependency, ...]:
        """Every declaration but those of the project itself (an extra may refer to another)."""
        return tuple(d.direct for d in self.declarations if d.name != self.name)

    def of(
        self, name: str, environment: Mapping[str, str] | None = None
    ) -> tuple[Declaration, ...]:
        """Every declaration of a normalised name; with an environment only those that hold in it.

        In a forked lock the other declarations speak of other forks, which an upgrade leaves alone.
        """
        return tuple(
            d
            for d in self.declarations
            if d.name == name and (environment is None or d.holds_in(environment))
        )


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def parse_manifest(data: bytes) -> Manifest:
    """Read a manifest; raises ManifestError for broken TOML and broken requirement strings."""
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ManifestError(str(error)) from error
    return Manifest(document, tuple(_declarations(document)))


def _declarations(document: Mapping[str, Any]) -> list[Declaration]:
    project = _table(document.get("project"))
    found = _listed(project.get("dependencies"), "dependencies", ("project", "dependencies"))
    for extra, items in _table(project.get("optional-dependencies")).items():
        path = ("project", "optional-dependencies", extra)
        found += _listed(items, f"extra:{extra}", path)
    for group, items in _table(document.get("dependency-groups")).items():
        found += _listed(items, f"group:{group}", ("dependency-groups", group))
    uv = _table(_table(document.get("tool")).get("uv"))
    path = ("tool", "uv", "dev-dependencies")
    return found + _listed(uv.get("dev-dependencies"), "group:dev", path)


def _listed(items: object, where: str, path: tuple[str, ...]) -> list[Declaration]:
    if not isinstance(items, list):
        return []
    return [
        Declaration(_requirement(item, where), item, where, (*path, index))
        for index, item in enumerate(items)
        if isinstance(item, str)
    ]


def _requirement(text: str, where: str) -> Requirement:
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        raise ManifestError(f"{where}: {text!r} is no requirement: {error}") from error


def included_groups(manifest: Manifest, group: str) -> tuple[str, ...]:
    """Name the groups that a group includes, not transitively."""
    items = _table(manifest.data.get("dependency-groups")).get(group, ())
    return tuple(
        str(item["include-group"])
        for item in items
        if isinstance(item, Mapping) and "include-group" in item
    )


def group_names(manifest: Manifest) -> tuple[str, ...]:
    """Name every dependency group, `dev` of the older uv table included."""
    names = tuple(_table(manifest.data.get("dependency-groups")))
    return names if "dev-dependencies" not in manifest.uv or "dev" in names else (*names, "dev")


def extra_names(manifest: Manifest) -> tuple[str, ...]:
    """Name every extra of the project."""
    return tuple(_table(manifest.project.get("optional-dependencies")))


def excludes(declaration: Declaration, target: Version) -> bool:
    """Whether a declaration's specifier doesn't admit the target."""
    return not declaration.requirement.specifier.contains(target, prereleases=True)


def editable_form(specifier: SpecifierSet) -> bool:
    """Whether a specifier that excludes a target may be edited: `==`, `~=`, `>=` with optional `<`."""
    clauses = {clause.operator: clause.version for clause in specifier}
    if len(clauses) != len(list(specifier)):
        return False
    if set(clauses) == {"<", ">="}:
        bound = Version(clauses["<"])
        return bound.is_prerelease is False and any(bound.release)
    return set(clauses) in ({"=="}, {"~="}, {">="})


def edit_manifest(
    data: bytes, name: str, target: Version, environment: Mapping[str, str] | None = None
) -> tuple[bytes, tuple[ConstraintEdit, ...]]:
    """Move the constraints of a name that exclude the target, and only those (corpus A2).

    With an `environment` only declarations that hold in it: the target is one fork of several.
    Returns the same bytes if none does. Raises ManifestError for a form that can't be edited.
    """
    manifest = parse_manifest(data)
    affected = [d for d in manifest.of(name, environment) if excludes(d, target)]
    if not affected:
        return data, ()
    text = data.decode("utf-8")
    document = tomlkit.parse(text)
    if tomlkit.dumps(document) != text:
        raise ManifestError("the manifest can't be written back byte by byte")
    edits = []
    for declaration in affected:
        new_text = _moved(declaration, target)
        _replace(document, declaration.path, new_text)
        edits.append(ConstraintEdit(declaration.where, declaration.text, new_text))
    return tomlkit.dumps(document).encode("utf-8"), tuple(edits)


def _replace(document: Any, path: tuple[str | int, ...], text: str) -> None:
    holder = document
    for key in path[:-1]:
        holder = holder[key]
    old = holder[path[-1]]
    holder[path[-1]] = String(old._t, text, text, old.trivia)  # noqa: SLF001 - keeps the quotes; requirement strings need no escapes


def _moved(declaration: Declaration, target: Version) -> str:
    if not editable_form(declaration.requirement.specifier):
        raise ManifestError(f"{declaration.where}: {declaration.text!r} has no form we may edit")
    head, separator, marker = declaration.text.partition(";")
    return _CLAUSE.sub(lambda match: _clause(match, target), head) + separator + marker


def _clause(match: re.Match[str], target: Version) -> str:
    operator, space, old = match.groups()
    return f"{operator}{space}{_moved_version(operator, old, target)}"


def _moved_version(operator: str, old: str, target: Version) -> str:
    if operator == "==":
        return _truncated(target, len(_numbers(old)), ".*") if old.endswith(".*") else str(target)
    if operator == "~=":
        return _truncated(target, max(2, len(_numbers(old))), "")
    if operator == "<":
        return _bound(old, target)
    return old


def _numbers(text: str) -> tuple[int, ...]:
    return Version(text.removesuffix(".*")).release


def _epoch(target: Version) -> str:
    return f"{target.epoch}!" if target.epoch else ""


def _truncated(target: Version, count: int, suffix: str) -> str:
    numbers = (target.release + (0,) * count)[:count]
    return _epoch(target) + ".".join(map(str, numbers)) + suffix


def _bound(old: str, target: Version) -> str:
    """Raise an upper bound with its own precision: `<2.3` to `<2.4`, `<4.0.0` to `<5.0.0`."""
    numbers = _numbers(old)
    precision = max(index for index, number in enumerate(numbers, 1) if number)
    kept = list((target.release + (0,) * precision)[:precision])
    kept[-1] += 1
    return _epoch(target) + ".".join(map(str, kept + [0] * (len(numbers) - precision)))
