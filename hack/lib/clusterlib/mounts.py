"""Mounts below a folder of ours.

Callers: `network` and `local`.
"""

from pathlib import Path

from clusterlib.host import run


def is_mounted(path: Path) -> bool:
    """Whether something is mounted exactly there."""
    return str(path) in _mount_points()


def below(path: Path) -> list[str]:
    """Mount points at or below the path, in the order in which they can be unmounted."""
    prefix = f"{path}/"
    return [p for p in reversed(_mount_points()) if p == str(path) or p.startswith(prefix)]


def unmount_below(path: Path) -> None:
    """Unmount everything at or below the path, also what is still in use."""
    while found := below(path):
        run(["umount", "--lazy", found[0]])


def _mount_points() -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line.split()[4].encode().decode("unicode_escape") for line in lines]
