"""What the image holds: which Python, which uv binaries, which lock revision each of them writes.

Callers: `main` says where to look, the role `run` asks. A uv is asked, not believed: it locks an empty
project without network and its lock shows the revision.
"""

import asyncio
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from upgraderun_runner.ecosystems.python.toolchain import (
    PythonToolchain,
    UvBinary,
    Workroom,
    environment,
)
from upgraderun_runner.sandbox.commands import Command, CommandResult, Profile
from upgraderun_runner.sandbox.driver import Sandbox

_ASK_SECONDS: Final = 60
_REVISION: Final = re.compile(r"^revision = (\d+)$", re.MULTILINE)
_VERSION: Final = re.compile(r"uv (\d+(?:\.\d+)*)")
_EMPTY: Final = '[project]\nname = "probe"\nversion = "0"\nrequires-python = ">=3.8"\n'


class ImageIncomplete(RuntimeError):  # noqa: N818 - says what is wrong with the image
    """A tool is missing or doesn't answer; the message says which."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Where `main` found things. `uv` are paths of one or more binaries."""

    python: str
    git: str
    uv: tuple[str, ...]
    search_path: str
    ca_bundle: Path | None
    coverage_dir: str


def python_of_the_image() -> str:
    """The interpreter under the runner's own environment: repositories get that one."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    candidate = Path(sys.base_prefix) / "bin" / version
    return str(candidate if candidate.is_file() else Path(sys.executable).resolve())


def version_of_the_image() -> str:
    """Major and minor version of that interpreter, as `3.11`."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


async def find_toolchain(offer: Offer, sandbox: Sandbox, scratch: Path) -> PythonToolchain:
    """Ask every uv for version and revision. Raises ImageIncomplete."""
    if not offer.uv:
        raise ImageIncomplete("the image holds no uv on its PATH; name one with --uv")
    bare = PythonToolchain(
        python=offer.python,
        git=offer.git,
        uv=(),
        search_path=offer.search_path,
        ca_bundle="" if offer.ca_bundle is None else str(offer.ca_bundle),
        coverage_dir=offer.coverage_dir,
    )
    found = tuple(
        [
            await _ask(path, bare, sandbox, scratch / f"uv-{number}")
            for number, path in enumerate(offer.uv)
        ]
    )
    return PythonToolchain(
        bare.python, bare.git, found, bare.search_path, bare.ca_bundle, bare.coverage_dir
    )


async def _ask(path: str, bare: PythonToolchain, sandbox: Sandbox, room: Path) -> UvBinary:
    workroom = Workroom(room)
    workroom.create()
    (room / "pyproject.toml").write_text(_EMPTY, encoding="utf-8")
    variables = environment(bare, workroom, cache=room / "cache", network=False)

    async def run(*arguments: str) -> CommandResult:
        command = Command(
            argv=(path, *arguments),
            profile=Profile.TOOL,
            workdir=str(room),
            env=tuple(sorted(variables.items())),
            timeout_seconds=_ASK_SECONDS,
        )
        result = await sandbox.run(f"tool.{arguments[0]}", command)
        if result.exit_code != 0:
            text = result.stderr.decode("utf-8", "replace")[:400]
            raise ImageIncomplete(f"{path} {arguments[0]} ended with {result.exit_code}: {text}")
        return result

    told, _ = await asyncio.gather(run("--version"), run("lock", "--offline"))
    version = _VERSION.search(told.stdout.decode("utf-8", "replace"))
    lock = (room / "uv.lock").read_text(encoding="utf-8")
    revision = _REVISION.search(lock)
    if version is None:
        raise ImageIncomplete(f"{path} doesn't tell its version")
    return UvBinary(path, version[1], int(revision[1]) if revision else 0)
