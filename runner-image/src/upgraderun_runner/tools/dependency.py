"""Where the source of an acquired dependency lies in the cache (upgrade-run.md §9.2).

Caller: `tools.reading`. The cache was written by a sandbox: nothing of it is executed or imported,
and files in it are read without following links.
"""

from pathlib import Path

from packaging.utils import canonicalize_name

from upgraderun_runner.tools.step import ToolFailed

ARCHIVES = "*/archive-v*"


def source_root(cache: Path, name: str, version: str) -> Path:
    """The unpacked wheel of one version. Raises ToolFailed `not_acquired` if it isn't there."""
    wanted = canonicalize_name(name)
    for info in sorted(cache.glob(f"{ARCHIVES}/*/*.dist-info")):
        found, _, rest = info.name.removesuffix(".dist-info").partition("-")
        if canonicalize_name(found) == wanted and rest == version and not info.is_symlink():
            return info.parent
    raise ToolFailed(
        "not_acquired", f"{name} {version} isn't in the cache; only locked versions can be read"
    )
