"""Where Python, uv and our own sandbox files are, and the environment that they get (uv-facts §8).

Callers: every command of this package; `main` makes the one `PythonToolchain`. Prohibitions: no index
variable is ever set (a mirror variable rewrites the lock, uv-facts §4); nothing is inherited.
"""

from dataclasses import dataclass
from pathlib import Path

from upgraderun_runner.ecosystems.base import PlatformFacts

_HERE = Path(__file__).resolve().parent
PLUGIN_DIR = _HERE / "plugin"
"""Folder with nothing but the pytest report plug-in; goes on PYTHONPATH."""
SCRIPTS_DIR = _HERE / "scripts"
"""Programs that run inside sandboxes with `python -I`."""


@dataclass(frozen=True, slots=True)
class UvBinary:
    """One uv of the image and the newest lock revision that it writes."""

    path: str
    version: str
    revision: int


@dataclass(frozen=True, slots=True)
class PythonToolchain:
    """The image's tools, as absolute paths that are equal in every pod.

    `ca_bundle` holds public and private roots in one file, or is empty for the system's. `coverage_dir`
    holds nothing but the image's coverage.py, or is empty: then no repair can be shown as exercised.
    """

    python: str
    git: str
    uv: tuple[UvBinary, ...]
    search_path: str = "/usr/local/bin:/usr/bin:/bin"
    ca_bundle: str = ""
    coverage_dir: str = ""

    @property
    def newest(self) -> UvBinary:
        """The uv that writes the newest lock revision."""
        return max(self.uv, key=_age)

    def uv_for(self, revision: int) -> UvBinary:
        """The newest uv that writes exactly this lock revision, else the newest (uv-facts §2)."""
        same = [binary for binary in self.uv if binary.revision == revision]
        return max(same, key=_age) if same else self.newest


def _age(binary: UvBinary) -> tuple[int, tuple[int, ...]]:
    return binary.revision, tuple(int(part) for part in binary.version.split("."))


@dataclass(frozen=True, slots=True)
class Workroom:
    """The writable directory of one command group: home, temporary files, environments."""

    root: Path

    @property
    def home(self) -> Path:
        """An empty home, so that no user configuration applies."""
        return self.root / "home"

    @property
    def temporary(self) -> Path:
        """TMPDIR; build back ends fail without one."""
        return self.root / "tmp"

    def create(self) -> None:
        """Make the directories; may be repeated."""
        for directory in (self.root, self.home, self.temporary):
            directory.mkdir(parents=True, exist_ok=True)


def environment(
    toolchain: PythonToolchain, room: Workroom, *, cache: Path, network: bool
) -> dict[str, str]:
    """Build the whole environment of a command from nothing (uv-facts §8)."""
    variables = {
        "PATH": toolchain.search_path,
        "LANG": "C.UTF-8",
        "HOME": str(room.home),
        "USER": "sandbox",
        "LOGNAME": "sandbox",
        "TMPDIR": str(room.temporary),
        "UV_CACHE_DIR": str(cache),
        "UV_PYTHON": toolchain.python,
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_NO_PROGRESS": "1",
        "UV_MALWARE_CHECK": "false",
        "NO_COLOR": "1",
    }
    if network:
        variables["UV_HTTP_TIMEOUT"] = "30"
        if toolchain.ca_bundle:
            variables["SSL_CERT_FILE"] = toolchain.ca_bundle
    return variables


def wheel_platforms(facts: PlatformFacts) -> frozenset[str]:
    """Name every platform tag that the sandbox's interpreter accepts, `any` included."""
    machine = facts.machine
    tags = {"any", f"linux_{machine}"}
    if facts.libc == "glibc":
        major, minor = (int(part) for part in facts.libc_version.split(".")[:2])
        tags |= {f"manylinux_{major}_{n}_{machine}" for n in range(5, minor + 1)}
        legacy = {5: "manylinux1", 12: "manylinux2010", 17: "manylinux2014"}
        tags |= {f"{name}_{machine}" for n, name in legacy.items() if n <= minor}
    return frozenset(tags)
