"""The uv command lines of every phase, in one place (uv-facts §8).

Callers: acquire, staging, validate. Pure: builds `Command` values, runs nothing. The golden test of
`security.md` H32 reads them: whatever resolves carries `--no-build`.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from upgraderun_runner.ecosystems.base import ProjectProfile
from upgraderun_runner.ecosystems.python.toolchain import (
    PythonToolchain,
    Workroom,
    environment,
)
from upgraderun_runner.sandbox.commands import Command, Profile

MUTATE_SECONDS: Final = 300
"""Limit of each staging command (upgrade-run.md §8.2)."""
ACQUIRE_SECONDS: Final = 1200


def acquired(cache: Path) -> Path:
    """The part of the run's cache that validations copy: wheels and the build kit."""
    return cache / "uv"


def resolving(cache: Path) -> Path:
    """The part that only resolutions use: index pages and metadata."""
    return cache / "lock"


class UvCommands:
    """Builds the commands of one project with the uv that fits its lock."""

    def __init__(self, toolchain: PythonToolchain, profile: ProjectProfile, cache: Path) -> None:
        fitting = [b for b in toolchain.uv if b.version == profile.lock_tool_version]
        self._uv = fitting[0].path if fitting else toolchain.newest.path
        self._toolchain = toolchain
        self._profile = profile
        self._cache = cache

    def lock(self, directory: Path, room: Workroom, upgrades: Iterable[str] = ()) -> Command:
        """Resolve in a staged directory; `upgrades` are the values of `-P`."""
        pins = tuple(part for value in upgrades for part in ("--upgrade-package", value))
        return self._mutate(("lock", "--no-build", *pins), directory, room)

    def lock_check(self, directory: Path, room: Workroom) -> Command:
        """Prove that resolving again would change nothing."""
        return self._mutate(("lock", "--check", "--no-build"), directory, room)

    def export(self, directory: Path, room: Workroom) -> Command:
        """Resolve from the frozen lock alone: what an environment would install, with markers."""
        flags = ("--frozen", "--no-hashes", "--no-annotate", "--no-header", "--no-emit-project")
        return self._mutate(("export", *flags, *self._profile.selection), directory, room)

    def fetch(self, directory: Path, room: Workroom) -> Command:
        """Download every locked wheel of the selection and check its hash; builds nothing (§8.4)."""
        flags = ("--locked", "--no-install-project", "--no-build", *self._profile.selection)
        extra = {"UV_PROJECT_ENVIRONMENT": str(room.root / "throwaway")}
        return self._acquire(("sync", *flags), directory, room, extra)

    def kit_environment(self, directory: Path, room: Workroom) -> Command:
        """Make the throw-away environment of the build kit."""
        return self._acquire(("venv", str(room.root / "kit")), directory, room)

    def kit_install(self, directory: Path, room: Workroom, requirements: Path) -> Command:
        """Fetch the build kit as wheels, with the project's own index settings."""
        arguments = ("--python", str(room.root / "kit"), "--no-build", "-r", str(requirements))
        return self._acquire(("pip", "install", *arguments), directory, room)

    def kit_freeze(self, directory: Path, room: Workroom) -> Command:
        """List the kit's versions: evidence, since no lock holds them."""
        return self._acquire(("pip", "freeze", "--python", str(room.root / "kit")), directory, room)

    def _mutate(self, arguments: tuple[str, ...], directory: Path, room: Workroom) -> Command:
        cache = resolving(self._cache)
        variables = environment(self._toolchain, room, cache=cache, network=True)
        return Command(
            argv=(self._uv, *arguments),
            profile=Profile.MUTATE,
            workdir=str(directory),
            env=tuple(sorted(variables.items())),
            timeout_seconds=MUTATE_SECONDS,
            writes=(str(directory), str(room.root), str(cache)),
        )

    def _acquire(
        self,
        arguments: tuple[str, ...],
        directory: Path,
        room: Workroom,
        extra: dict[str, str] | None = None,
    ) -> Command:
        cache = acquired(self._cache)
        variables = environment(self._toolchain, room, cache=cache, network=True)
        return Command(
            argv=(self._uv, *arguments),
            profile=Profile.ACQUIRE,
            workdir=str(directory),
            env=tuple(sorted({**variables, **(extra or {})}.items())),
            timeout_seconds=ACQUIRE_SECONDS,
            reads=(str(directory),),
            writes=(str(room.root), str(cache)),
        )
