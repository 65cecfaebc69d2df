"""Programs as an ordinary user: the runner and the code of repositories never run as root.

Root may read a directory of mode 000, and some repositories test that nobody may; so who runs the
checks decides between a proposal and `baseline_failing`. The environment is built from the
workspace's own wheels in a folder that every user may read.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final

USER: Final = 65532
ROOT: Final = Path(__file__).resolve().parents[2]
UV: Final = ROOT / ".boot" / "bin" / "uv"
SYSTEM_PYTHON: Final = "/usr/bin/python3"


@dataclass(frozen=True, slots=True)
class RunnerEnvironment:
    """A folder with the runner as installed in its image: `python`, `uv` and the fault hook."""

    directory: Path

    @property
    def python(self) -> Path:
        """Interpreter that has upgraderun_runner."""
        return self.directory / "venv" / "bin" / "python"

    @property
    def uv(self) -> Path:
        """The uv that the image carries."""
        return self.directory / "bin" / "uv"


@cache
def runner_environment(directory: Path, *, faults: bool = False) -> RunnerEnvironment:
    """Build wheels and install them below `directory`; takes seconds, once per session."""
    directory.mkdir(parents=True, exist_ok=True)
    for folder in (directory, *directory.parents[:2]):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o755)
    environment = RunnerEnvironment(directory)
    (directory / "bin").mkdir(exist_ok=True)
    shutil.copy2(UV, environment.uv)
    environment.uv.chmod(0o755)
    wheels = directory / "wheels"
    sources = [ROOT / "protocol", ROOT / "runner-image"]
    if faults:
        sources.append(ROOT / "hack" / "fault")
    for source in sources:
        _uv("build", "--wheel", "--quiet", "--out-dir", str(wheels), str(source))
    requirements = directory / "requirements.txt"
    _uv(
        "export",
        "--frozen",
        "--quiet",
        "--no-dev",
        "--no-emit-workspace",
        "--package",
        "upgraderun-runner",
        "--output-file",
        str(requirements),
        "--project",
        str(ROOT),
    )
    _uv("venv", "--quiet", "--python", SYSTEM_PYTHON, str(directory / "venv"))
    python = ("--python", str(environment.python))
    # Compiled, as in the image: the ordinary user can't write bytecode here.
    _install(*python, "--require-hashes", "-r", str(requirements))
    _install(*python, "--no-deps", *(str(wheel) for wheel in sorted(wheels.glob("*.whl"))))
    # Where the runner looks for it: beside the folder of uv's binary, as in the image.
    target = ("--target", str(directory / "coverage"))
    _install(*python, *target, f"coverage=={metadata.version('coverage')}")
    return environment


def as_ordinary_user(argv: Sequence[str]) -> list[str]:
    """Prefix a command so that it runs without root's user, groups and capabilities."""
    if os.getuid() != 0:
        return list(argv)
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *argv]


def owned_by_ordinary_user(directory: Path) -> Path:
    """Make a folder that the ordinary user may write, and open the way to it."""
    directory.mkdir(parents=True, exist_ok=True)
    if os.getuid() == 0:
        os.chown(directory, USER, USER)
    return directory


@cache
def fault_hook(directory: Path) -> Path:
    """Install the fault hook alone into a folder, for a process that is given it by hand."""
    wheels, folder = directory / "wheels", directory / "hook"
    source = ROOT / "hack" / "fault"
    _uv("build", "--wheel", "--quiet", "--out-dir", str(wheels), str(source))
    built = tuple(str(wheel) for wheel in wheels.glob("*.whl"))
    _uv("pip", "install", "--quiet", "--offline", "--target", str(folder), "--no-deps", *built)
    return folder


def _install(*arguments: str) -> None:
    _uv("pip", "install", "--quiet", "--compile-bytecode", *arguments)


def _uv(*arguments: str) -> None:
    subprocess.run([str(UV), *arguments], check=True, cwd=ROOT)


def give_away(folder: Path) -> None:
    """Give everything below a folder to the ordinary user, if we are root."""
    if os.getuid() != 0:
        return
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(Path(root) / name, USER, USER, follow_symlinks=False)
