"""Phase 4: prove the sandbox, prove the lock, fill the cache (upgrade-run.md §3, §8.5, uv-facts §1).

Callers: `PythonEcosystem`. Runs no repository code: wheels only, and the project itself isn't built.
The kit is fetched once per run, because offline uv takes the newest *cached* version of it.
"""

import asyncio
import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Final

from upgraderun_protocol.ids import Sha256
from upgraderun_runner.ecosystems.base import (
    AcquisitionFailed,
    AcquisitionRecord,
    Pair,
    PlatformFacts,
    Refusal,
    Unsupported,
)
from upgraderun_runner.ecosystems.python.profile import read_pair
from upgraderun_runner.ecosystems.python.refusals import LOCK
from upgraderun_runner.ecosystems.python.resolve import NotResolved, Resolver, refusal_of
from upgraderun_runner.ecosystems.python.toolchain import (
    SCRIPTS_DIR,
    PythonToolchain,
    Workroom,
    environment,
)
from upgraderun_runner.ecosystems.python.uvcommands import UvCommands, acquired, resolving
from upgraderun_runner.ecosystems.requests import AcquireRequest
from upgraderun_runner.sandbox.commands import Command, CommandResult, Profile
from upgraderun_runner.sandbox.recorder import StepCommands

PROBE_SECONDS: Final = 60


async def acquire(
    commands: StepCommands, toolchain: PythonToolchain, request: AcquireRequest
) -> AcquisitionRecord:
    """Fill the cache for exactly this snapshot; complete already means that nothing is fetched."""
    step = _Acquire(commands, toolchain, request)
    return await step.run()


class _Acquire:
    """One acquisition."""

    def __init__(
        self, commands: StepCommands, toolchain: PythonToolchain, request: AcquireRequest
    ) -> None:
        self._commands = commands
        self._toolchain = toolchain
        self._request = request
        self._profile = request.profile
        self._project = request.snapshot / request.profile.directory
        self._uv = UvCommands(toolchain, request.profile, request.cache)
        self._room = Workroom(request.scratch / "room")

    async def run(self) -> AcquisitionRecord:
        request = self._request
        self._room.create()
        for directory in (acquired(request.cache), resolving(request.cache)):
            directory.mkdir(parents=True, exist_ok=True)
        staging = request.scratch / "staging"
        staging.mkdir(exist_ok=True)
        resolver = Resolver(self._commands, self._toolchain, self._profile, staging, request.cache)
        fetch = self._uv.fetch(self._project, self._room)
        probe = self._probe_command()
        plan = [probe]
        if request.previous is None:
            plan.append(resolver.planned("stable", ()))
        plan.append(fetch)
        if request.previous is None and self._profile.build_requires:
            plan += self._kit_commands()
        await self._commands.plan(plan)
        platform = self._probed(await self._commands.run(probe))
        if request.previous is None:
            await self._prove_lock(resolver)
        self._require(await self._commands.run(fetch))
        kit = request.previous.kit if request.previous else await self._fetch_kit()
        return AcquisitionRecord(
            platform=platform,
            kit=kit,
            cache_digest=await cache_digest(request.cache),
            lock_tool=f"uv {self._profile.lock_tool_version}",
        )

    def _probe_command(self) -> Command:
        """A command of profile `execute`: it must see scratch, and it tells what Python it is."""
        nonce = self._room.root / "nonce"
        nonce.write_text(self._request.nonce, encoding="utf-8")
        cache = acquired(self._request.cache)
        variables = environment(self._toolchain, self._room, cache=cache, network=False)
        return Command(
            argv=(self._toolchain.python, "-I", str(SCRIPTS_DIR / "probe.py"), str(nonce)),
            profile=Profile.EXECUTE,
            workdir=str(self._room.root),
            env=tuple(sorted(variables.items())),
            timeout_seconds=PROBE_SECONDS,
            reads=(str(SCRIPTS_DIR),),
            writes=(str(self._room.root),),
        )

    def _probed(self, result: CommandResult) -> PlatformFacts:
        text = result.stderr.decode("utf-8", "replace")
        if result.exit_code != 0 or not result.whole:
            raise AcquisitionFailed("toolchain_failed", "", f"the sandbox's probe failed: {text}")
        answer = json.loads(result.stdout)
        if answer.pop("nonce") != self._request.nonce:
            raise AcquisitionFailed(
                "toolchain_failed", "", "the sandbox sees other files than we do"
            )
        return PlatformFacts(**{name: str(answer[name]) for name in PlatformFacts.__slots__})

    async def _prove_lock(self, resolver: Resolver) -> None:
        """A no-op `uv lock` must reproduce the base lock byte by byte, else it is refused (§8.5)."""
        pair = read_pair(self._request.snapshot, self._profile.directory)
        again = await resolver.lock("stable", Pair(pair.manifest, pair.lock))
        if isinstance(again, NotResolved):
            detail = again.text
        elif again.pair.lock != pair.lock:
            detail = "`uv lock` changes the file"
        else:
            return
        raise Unsupported(
            (
                Refusal(
                    "lock_not_reproducible",
                    LOCK,
                    f"the lock doesn't follow from pyproject.toml: {detail}",
                    "run `uv lock` and commit the result",
                ),
            )
        )

    def _require(self, result: CommandResult) -> None:
        registry = self._profile.registries[0] if self._profile.registries else ""
        failed = refusal_of(result, registry)
        if failed is not None:
            raise AcquisitionFailed(failed.failure.value, registry, failed.text)

    def _kit_commands(self) -> list[Command]:
        requirements = self._room.root / "kit.in"
        return [
            self._uv.kit_environment(self._project, self._room),
            self._uv.kit_install(self._project, self._room, requirements),
            self._uv.kit_freeze(self._project, self._room),
        ]

    async def _fetch_kit(self) -> tuple[str, ...]:
        if not self._profile.build_requires:
            return ()
        requirements = self._room.root / "kit.in"
        requirements.write_text("\n".join(self._profile.build_requires) + "\n", encoding="utf-8")
        frozen = b""
        for command in self._kit_commands():
            result = await self._commands.run(command)
            self._require(result)
            frozen = result.stdout
        return tuple(sorted(frozen.decode("utf-8", "replace").split()))


async def cache_digest(cache: Path) -> Sha256:
    """Name the state of the acquired cache: paths, kinds, sizes, times of change, link targets.

    Not the bytes: uv checked them against the lock when it downloaded, and reading them again at every
    validation costs seconds. It notices that something wrote there; in pods nothing can (uv-facts §1).
    """
    return await asyncio.to_thread(_digest, acquired(cache))


def _digest(root: Path) -> Sha256:
    total = hashlib.sha256()
    for folder, directories, files in os.walk(root):
        directories.sort()
        links = [name for name in directories if Path(folder, name).is_symlink()]
        for name in sorted(files + links):
            path = Path(folder, name)
            status = path.lstat()
            target = str(path.readlink()) if stat.S_ISLNK(status.st_mode) else ""
            row = f"{path.relative_to(root)}\0{status.st_mode}\0{status.st_size}\0{status.st_mtime_ns}"
            total.update(f"{row}\0{target}\n".encode("utf-8", "surrogateescape"))
    return Sha256(total.hexdigest())
