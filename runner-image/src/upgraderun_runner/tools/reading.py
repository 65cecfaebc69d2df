"""Tools that only look: profile, candidates, files, diff (upgrade-run.md §9.2).

Callers: `tools.registry`. They follow no link, leave the work tree alone and answer within bounds.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import re2

from upgraderun_protocol.records import to_json
from upgraderun_runner import limits
from upgraderun_runner.tools import dependency
from upgraderun_runner.tools.bench import Bench
from upgraderun_runner.tools.step import ToolFailed
from upgraderun_runner.workspace.diff import diff_trees, patch_of
from upgraderun_runner.workspace.errors import PathRefused
from upgraderun_runner.workspace.files import read_file as read_bytes
from upgraderun_runner.workspace.paths import path_violation

Arguments = Mapping[str, Any]


async def get_repository_profile(bench: Bench, _arguments: Arguments) -> dict[str, Any]:
    """Names, toolchain, direct dependencies, checks, protected globs."""
    profile = bench.context.profile
    return {
        "project": profile.project,
        "ecosystem": profile.ecosystem,
        "directory": profile.directory,
        "manifest": profile.manifest_path,
        "lock": profile.lock_path,
        "toolchain": {"image": profile.image.version, "required": profile.requires_toolchain},
        "direct_dependencies": to_json(profile.direct),
        "checks": to_json(profile.checks),
        "protected": list(bench.protected.globs),
        "notes": list(profile.notes),
    }


async def list_candidates(bench: Bench, _arguments: Arguments) -> dict[str, Any]:
    """Every newer version: class, eligible, reasons; the ranked pairs first."""
    return {
        "ranked": to_json(bench.candidates.ranked),
        "candidates": [
            {
                "dependency": candidate.name,
                "current": candidate.current,
                "version": candidate.version,
                "class": candidate.change_class.value,
                "eligible": candidate.eligible,
                "reasons": to_json(candidate.reasons),
            }
            for candidate in bench.candidates.candidates
        ],
        "notes": list(bench.candidates.notes),
    }


async def read_file(bench: Bench, arguments: Arguments) -> dict[str, Any]:
    """A numbered window of a text file."""
    path = clean(str(arguments["path"]))
    return window(bench.layout.work, path, int(arguments.get("start_line", 1)))


async def list_directory(bench: Bench, arguments: Arguments) -> dict[str, Any]:
    """Names, types and sizes of one directory; `.git` is hidden."""
    return listing(bench.layout.work, clean(str(arguments.get("path", "."))))


async def search_files(bench: Bench, arguments: Arguments) -> dict[str, Any]:
    """Lines that match an RE2 pattern, in the work tree or in a dependency's source."""
    try:
        pattern = re2.compile(str(arguments["pattern"]))
    except re2.error as error:
        raise ToolFailed("invalid_pattern", f"no RE2 pattern: {error}") from error
    root = bench.layout.work
    if "dependency" in arguments:
        root = dependency.source_root(
            bench.cache, str(arguments["dependency"]), str(arguments["version"])
        )
    return search(root, clean(str(arguments.get("path", "."))), pattern)


async def read_dependency_source(bench: Bench, arguments: Arguments) -> dict[str, Any]:
    """A listing, or a window of a file, of an acquired dependency."""
    root = dependency.source_root(
        bench.cache, str(arguments["dependency"]), str(arguments["version"])
    )
    path = clean(str(arguments.get("path", ".")))
    if (root / path).is_dir():
        return listing(root, path)
    return window(root, path, int(arguments.get("start_line", 1)))


async def git_diff(bench: Bench, _arguments: Arguments) -> dict[str, Any]:
    """Tree id, counts per file, patch."""
    tree = await bench.tree()
    diff = await diff_trees(bench.git, bench.context.base_tree, tree)
    patch = await patch_of(bench.git, bench.context.base_tree, tree, limits.DIFF_PATCH_BYTES)
    return {
        "tree": tree,
        "files": [
            {"path": change.path, "added": change.added, "removed": change.removed}
            for change in diff.files
        ],
        "patch": patch.text,
        "truncated": patch.truncated,
    }


def clean(path: str) -> str:
    """Drop a leading `./` and trailing slashes, then refuse what no tree may hold (§9.4)."""
    plain = path.removeprefix("./").rstrip("/") or "."
    violation = None if plain == "." else path_violation(plain)
    if violation is not None:
        raise ToolFailed("path_refused", f"{violation.path}: {violation.detail}")
    return plain


def window(root: Path, path: str, start_line: int) -> dict[str, Any]:
    """Lines from `start_line` on, at most 20,000 bytes, with totals and the next start."""
    lines = _text_of(root, path).splitlines()
    shown: list[str] = []
    size = 0
    for number, line in enumerate(lines[start_line - 1 :], start=start_line):
        numbered = f"{number}: {line}"
        size += len(numbered.encode("utf-8")) + 1
        if size > limits.READ_WINDOW_BYTES and shown:
            break
        shown.append(numbered[: limits.READ_WINDOW_BYTES])
    following = start_line + len(shown)
    return {
        "path": path,
        "lines": shown,
        "total_lines": len(lines),
        "next_start_line": following if following <= len(lines) else None,
    }


def listing(root: Path, path: str) -> dict[str, Any]:
    """One directory beneath a root."""
    directory = _directory(root, path)
    entries = sorted(
        (entry for entry in directory.iterdir() if entry.name.lower() != ".git"),
        key=lambda entry: entry.name,
    )
    return {
        "path": path,
        "entries": [_described(entry) for entry in entries[: limits.LIST_ENTRIES_MAX]],
        "truncated": len(entries) > limits.LIST_ENTRIES_MAX,
    }


def search(root: Path, path: str, pattern: Any) -> dict[str, Any]:
    """Hits below a path, in order of paths and lines."""
    hits: list[dict[str, Any]] = []
    for file in _text_files(root, path):
        for number, line in enumerate(_decoded(root, file), start=1):
            if not pattern.search(line):
                continue
            if len(hits) == limits.SEARCH_HITS_MAX:
                return {"hits": hits, "truncated": True}
            text = line.encode("utf-8")[: limits.SEARCH_HIT_BYTES].decode("utf-8", "ignore")
            hits.append({"path": file, "line": number, "text": text})
    return {"hits": hits, "truncated": False}


def _text_files(root: Path, path: str) -> Iterator[str]:
    start = root / path
    if start.is_file() and not start.is_symlink():
        yield path
        return
    waiting = [_directory(root, path)]
    while waiting:
        directory = waiting.pop()
        entries = sorted(directory.iterdir(), key=lambda entry: entry.name)
        for entry in entries:
            if entry.is_symlink() or entry.name.lower() == ".git":
                continue
            if entry.is_file() and entry.stat().st_size <= limits.SEARCH_FILE_BYTES_MAX:
                yield str(entry.relative_to(root))
        waiting.extend(
            entry
            for entry in reversed(entries)
            if entry.is_dir() and not entry.is_symlink() and entry.name.lower() != ".git"
        )


def _decoded(root: Path, path: str) -> list[str]:
    """Lines of a UTF-8 file; anything else has none."""
    try:
        content = read_bytes(root, path, limits.SEARCH_FILE_BYTES_MAX)
        return [] if content is None else content.decode("utf-8").splitlines()
    except (PathRefused, UnicodeDecodeError):
        return []


def _text_of(root: Path, path: str) -> str:
    try:
        content = read_bytes(root, path, limits.READ_FILE_BYTES_MAX)
    except PathRefused as error:
        raise ToolFailed("path_refused", str(error)) from error
    if content is None:
        raise _missing(root, path)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ToolFailed("not_text", f"{path} is no UTF-8 text") from error


def _directory(root: Path, path: str) -> Path:
    """A directory beneath root, no component of which is a link."""
    current = root
    for segment in () if path == "." else path.split("/"):
        current = current / segment
        if current.is_symlink():
            raise ToolFailed("path_refused", f"{path}: {segment} is a link")
        if not current.is_dir():
            raise _missing(root, path)
    return current


def _missing(root: Path, path: str) -> ToolFailed:
    """Name the nearest directory that is there and some of its entries (§9.4)."""
    nearest = Path(path)
    while nearest != Path() and not (root / nearest).is_dir():
        nearest = nearest.parent
    names = sorted(entry.name for entry in (root / nearest).iterdir() if entry.name != ".git")
    return ToolFailed(
        "not_found",
        f"{path} is not there; the nearest directory is {nearest}",
        {"nearest": str(nearest), "entries": names[: limits.NEAREST_ENTRIES_MAX]},
    )


def _described(entry: Path) -> dict[str, Any]:
    if entry.is_symlink():
        return {"name": entry.name, "type": "link", "size": 0}
    if entry.is_dir():
        return {"name": entry.name, "type": "directory", "size": 0}
    return {"name": entry.name, "type": "file", "size": entry.stat().st_size}
