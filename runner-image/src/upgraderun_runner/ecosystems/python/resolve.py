"""One staged resolution after another: fresh copy, one `uv lock`, the outcome as a value (§8.2).

Callers: staging. Each attempt starts from the current pair in its own directory, so nothing of a
failed attempt can reach the next.
"""

from dataclasses import dataclass
from pathlib import Path

from upgraderun_runner.ecosystems.base import (
    AcquisitionFailed,
    LockModel,
    Pair,
    ProjectProfile,
    Target,
    Unsupported,
)
from upgraderun_runner.ecosystems.python.lock import lock_model
from upgraderun_runner.ecosystems.python.stub import read_lock, write_pair
from upgraderun_runner.ecosystems.python.toolchain import PythonToolchain, Workroom
from upgraderun_runner.ecosystems.python.uvcommands import UvCommands
from upgraderun_runner.ecosystems.python.uverrors import (
    UvFailure,
    classify_failure,
    raise_acquisition,
    settings_ignored,
    unknown_settings,
    uv_text,
)
from upgraderun_runner.sandbox.commands import Command, CommandResult
from upgraderun_runner.sandbox.recorder import StepCommands
from upgraderun_runner.text import essence


@dataclass(frozen=True, slots=True)
class Resolved:
    """A resolution that succeeded."""

    pair: Pair
    model: LockModel


@dataclass(frozen=True, slots=True)
class NotResolved:
    """A real answer that says no; `failure` is its class, `text` the toolchain's own."""

    failure: UvFailure
    text: str

    @property
    def reason(self) -> str:
        """The error alone, on one line: for a violation, which is cut sooner than the text."""
        return essence(self.text)


class Resolver:
    """Resolves staged copies of pairs below one staging directory."""

    def __init__(
        self,
        commands: StepCommands,
        toolchain: PythonToolchain,
        profile: ProjectProfile,
        staging: Path,
        cache: Path,
    ) -> None:
        self._commands = commands
        self._profile = profile
        self._staging = staging
        self.uv = UvCommands(toolchain, profile, cache)
        self.room = Workroom(staging / "room")
        self.room.create()

    def planned(self, name: str, upgrades: tuple[str, ...]) -> Command:
        """The command that `lock` will run for this attempt."""
        return self.uv.lock(self._staging / name, self.room, upgrades)

    async def lock(
        self, name: str, pair: Pair, upgrades: tuple[str, ...] = ()
    ) -> Resolved | NotResolved:
        """Resolve a copy of the pair. Raises AcquisitionFailed or Unsupported, else answers."""
        directory = self._staging / name
        write_pair(directory, pair)
        result = await self._commands.run(self.planned(name, upgrades))
        failed = refusal_of(result, self._registry)
        if failed is not None:
            return failed
        after = Pair(pair.manifest, read_lock(directory))
        return Resolved(after, lock_model(after))

    async def run(self, command: Command) -> CommandResult:
        """Run another command of the step."""
        return await self._commands.run(command)

    @property
    def _registry(self) -> str:
        return self._profile.registries[0] if self._profile.registries else ""


def refusal_of(result: CommandResult, registry: str) -> NotResolved | None:
    """Tell a refusal by the resolver from a failure to ask. None: it resolved.

    Raises AcquisitionFailed, and Unsupported where uv ignores the project's settings.
    """
    if settings_ignored(result):
        raise Unsupported((unknown_settings(uv_text(result)),))
    if result.exit_code == 0 and result.whole:
        return None
    raise_acquisition(result, registry)
    failure, _ = classify_failure(result)
    if failure in (UvFailure.OTHER, UvFailure.BUILD):
        raise AcquisitionFailed("toolchain_failed", registry, uv_text(result))
    return NotResolved(failure, uv_text(result))


def pins(model: LockModel, target: Target, *, neutral: bool) -> tuple[str, ...]:
    """Spell the `-P` values of a target, or of the neutral re-lock that keeps its version.

    A forked name gets one value per entry with that entry's own marker: a value without marker would
    collapse the forks, and an unpinned fork rises (uv-facts §2).
    """
    entries = model.named(target.name)
    values = []
    for entry in entries:
        moves = not neutral and entry.version == target.from_version
        version = target.to_version if moves else entry.version
        marker = " or ".join(f"({m})" for m in entry.markers) if len(entry.markers) > 1 else ""
        marker = marker or "".join(entry.markers)
        values.append(f"{target.name}=={version}" + (f" ; {marker}" if marker else ""))
    return tuple(dict.fromkeys(values))
