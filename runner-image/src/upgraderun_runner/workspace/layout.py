"""Where things lie on the run's volume (upgrade-run.md §1, "workspace"). Pure: names only.

Callers: `main` and every module that needs a directory. The same paths hold in every pod that
mounts the volume.
"""

from dataclasses import dataclass
from pathlib import Path

from upgraderun_protocol.ids import TreeId


@dataclass(frozen=True, slots=True)
class Layout:
    """Directories of generation `generation` beneath the volume's root."""

    root: Path
    generation: int

    @property
    def directory(self) -> Path:
        """`ws-<g>`; a name is never deleted and reused."""
        return self.root / f"ws-{self.generation}"

    @property
    def git(self) -> Path:
        """The git directory, outside the work tree; no sandbox ever sees it (security.md H28)."""
        return self.directory / "git"

    @property
    def work(self) -> Path:
        """The work tree; sandboxes see snapshots of it only."""
        return self.directory / "work"

    @property
    def snapshots(self) -> Path:
        """Verified copies of trees, one directory per tree id."""
        return self.directory / "snapshots"

    @property
    def staging_root(self) -> Path:
        """Parent of the staging directories."""
        return self.directory / "staging"

    @property
    def cache_root(self) -> Path:
        """Parent of the caches; each has a random name."""
        return self.directory / "cache"

    @property
    def spool(self) -> Path:
        """What waits to be uploaded."""
        return self.directory / "spool"

    @property
    def identity(self) -> Path:
        """`identity.json`: run UID, generation, nonce."""
        return self.directory / "identity.json"

    @property
    def lock(self) -> Path:
        """The lock file of the whole volume: one runner process at a time, whatever generation."""
        return self.root / "workspace.lock"

    def staging(self, step: str) -> Path:
        """Staging directory of a step; `step` is its entry id, such as `s3`."""
        return self.staging_root / step.replace("/", "-")

    def snapshot(self, tree: TreeId) -> Path:
        """Where the snapshot of a tree lies."""
        return self.snapshots / tree

    def scratch(self, name: str) -> Path:
        """A file or directory of ours that a sweep may remove: temporary indexes and the like."""
        return self.directory / "scratch" / name
