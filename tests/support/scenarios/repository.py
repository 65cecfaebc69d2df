"""Reads a repository's declaration and turns it into the files of one exact tree.

A declaration (`tests/scenarios/repositories/<name>.toml`, or a section of it, `<name>:<section>`)
may extend another one; `@REGISTRY@` stands for the index URL and `@FILES@` for the folder of its
files. What must stand in the tree after the lock was made, or can't be written as text, has its
own keys; see `patch-safe.toml`.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.fixtures.packages import Package
from support.scenarios.table import FOLDER

REGULAR, LINK, GITLINK = "100644", "120000", "160000"
REGISTRY, FILES = "@REGISTRY@", "@FILES@"


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement in one file; `find` must be there. `after_lock`: uv never sees it."""

    file: str
    find: str
    replace: str
    after_lock: bool = False


@dataclass(frozen=True, slots=True)
class Bulk:
    """Files too many or too large to be written down: `count` files of `size` zero bytes.

    `path` has a place for the number, as in `many/{:05}.bin`.
    """

    path: str
    count: int
    size: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a tree."""

    mode: str
    content: bytes


@dataclass(frozen=True, slots=True)
class RepositoryPlan:
    """A repository as declared, before a registry has an address.

    `late_files` enter after the lock; `locked_in` are the directories in which uv makes a lock.
    """

    name: str
    packages: tuple[Package, ...]
    files: Mapping[str, str]
    late_files: Mapping[str, str] = field(default_factory=dict)
    edits: tuple[Edit, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    submodules: tuple[str, ...] = ()
    bulk: tuple[Bulk, ...] = ()
    hidden: Mapping[str, str] = field(default_factory=dict)
    locked_in: tuple[str, ...] = (".",)

    def base_packages(self) -> tuple[Package, ...]:
        """What the registry holds while the base lock is made: nothing that comes later."""
        kept = (
            Package(package.name, tuple(r for r in package.releases if not r.later))
            for package in self.packages
        )
        return tuple(package for package in kept if package.releases)

    def before_lock(self) -> dict[str, str]:
        """The text files that uv sees, with placeholders."""
        return self._edited(dict(self.files), after_lock=False)

    def tree(self, files: Mapping[str, str]) -> dict[str, Entry]:
        """The whole tree around the (perhaps locked) text files."""
        texts = self._edited({**files, **self.late_files}, after_lock=True)
        entries = {path: Entry(REGULAR, text.encode()) for path, text in texts.items()}
        entries |= {path: Entry(LINK, target.encode()) for path, target in self.links.items()}
        entries |= {path: Entry(GITLINK, b"") for path in self.submodules}
        for bulk in self.bulk:
            content = bytes(bulk.size)
            entries |= {bulk.path.format(i): Entry(REGULAR, content) for i in range(bulk.count)}
        return entries

    def source_tree(self) -> dict[str, Entry]:
        """The tree without any lock and with placeholders: the same bytes on every machine."""
        texts = {**self.before_lock(), **self.late_files}
        return self.tree_of_sources(texts)

    def tree_of_sources(self, texts: Mapping[str, str]) -> dict[str, Entry]:
        """As `tree`, leaving out edits of what only exists once uv has locked."""
        kept = tuple(e for e in self.edits if not e.after_lock or e.file in texts)
        plan = RepositoryPlan(
            self.name,
            self.packages,
            self.files,
            self.late_files,
            kept,
            self.links,
            self.submodules,
            self.bulk,
        )
        return plan.tree(texts)

    def _edited(self, files: dict[str, str], *, after_lock: bool) -> dict[str, str]:
        for edit in self.edits:
            if edit.after_lock != after_lock:
                continue
            if edit.find not in files[edit.file]:
                raise ValueError(f"{self.name}: {edit.file} has no {edit.find!r}")
            files[edit.file] = files[edit.file].replace(edit.find, edit.replace)
        return files


def load_repository(name: str, folder: Path = FOLDER / "repositories") -> RepositoryPlan:
    """Read a declaration and what it extends."""
    return _plan(name, _merged(name, folder))


def _merged(name: str, folder: Path) -> dict[str, Any]:
    file, _, section = name.partition(":")
    whole: dict[str, Any] = tomllib.loads((folder / f"{file}.toml").read_text())
    value = whole[section] if section else whole
    parent = value.pop("extends", None)
    if parent is None:
        return value
    base = _merged(parent, folder)
    removed = value.pop("remove", [])
    merged = {**base, **value}
    for table in ("files", "late_files", "links", "hidden"):
        merged[table] = {**base.get(table, {}), **value.get(table, {})}
    merged["edits"] = [*base.get("edits", []), *value.get("edits", [])]
    merged["files"] = {path: text for path, text in merged["files"].items() if path not in removed}
    return merged


def _plan(name: str, value: dict[str, Any]) -> RepositoryPlan:
    known = {"packages", "edits", "bulk", "submodules", "locked_in"}
    tables = {"files", "late_files", "links", "hidden"}
    if unknown := set(value) - known - tables:
        raise ValueError(f"{name}: unknown keys {sorted(unknown)}")
    return RepositoryPlan(
        name,
        packages=tuple(Package.from_json(row) for row in value.get("packages", ())),
        edits=tuple(Edit(**row) for row in value.get("edits", ())),
        bulk=tuple(Bulk(**row) for row in value.get("bulk", ())),
        submodules=tuple(value.get("submodules", ())),
        locked_in=tuple(value.get("locked_in", (".",))),
        **{table: value.get(table, {}) for table in tables},
    )
