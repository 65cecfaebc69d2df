"""What a registry's simple JSON says of a project's versions (uv-facts §3, PEP 691, PEP 700).

Callers: candidates and staging. The reading itself happens in a sandbox command
(`scripts/metadata_reader.py`); here its lines are parsed. Times come from the registry, never from the lock.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from upgraderun_runner.ecosystems.base import (
    AcquisitionFailed,
    PlatformFacts,
    RegistryUnreachable,
)
from upgraderun_runner.ecosystems.python.toolchain import (
    SCRIPTS_DIR,
    PythonToolchain,
    Workroom,
    environment,
    wheel_platforms,
)
from upgraderun_runner.ecosystems.python.uverrors import host_in
from upgraderun_runner.sandbox.commands import Command, CommandResult, Profile

METADATA_SECONDS: Final = 300
METADATA_BYTES_MAX: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Wanted:
    """One project to ask for, and the index that the lock says it comes from."""

    name: str
    index: str


@dataclass(frozen=True, slots=True)
class ReleaseFile:
    """One file of a version."""

    name: str
    requires_python: str
    yanked: bool
    uploaded: str
    tags: frozenset[Tag]


@dataclass(frozen=True, slots=True)
class Release:
    """One version with its files."""

    version: Version
    files: tuple[ReleaseFile, ...]

    @property
    def withdrawn(self) -> bool:
        """Whether every file is yanked."""
        return all(file.yanked for file in self.files)

    @property
    def requires_python(self) -> str:
        """The range of the version; wheels win over the sdist, they are what gets installed."""
        wheels = [f.requires_python for f in self.files if f.tags and f.requires_python]
        others = [f.requires_python for f in self.files if f.requires_python]
        return (wheels or others or [""])[0]

    @property
    def published(self) -> datetime | None:
        """The *youngest* file's time; None if one is unknown (§5.3)."""
        times = [_time(file.uploaded) for file in self.files]
        known = [time for time in times if time is not None]
        return max(known) if known and len(known) == len(times) else None

    def has_wheel(self, tags: frozenset[Tag]) -> bool:
        """Whether a wheel fits the platform."""
        return any(file.tags & tags for file in self.files)


@dataclass(frozen=True, slots=True)
class ProjectPage:
    """All versions of one project; `problem` says why there are none."""

    name: str
    releases: tuple[Release, ...]
    problem: str = ""

    def release(self, version: Version) -> Release | None:
        """Find one version."""
        return next((r for r in self.releases if r.version == version), None)


def metadata_command(
    toolchain: PythonToolchain, room: Workroom, wanted: Iterable[Wanted]
) -> Command:
    """Read the pages of several projects, one query each."""
    arguments = tuple(f"{row.index.rstrip('/')}/{row.name}/" for row in wanted)
    variables = environment(toolchain, room, cache=room.root / "uvcache", network=True)
    return Command(
        argv=(toolchain.python, "-I", str(SCRIPTS_DIR / "metadata_reader.py"), *arguments),
        profile=Profile.ACQUIRE,
        workdir=str(room.root),
        env=tuple(sorted(variables.items())),
        timeout_seconds=METADATA_SECONDS,
        reads=(str(SCRIPTS_DIR),),
        writes=(str(room.root),),
        stdout_limit=METADATA_BYTES_MAX,
    )


def parse_metadata(result: CommandResult, wanted: tuple[Wanted, ...]) -> Mapping[str, ProjectPage]:
    """Parse the reader's lines. Raises RegistryUnreachable or AcquisitionFailed."""
    fallback = wanted[0].index if wanted else ""
    host = host_in(fallback, fallback)
    if result.timed_out or result.killed:
        raise AcquisitionFailed("timeout", host, "reading metadata took too long")
    if result.exit_code != 0 or not result.whole:
        raise AcquisitionFailed("toolchain_failed", host, result.stderr.decode("utf-8", "replace"))
    rows = [_row(line) for line in result.stdout.splitlines() if line.strip()]
    if len(rows) != len(wanted):
        raise AcquisitionFailed("toolchain_failed", host, "the metadata reader lost answers")
    return {ask.name: _page(ask, row) for ask, row in zip(wanted, rows, strict=True)}


def _row(line: bytes) -> Mapping[str, Any]:
    row = json.loads(line)
    if not isinstance(row, dict):
        raise AcquisitionFailed("toolchain_failed", "", "the metadata reader wrote no object")
    return row


def _page(ask: Wanted, row: Mapping[str, Any]) -> ProjectPage:
    status, text = row.get("status"), str(row.get("text", ""))
    host = host_in(ask.index, ask.index)
    if status == "unreachable":
        raise RegistryUnreachable(host, str(row.get("kind", "")), text)
    if status == "denied":
        raise AcquisitionFailed("registry_denied", host, f"{ask.name}: {text}")
    if status != "ok":
        return ProjectPage(ask.name, (), text or str(status))
    return ProjectPage(ask.name, _releases(row.get("files", [])))


def _releases(rows: Iterable[Mapping[str, Any]]) -> tuple[Release, ...]:
    by_version: dict[Version, list[ReleaseFile]] = {}
    for row in rows:
        parsed = _parse_file(row)
        if parsed is not None:
            by_version.setdefault(parsed[0], []).append(parsed[1])
    return tuple(Release(v, tuple(files)) for v, files in sorted(by_version.items()))


def _parse_file(row: Mapping[str, Any]) -> tuple[Version, ReleaseFile] | None:
    """Read one file; None for formats that uv ignores (eggs, installers, legacy versions)."""
    name = str(row.get("filename", ""))
    try:
        if name.endswith(".whl"):
            _, version, _, tags = parse_wheel_filename(name)
        else:
            version = parse_sdist_filename(name)[1]
            tags = frozenset()
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None
    file = ReleaseFile(
        name=name,
        requires_python=str(row.get("requiresPython") or ""),
        yanked=bool(row.get("yanked")),
        uploaded=str(row.get("uploadTime") or ""),
        tags=tags,
    )
    return version, file


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None


def supported_tags(facts: PlatformFacts) -> frozenset[Tag]:
    """List every wheel tag that the sandbox's interpreter installs."""
    major, minor = (int(part) for part in facts.version.split(".")[:2])
    platforms = sorted(wheel_platforms(facts) - {"any"})
    interpreter = f"cp{major}{minor}"
    return frozenset(
        (
            *cpython_tags((major, minor), [interpreter], platforms),
            *compatible_tags((major, minor), interpreter, platforms),
        )
    )


def marker_environment(facts: PlatformFacts) -> dict[str, str]:
    """Markers' variables as the sandbox's interpreter gives them."""
    major, minor = facts.version.split(".")[:2]
    return {
        "implementation_name": facts.implementation.lower(),
        "implementation_version": facts.version,
        "os_name": "posix",
        "platform_machine": facts.machine,
        "platform_python_implementation": facts.implementation,
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": facts.version,
        "python_version": f"{major}.{minor}",
        "sys_platform": "linux",
        "extra": "",
    }
