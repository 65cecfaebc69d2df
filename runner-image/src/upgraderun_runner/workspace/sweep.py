"""Removing what no open intent names (upgrade-run.md §13.1 step 4).

Caller: the start of an incarnation that holds the run Lease and the workspace lock; nobody else.
"""

from dataclasses import dataclass
from pathlib import Path

from upgraderun_runner.workspace.layout import Layout


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
    raise NotImplementedError


def remove_generation(layout: Layout) -> None:
    """Remove an abandoned generation after the journal has a newer `context`. Absent is fine."""
    raise NotImplementedError
