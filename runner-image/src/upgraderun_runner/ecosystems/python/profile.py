"""Phase 3 for Python: read the pair of a snapshot, refuse or describe (upgrade-run.md §6, §8.1).

Callers: `PythonEcosystem`. Reads files of a snapshot that the runner itself wrote; runs nothing.
"""

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

from packaging.utils import canonicalize_name

from upgraderun_protocol.limits import PAIR_FILE_BYTES_MAX
from upgraderun_runner.ecosystems.base import (
    Pair,
    ProfileOptions,
    ProjectProfile,
    Refusal,
    Unsupported,
)
from upgraderun_runner.ecosystems.python.lock import Lock, LockError, parse_lock
from upgraderun_runner.ecosystems.python.manifest import Manifest, ManifestError, parse_manifest
from upgraderun_runner.ecosystems.python.refusals import (
    LOCK,
    MANIFEST,
    Surroundings,
    choose_image,
    index_refusals,
    lock_refusals,
    manifest_refusals,
    setting_refusals,
    source_refusals,
    surroundings_refusals,
)
from upgraderun_runner.ecosystems.python.selection import plan_checks, select, tools_of
from upgraderun_runner.ecosystems.python.toolchain import PythonToolchain

_LFS_HEAD: Final = b"version https://git-lfs.github.com/spec/"
_TOOL_FILES: Final = (
    "mypy.ini",
    ".mypy.ini",
    "ruff.toml",
    ".ruff.toml",
    "pyrightconfig.json",
)
_BUNDLED_BACKENDS: Final = ("uv_build",)
"""Back ends inside uv: their kit needs no download (uv-facts §1)."""

PROTECTED: Final = (
    "setup.py",
    "setup.cfg",
    "requirements*.txt",
    "**/test_*.py",
    "**/*_test.py",
    "**/conftest.py",
    "**/tests/**",
    "pytest.ini",
    "tox.ini",
    "noxfile.py",
)
"""Globs that no repair may touch, beside the pair (upgrade-run.md §9.4)."""


def detect(paths: Iterable[str], directory: str) -> bool:
    """Whether both files of the pair are in a directory of a tree listing."""
    wanted = {_inside(directory, MANIFEST), _inside(directory, LOCK)}
    return wanted <= set(paths)


def _inside(directory: str, name: str) -> str:
    return str(PurePosixPath(directory) / name)


def read_pair(tree: Path, directory: str) -> Pair:
    """Read the pair; raises Unsupported if a file is missing, too big, a link or an LFS pointer."""
    refusals: list[Refusal] = []
    manifest = _read(tree / directory / MANIFEST, MANIFEST, "no_manifest", refusals)
    lock = _read(tree / directory / LOCK, LOCK, "no_lock", refusals)
    if manifest is None or lock is None:
        raise Unsupported(tuple(refusals))
    return Pair(manifest, lock)


def _read(path: Path, name: str, missing: str, refusals: list[Refusal]) -> bytes | None:
    if path.is_symlink() or not path.is_file():
        refusals.append(Refusal(missing, name, "there is no such regular file", _CREATE[name]))
        return None
    if path.stat().st_size > PAIR_FILE_BYTES_MAX:
        limit = f"{PAIR_FILE_BYTES_MAX // 1024 // 1024} MiB"
        refusals.append(Refusal("pair_too_large", name, f"it is larger than {limit}", "shrink it"))
        return None
    data = path.read_bytes()
    if data.startswith(_LFS_HEAD):
        refusals.append(
            Refusal("lfs_pointer", name, "it is an LFS pointer", "store the file itself in git")
        )
        return None
    return data


_CREATE: Final = {MANIFEST: "add a pyproject.toml", LOCK: "run `uv lock` and commit uv.lock"}


def read_profile(
    snapshot: Path, directory: str, options: ProfileOptions, toolchain: PythonToolchain
) -> ProjectProfile:
    """Describe the project of a directory. Raises Unsupported with every refusal, not the first."""
    refusals: list[Refusal] = []
    root = snapshot / directory
    manifest_bytes = _read(root / MANIFEST, MANIFEST, "no_manifest", refusals)
    lock_bytes = _read(root / LOCK, LOCK, "no_lock", refusals)
    manifest = _manifest(manifest_bytes, refusals)
    lock = _lock(lock_bytes, manifest, refusals)
    around = surroundings(snapshot, directory)
    refusals += surroundings_refusals(around, manifest)
    if manifest is not None:
        refusals += _judge(manifest, lock, options, toolchain)
    if lock is not None:
        refusals += lock_refusals(lock, toolchain.newest)
    if refusals or manifest is None or lock is None:
        raise Unsupported(tuple(refusals))
    return _describe(manifest, lock, root, directory, options, toolchain)


def _manifest(data: bytes | None, refusals: list[Refusal]) -> Manifest | None:
    if data is None:
        return None
    try:
        return parse_manifest(data)
    except ManifestError as error:
        refusals.append(Refusal("manifest_unparsable", MANIFEST, str(error), "correct the file"))
        return None


def _lock(data: bytes | None, manifest: Manifest | None, refusals: list[Refusal]) -> Lock | None:
    if data is None:
        return None
    try:
        return parse_lock(data, manifest.name if manifest else "")
    except LockError as error:
        refusals.append(Refusal("lock_unparsable", LOCK, str(error), "run `uv lock` and commit it"))
        return None


def _judge(
    manifest: Manifest, lock: Lock | None, options: ProfileOptions, toolchain: PythonToolchain
) -> list[Refusal]:
    refusals = [
        *manifest_refusals(manifest),
        *setting_refusals(manifest, toolchain.uv),
        *source_refusals(manifest, lock),
        *index_refusals(manifest, lock, options),
    ]
    image = choose_image(manifest.requires_python, options.images)
    if manifest.requires_python and image is None:
        have = ", ".join(image.version for image in options.images) or "none"
        refusals.append(
            Refusal(
                "no_image",
                MANIFEST,
                f"no image has a Python for requires-python {manifest.requires_python} (images: {have})",
                "add such an image to the policy's images.python",
            )
        )
    return refusals


def surroundings(snapshot: Path, directory: str) -> Surroundings:
    """Look for settings files beside the project and in each directory above it."""
    uv_toml, workspaces, settings = [], [], []
    place = PurePosixPath(directory)
    for level, folder in enumerate((place, *place.parents)):
        name = str(folder / "uv.toml")
        if os.path.lexists(snapshot / name):
            uv_toml.append(name)
        if level == 0:
            continue
        name = str(folder / MANIFEST)
        above = _manifest_above(snapshot / name)
        if above is not None and "workspace" in above.uv:
            workspaces.append(name)
        elif os.path.lexists(snapshot / name) and (above is None or above.uv):
            settings.append(name)
    return Surroundings(tuple(uv_toml), tuple(workspaces), tuple(settings))


def _manifest_above(path: Path) -> Manifest | None:
    """Read a manifest above the project; None if it isn't there or can't be read."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > PAIR_FILE_BYTES_MAX:
        return None
    try:
        return parse_manifest(path.read_bytes())
    except ManifestError:
        return None


def _describe(
    manifest: Manifest,
    lock: Lock,
    root: Path,
    directory: str,
    options: ProfileOptions,
    toolchain: PythonToolchain,
) -> ProjectProfile:
    image = choose_image(manifest.requires_python, options.images)
    if image is None:
        raise AssertionError("a project without an image was refused")
    selection = select(manifest, lock)
    config_files = frozenset(name for name in _TOOL_FILES if (root / name).is_file())
    uv = toolchain.uv_for(lock.revision)
    notes: tuple[str, ...] = ()
    if uv.revision != lock.revision:
        note = (
            f"uv.lock has revision {lock.revision}; uv {uv.version} writes {uv.revision},"
            " so an upgrade also rewrites markers and keys of other packages"
        )
        notes = (note,)
    return ProjectProfile(
        ecosystem="python",
        directory=directory,
        manifest_path=_inside(directory, MANIFEST),
        lock_path=_inside(directory, LOCK),
        project=manifest.name,
        requires_toolchain=manifest.requires_python,
        image=image,
        direct=manifest.direct,
        checks=plan_checks(manifest, selection.installed, config_files),
        registries=lock.registries,
        selection=selection.flags,
        build_requires=build_kit(manifest),
        virtual=manifest.virtual,
        dynamic_version="version" in manifest.dynamic,
        tools=tools_of(selection.installed),
        lock_tool_version=uv.version,
        protected=(_inside(directory, MANIFEST), _inside(directory, LOCK), *PROTECTED),
        notes=notes,
        untried=tuple(sorted({d.name for d in manifest.direct} - selection.installed)),
    )


def build_kit(manifest: Manifest) -> tuple[str, ...]:
    """List what the project's build needs beyond the locked wheels (§8.5).

    hatchling asks for `editables` only while it builds; the other back ends bring their own.
    """
    if manifest.virtual:
        return ()
    backend = manifest.build_system.get("build-backend", "setuptools.build_meta:__legacy__")
    if backend in _BUNDLED_BACKENDS:
        return ()
    requires = tuple(map(str, manifest.build_system.get("requires", ["setuptools>=40.8.0"])))
    hatch = any(canonicalize_name(item).startswith("hatch") for item in requires)
    return (*requires, "editables") if hatch else requires
