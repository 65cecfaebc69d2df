"""`uv.lock` as a model that holds several versions of one name (upgrade-run.md §8.5, corpus A1).

Callers: profile, candidates, staging, gates, selection. Pure: bytes in, values out. Lines of the file
are never compared: markers and keys change with the forks (uv-facts §2).
"""

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.markers import Marker

from upgraderun_runner.ecosystems.base import (
    LockedFile,
    LockEdge,
    LockEntry,
    LockModel,
    Pair,
    Setting,
)
from upgraderun_runner.ecosystems.python.manifest import Manifest, parse_manifest

LOCK_VERSION = 1
_LOCAL = ("editable", "virtual", "directory", "path")
_SETTINGS = ("requires-python", "options", "manifest", "supported-markers", "conflicts")
_SETTINGS_LATE = ("required-markers",)


class LockError(ValueError):
    """The bytes are no lock of uv; the message says where."""


@dataclass(frozen=True, slots=True)
class Lock:
    """A parsed lock with what the model doesn't carry."""

    version: int
    revision: int
    requires_python: str
    project_slot: str
    entries: tuple[LockEntry, ...]
    edges: tuple[LockEdge, ...]
    header: tuple[Setting, ...]

    def named(self, name: str) -> tuple[LockEntry, ...]:
        """Every entry of a name, in lock order."""
        return tuple(entry for entry in self.entries if entry.name == name)

    @property
    def registries(self) -> tuple[str, ...]:
        """URLs of every registry that an entry comes from, sorted."""
        return tuple(sorted({registry_of(e) for e in self.entries} - {""}))


def registry_of(entry: LockEntry) -> str:
    """URL of an entry's registry; empty for other sources."""
    kind, _, value = entry.source.partition("+")
    return value if kind == "registry" else ""


def is_local(entry: LockEntry) -> bool:
    """Whether an entry is a directory or file of the repository."""
    return entry.source.partition("+")[0] in _LOCAL


def parse_lock(data: bytes, project: str) -> Lock:
    """Read a lock. `project` is the normalised name of the project that it belongs to."""
    try:
        document = tomllib.loads(data.decode("utf-8"))
        rows = document.get("package", [])
        entries = tuple(_entry(row) for row in rows)
        own = [e.slot for e in entries if e.name == project and is_local(e)]
        return Lock(
            version=int(document["version"]),
            revision=int(document.get("revision", 0)),
            requires_python=str(document.get("requires-python", "")),
            project_slot=own[0] if own else "",
            entries=entries,
            edges=tuple(_edges(rows, entries)),
            header=tuple(_header(document)),
        )
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LockError(str(error)) from error
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise LockError(f"not a lock of uv: {error!r}") from error


def _entry(row: Mapping[str, Any]) -> LockEntry:
    source = _source(row["source"])
    files = [_file(item, source) for item in row.get("wheels", ())]
    if "sdist" in row:
        files.append(_file(row["sdist"], source))
    return LockEntry(
        name=str(row["name"]),
        version=str(row.get("version", "")),
        source=source,
        files=tuple(sorted(files, key=lambda file: file.name)),
        markers=tuple(str(marker) for marker in row.get("resolution-markers", ())),
    )


def _source(value: Mapping[str, Any]) -> str:
    kind = next((k for k in ("registry", "git", "url", *_LOCAL) if k in value), next(iter(value)))
    return f"{kind}+{value[kind]}"


def _file(item: Mapping[str, Any], source: str) -> LockedFile:
    url = str(item.get("url") or item.get("filename") or item.get("path") or "")
    name = str(item.get("filename") or unquote(urlsplit(url).path.rpartition("/")[2]))
    digest = str(item.get("hash", ""))
    if not name:
        raise LockError(f"a file of {source} has no name")
    return LockedFile(name, url, digest.removeprefix("sha256:"), str(item.get("upload-time", "")))


def _edges(rows: Iterable[Mapping[str, Any]], entries: tuple[LockEntry, ...]) -> Iterator[LockEdge]:
    by_name: dict[str, list[LockEntry]] = {}
    for entry in entries:
        by_name.setdefault(entry.name, []).append(entry)
    for row, entry in zip(rows, entries, strict=True):
        for via, needs in _needs(row):
            for need in needs:
                for target in _matching(need, by_name.get(str(need["name"]), [])):
                    yield LockEdge(entry.slot, target.slot, via, str(need.get("marker", "")))


def _needs(row: Mapping[str, Any]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    yield "", row.get("dependencies", [])
    for extra, needs in row.get("optional-dependencies", {}).items():
        yield f"extra:{extra}", needs
    for group, needs in row.get("dev-dependencies", {}).items():
        yield f"group:{group}", needs


def _matching(need: Mapping[str, Any], entries: list[LockEntry]) -> list[LockEntry]:
    """Find what an edge means: uv writes version and source only where a name has several."""
    version = need.get("version")
    source = _source(need["source"]) if "source" in need else None
    return [
        entry
        for entry in entries
        if version in (None, entry.version) and source in (None, entry.source)
    ]


def _header(document: Mapping[str, Any]) -> Iterator[Setting]:
    yield Setting("lock:version", str(document["version"]))
    for key in (*_SETTINGS, *_SETTINGS_LATE):
        if key in document:
            yield Setting(f"lock:{key}", _plain(document[key]))


def _plain(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def lock_model(pair: Pair) -> LockModel:
    """Join manifest and lock into the model that the gates compare (§8.1).

    Raises ManifestError or LockError. Settings are everything of the manifest, requirement strings
    reduced to what an upgrade must not touch, and the lock's header.
    """
    manifest = parse_manifest(pair.manifest)
    lock = parse_lock(pair.lock, manifest.name)
    return LockModel(
        direct=manifest.direct,
        entries=lock.entries,
        edges=lock.edges,
        settings=tuple(manifest_settings(manifest)) + lock.header,
        project_slot=lock.project_slot,
    )


def manifest_settings(manifest: Manifest) -> Iterator[Setting]:
    """Flatten a manifest. Declarations are listed beside it, so their strings are left out here."""
    places = {declaration.path: declaration for declaration in manifest.declarations}
    yield from _flatten(manifest.data, (), places)


def _flatten(
    value: object, path: tuple[str | int, ...], skip: Mapping[tuple[str | int, ...], object]
) -> Iterator[Setting]:
    if path in skip:
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flatten(item, (*path, key), skip)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _flatten(item, (*path, index), skip)
    else:
        yield Setting("manifest:" + ".".join(map(str, path)), _plain(value))


def holds_for(entry: LockEntry, environment: Mapping[str, str]) -> bool:
    """Whether an entry belongs to the fork of an environment (no markers: to every one)."""
    return not entry.markers or any(
        Marker(marker).evaluate(dict(environment)) for marker in entry.markers
    )
