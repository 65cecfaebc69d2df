"""Cgroups of a cluster, on version 1 and version 2 alike: made, joined, emptied, removed.

Callers: `local`. Every process of a cluster is in a group below the cluster's own, which makes
"ours" a fact the kernel keeps; nothing outside such a group is ever signalled here.
"""

import contextlib
import os
import signal
from pathlib import Path

from clusterlib.errors import ClusterError
from clusterlib.processes import wait_until

EMPTY_SECONDS = 30.0
# Joins the groups given before `--`, then becomes the program after it.
JOIN_SCRIPT = 'while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs"; shift; done; shift; exec "$@"'


def create(group: str) -> None:
    """Make the group in every hierarchy. A cpuset group is useless until it has its CPUs."""
    for root in _hierarchies():
        folder = root
        for part in Path(group).parts:
            _delegate(folder)
            folder /= part
            folder.mkdir(exist_ok=True)
            for name in ("cpuset.cpus", "cpuset.mems"):
                if (folder / "cgroup.clone_children").exists() and (folder / name).exists():
                    (folder / name).write_text((folder.parent / name).read_text())


def joining(group: str, argv: list[str]) -> list[str]:
    """The command line that runs `argv` inside the group, under the same pid."""
    folders = [str(root / group) for root in _hierarchies()]
    return ["/bin/sh", "-c", JOIN_SCRIPT, "join", *folders, "--", *argv]


def kill_all(group: str) -> None:
    """End every process of the group and below, by force."""

    def emptied() -> bool:
        pids = members(group)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not pids

    if not wait_until(emptied, EMPTY_SECONDS):
        raise ClusterError(f"processes in cgroup {group} don't end: {sorted(members(group))}")


def remove(group: str) -> None:
    """Remove the empty group and all below it. The kernel may need a moment after the last exit."""

    def removed() -> bool:
        for folder in _folders(group):
            with contextlib.suppress(OSError):
                folder.rmdir()
        return not _folders(group)

    if not wait_until(removed, EMPTY_SECONDS):
        raise ClusterError(f"cgroups can't be removed: {_folders(group)}; are processes in them?")


def exists(group: str) -> bool:
    """Whether any hierarchy has the group."""
    return bool(_folders(group))


def members(group: str) -> set[int]:
    """Processes in the group and below, in any hierarchy."""
    found: set[int] = set()
    for folder in _folders(group):
        with contextlib.suppress(OSError):
            found.update(int(pid) for pid in (folder / "cgroup.procs").read_text().split())
    return found


def _folders(group: str) -> list[Path]:
    """All folders of the group, the deepest first."""
    roots = [root / group for root in _hierarchies()]
    return [
        Path(folder)
        for root in roots
        if root.is_dir()
        for folder, _, _ in os.walk(root, topdown=False)
    ]


def _delegate(folder: Path) -> None:
    """Version 2 alone: let groups below have the controllers that this one has."""
    controllers = folder / "cgroup.controllers"
    if controllers.exists():
        for name in controllers.read_text().split():
            with contextlib.suppress(OSError):
                (folder / "cgroup.subtree_control").write_text(f"+{name}")


def _hierarchies() -> list[Path]:
    mounts = [line.split(" - ") for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [
        Path(left.split()[4]) for left, right in mounts if right.split()[0] in ("cgroup", "cgroup2")
    ]
