"""PEP 440 versions: order, classes, neighbours, and ranges of Python versions.

Callers: candidates, closure, gates, manifest edits. Pure; never asks a registry.
"""

from collections.abc import Iterable
from itertools import product

from packaging.markers import Marker
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from upgraderun_runner.ecosystems.base import ChangeClass

_MINORS = range(31)
"""Minor versions of Python that a range is sampled at: far beyond what exists."""
_PLATFORMS = (
    {"sys_platform": "linux", "os_name": "posix", "platform_system": "Linux"},
    {"sys_platform": "darwin", "os_name": "posix", "platform_system": "Darwin"},
    {"sys_platform": "win32", "os_name": "nt", "platform_system": "Windows"},
)
_MACHINES = ("x86_64", "aarch64", "AMD64", "arm64")
_IMPLEMENTATIONS = (("CPython", "cpython"), ("PyPy", "pypy"))


def parse_version(text: str) -> Version | None:
    """Read a version; None for what PEP 440 doesn't know (legacy versions are no candidates)."""
    try:
        return Version(text)
    except InvalidVersion:
        return None


def classify(old: Version, new: Version) -> ChangeClass:
    """Epoch and first segment are major, the second minor, the rest and post patch (§5.1)."""
    if old.epoch != new.epoch or old.major != new.major:
        return ChangeClass.MAJOR
    return ChangeClass.MINOR if old.minor != new.minor else ChangeClass.PATCH


def bounds_between(old: Version, new: Version) -> tuple[str, ...]:
    """List exclusive bounds that would keep a mover nearer than `new`, tightest first (§8.2).

    From 2.2.3 to 4.1: `2.3` keeps it a patch, `3` a minor change, `4` takes away one major.
    """
    epoch = f"{old.epoch}!" if old.epoch else ""
    last_major = new.major if new.epoch == old.epoch else old.major + 1
    majors = range(old.major + 1, last_major + 1)
    bounds = [f"{epoch}{old.major}.{old.minor + 1}", *(f"{epoch}{major}" for major in majors)]
    return tuple(bound for bound in bounds if Version(bound) <= new)


def is_preliminary(version: Version) -> bool:
    """Whether it is a pre-release, a development release or a local version (§5.1)."""
    return version.is_prerelease or version.local is not None


def python_samples(*specifiers: str) -> tuple[Version, ...]:
    """Sample Python 3 so finely that no given specifier or marker changes between two samples.

    Every minor's first patch, and every version named in a specifier with its two neighbours.
    """
    points = {Version(f"3.{minor}.0") for minor in _MINORS}
    for text in specifiers:
        for version in _named_versions(text):
            if version.major != 3:
                continue
            micro = version.micro
            points |= {
                Version(f"3.{version.minor}.{n}") for n in range(max(0, micro - 1), micro + 2)
            }
    return tuple(sorted(points))


def _named_versions(text: str) -> Iterable[Version]:
    for piece in text.replace("'", '"').replace(",", " ").split():
        parsed = parse_version(piece.strip('"()<>=!~').removesuffix(".*"))
        if parsed is not None:
            yield parsed


def specifier_set(text: str) -> SpecifierSet | None:
    """Read a specifier; None if it isn't one (some registries hold broken `Requires-Python`)."""
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        return None


def uncovered(
    requires_python: str, wanted: str, markers: tuple[str, ...], current: str
) -> Version | None:
    """Find a Python that the project supports and a version excludes (§5.1 `toolchain`).

    `markers` restrict the range to a fork's part. A Python that the locked version (`current`)
    excludes too isn't lost by the upgrade, so it doesn't count. None: all covered.
    """
    project, offered = specifier_set(wanted), specifier_set(requires_python)
    locked = specifier_set(current)
    if offered is None or project is None:
        return None
    for sample in python_samples(requires_python, wanted, current, *markers):
        if not project.contains(sample, prereleases=True):
            continue
        if locked is not None and not locked.contains(sample, prereleases=True):
            continue
        if markers and not any(marker_admits(marker, sample) for marker in markers):
            continue
        if not offered.contains(sample, prereleases=True):
            return sample
    return None


def marker_admits(marker: str, python: Version) -> bool:
    """Whether a marker holds for this Python on any platform that we know."""
    parsed = Marker(marker)
    return any(parsed.evaluate(environment) for environment in _environments(python))


def _environments(python: Version) -> Iterable[dict[str, str]]:
    for platform, machine, (implementation, name) in product(
        _PLATFORMS, _MACHINES, _IMPLEMENTATIONS
    ):
        yield {
            **platform,
            "platform_machine": machine,
            "platform_python_implementation": implementation,
            "implementation_name": name,
            "python_version": f"{python.major}.{python.minor}",
            "python_full_version": str(python),
            "implementation_version": str(python),
            "extra": "",
        }
