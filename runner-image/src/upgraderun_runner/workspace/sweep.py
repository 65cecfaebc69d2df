"""Removing what no open intent names (upgrade-run.md §13.1 step 4).

Caller: the start of an incarnation that holds the run Lease and the workspace lock; nobody else.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from upgraderun_runner.workspace.files import TEMPORARY_PREFIX
from upgraderun_runner.workspace.layout import Layout
from upgraderun_runner.workspace.snapshot import HALF_MADE_SUFFIX


@dataclass(frozen=True, slots=True)
class Keep:
    """What the journal still names: staging directories (names), caches (names)."""

    staging: frozenset[str] = frozenset()
    caches: frozenset[str] = frozenset()


def sweep(layout: Layout, keep: Keep) -> tuple[Path, ...]:
    """Remove staging, caches, scratch, half-made snapshots, temporary siblings, git lock files.

    Returns what was removed, sorted. Never touches `git/` but for `*.lock`, nor files of `work/`
    but for our temporary siblings, nor another generation. A second call removes nothing.
    """
    doomed = sorted(
        {
            *(p for p in _children(layout.staging_root) if p.name not in keep.staging),
            *(p for p in _children(layout.cache_root) if p.name not in keep.caches),
            *_children(layout.scratch("any").parent),
            *(p for p in _children(layout.snapshots) if p.name.endswith(HALF_MADE_SUFFIX)),
            *_files(layout.work, lambda name: name.startswith(TEMPORARY_PREFIX)),
            *(p for p in _children(layout.directory) if p.name.startswith(TEMPORARY_PREFIX)),
            *_files(layout.git, lambda name: name.endswith(".lock")),
        }
    )
    for path in doomed:
        _remove(path)
    return tuple(doomed)


def remove_generation(layout: Layout) -> None:
    """Remove an abandoned generation after the journal has a newer `context`. Absent is fine."""
    if layout.directory.exists():
        _remove(layout.directory)


def _children(directory: Path) -> Iterator[Path]:
    if directory.is_dir():
        yield from directory.iterdir()


def _files(directory: Path, is_wanted: Callable[[str], bool]) -> Iterator[Path]:
    for parent, _, names in os.walk(directory):
        yield from (Path(parent, name) for name in names if is_wanted(name))


def _remove(path: Path) -> None:
    """Remove a file, a link (not what it points at) or a whole directory."""
    if path.is_dir() and not path.is_symlink():
        _make_writable(path)
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _make_writable(directory: Path) -> None:
    """Tools leave read-only directories in caches; their owner may still empty them."""
    directory.chmod(0o700)
    for parent, names, _ in os.walk(directory):
        for name in names:
            child = Path(parent, name)
            if not child.is_symlink():
                child.chmod(0o700)
