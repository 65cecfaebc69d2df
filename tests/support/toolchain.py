"""Where tests find uv, where they cache what comes from the real registry, how they run uv.

Used by the scenario builder, the corpus and their tests. The cache lies outside the checkout.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class ToolFailedError(RuntimeError):
    """A command of the toolchain failed; the text is its error output."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a command answered."""

    code: int
    out: str
    err: str


def cache_home() -> Path:
    """Folder of what can be fetched again."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "upgraderun"


def uv_binary() -> Path:
    """The uv that `make setup` installs, else the one on PATH."""
    own = ROOT / ".boot" / "bin" / "uv"
    if own.exists():
        return own
    found = shutil.which("uv")
    if found is None:
        raise ToolFailedError("no uv: run `make setup` first")
    return Path(found)


@dataclass(frozen=True, slots=True)
class Uv:
    """uv with nothing of the user's: own HOME and cache below `scratch`, no index variable."""

    scratch: Path

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The whole environment of a command, also of the project's own tests."""
        home = self.scratch / "home"
        home.mkdir(parents=True, exist_ok=True)
        trust = {
            key: os.environ[key] for key in ("SSL_CERT_FILE", "SSL_CERT_DIR") if key in os.environ
        }
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "UV_CACHE_DIR": str(self.scratch / "uv-cache"),
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_NO_PROGRESS": "1",
            "NO_COLOR": "1",
            **trust,
            **(more or {}),
        }

    def attempt(self, project: Path, *arguments: str) -> Done:
        """Run uv in a project; the caller looks at the code."""
        return run([str(uv_binary()), *arguments], project, self.environment())

    def __call__(self, project: Path, *arguments: str) -> Done:
        """Run uv in a project; raises ToolFailedError."""
        done = self.attempt(project, *arguments)
        if done.code != 0:
            raise ToolFailedError(f"uv {' '.join(arguments)}: {done.err}{done.out}")
        return done


def run(argv: list[str], directory: Path, environment: Mapping[str, str]) -> Done:
    """Run a command to its end."""
    done = subprocess.run(
        argv, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr)
