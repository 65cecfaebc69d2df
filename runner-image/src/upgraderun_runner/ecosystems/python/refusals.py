"""Every reason why a Python repository can't be upgraded here (upgrade-run.md §6, uv-facts).

Callers: profile. Pure. All reasons are listed, each with the file, the fact and the next step.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from packaging.utils import canonicalize_name

from upgraderun_runner.ecosystems.base import ProfileOptions, Refusal, ToolchainImage
from upgraderun_runner.ecosystems.python.lock import LOCK_VERSION, Lock, is_local, registry_of
from upgraderun_runner.ecosystems.python.manifest import Manifest
from upgraderun_runner.ecosystems.python.toolchain import UvBinary
from upgraderun_runner.ecosystems.python.uvsettings import (
    DEFAULT_INDEX,
    effective_indexes,
    normal_index,
    unknown_keys,
)
from upgraderun_runner.ecosystems.python.versions import (
    python_samples,
    specifier_set,
)

MANIFEST: Final = "pyproject.toml"
LOCK: Final = "uv.lock"
_FORBIDDEN_DYNAMIC: Final = ("dependencies", "optional-dependencies", "requires-python")
_NATIVE: Final = ("maturin", "scikit_build_core.build", "mesonpy", "setuptools_rust")
_SOURCE_KINDS: Final = {
    "path": "path_source",
    "workspace": "workspace",
    "git": "git_source",
    "url": "url_source",
}
_LOCKED_KINDS: Final = {
    "editable": "path_source",
    "virtual": "path_source",
    "directory": "path_source",
    "path": "path_source",
    "git": "git_source",
    "url": "url_source",
}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Settings files beside and above the project, as paths in the tree."""

    uv_toml: tuple[str, ...]
    workspaces_above: tuple[str, ...]
    settings_above: tuple[str, ...]


def manifest_refusals(manifest: Manifest) -> Iterator[Refusal]:
    """Judge the project's own metadata."""
    if "project" not in manifest.data:
        yield Refusal(
            "no_project",
            MANIFEST,
            "there is no [project] table",
            "add one; uv locks nothing without it",
        )
        return
    if "name" not in manifest.project:
        yield Refusal("no_project", MANIFEST, "[project] has no name", "name the project")
    if not manifest.requires_python:
        yield Refusal(
            "no_requires_python",
            MANIFEST,
            "[project] has no requires-python, so uv would lock for whatever Python it runs on",
            "declare the range that the project supports and run `uv lock`",
        )
    elif specifier_set(manifest.requires_python) is None:
        yield Refusal(
            "manifest_unparsable",
            MANIFEST,
            f"requires-python {manifest.requires_python!r} is no version range",
            "write it as PEP 440 says, for example >=3.10",
        )
    for field in manifest.dynamic:
        if field in _FORBIDDEN_DYNAMIC:
            yield Refusal(
                "dynamic_metadata",
                MANIFEST,
                f"`dynamic` names {field}, which only the build back end knows",
                f"declare {field} statically in [project]",
            )
    if "poetry" in manifest.tool and "dependencies" not in manifest.project:
        yield Refusal(
            "dynamic_metadata",
            MANIFEST,
            "beside [tool.poetry] a [project] without dependencies leaves them to the build back end",
            "declare dependencies in [project], `dependencies = []` if there are none",
        )
    backend = str(manifest.build_system.get("build-backend", ""))
    if backend in _NATIVE:
        yield Refusal(
            "native_backend",
            MANIFEST,
            f"the build back end {backend} compiles native code",
            "such projects aren't supported; nothing to change here",
        )


def setting_refusals(manifest: Manifest, uv_versions: Iterable[UvBinary]) -> Iterator[Refusal]:
    """Judge `[tool.uv]`, index settings apart."""
    for key in unknown_keys(manifest):
        yield Refusal(
            "unknown_setting",
            MANIFEST,
            f"tool.uv.{key} isn't known to the image's uv, which would then ignore all settings",
            "remove the key or ask for an image with a newer uv",
        )
    workspace = manifest.uv.get("workspace")
    if isinstance(workspace, Mapping) and workspace.get("members"):
        yield Refusal(
            "workspace",
            MANIFEST,
            "tool.uv.workspace has members",
            "workspaces aren't supported; nothing to change here",
        )
    for key in ("no-binary", "no-binary-package"):
        if manifest.uv.get(key):
            yield Refusal(
                "no_binary_forced",
                MANIFEST,
                f"tool.uv.{key} forces builds from source, which never happen here",
                f"remove tool.uv.{key}",
            )
    if manifest.uv.get("managed") is False:
        yield Refusal(
            "not_managed", MANIFEST, "tool.uv.managed is false", "set it to true or remove it"
        )
    yield from _required_version(manifest, tuple(uv_versions))


def _required_version(manifest: Manifest, uv_versions: tuple[UvBinary, ...]) -> Iterator[Refusal]:
    wanted = str(manifest.uv.get("required-version", ""))
    if not wanted:
        return
    spec = specifier_set(wanted if wanted[0] in "=<>~!" else f"=={wanted}")
    if spec is not None and any(spec.contains(uv.version) for uv in uv_versions):
        return
    have = ", ".join(uv.version for uv in uv_versions)
    yield Refusal(
        "required_version",
        MANIFEST,
        f"tool.uv.required-version {wanted} excludes the image's uv {have}",
        "widen the range, or map it to an image with such a uv in the policy",
    )


def source_refusals(manifest: Manifest, lock: Lock | None) -> Iterator[Refusal]:
    """Judge where packages come from: manifest first, then what only the lock shows."""
    told: set[tuple[str, str]] = set()
    for name, kind, file in [*_manifest_sources(manifest), *_locked_sources(lock)]:
        if (name, kind) in told or name == manifest.name:
            continue
        told.add((name, kind))
        yield Refusal(
            kind, file, f"{name} comes from {_SOURCE_WORDS[kind]}", "use a release from a registry"
        )


_SOURCE_WORDS: Final = {
    "path_source": "a path of the repository",
    "workspace": "a workspace",
    "git_source": "a git repository",
    "url_source": "a URL",
}


def _manifest_sources(manifest: Manifest) -> Iterator[tuple[str, str, str]]:
    sources = manifest.uv.get("sources", {})
    for name, rows in sources.items() if isinstance(sources, Mapping) else ():
        for row in rows if isinstance(rows, list) else [rows]:
            keys = row if isinstance(row, Mapping) else {}
            for key, kind in _SOURCE_KINDS.items():
                if key in keys:
                    yield canonicalize_name(name), kind, MANIFEST
    for declaration in manifest.declarations:
        url = declaration.requirement.url or ""
        if url:
            yield declaration.name, _url_kind(url), MANIFEST


def _url_kind(url: str) -> str:
    if url.startswith("git+"):
        return "git_source"
    return "path_source" if url.startswith("file:") else "url_source"


def _locked_sources(lock: Lock | None) -> Iterator[tuple[str, str, str]]:
    for entry in lock.entries if lock else ():
        kind = entry.source.partition("+")[0]
        if entry.slot != (lock.project_slot if lock else "") and kind in _LOCKED_KINDS:
            yield entry.name, _LOCKED_KINDS[kind], LOCK


def index_refusals(
    manifest: Manifest, lock: Lock | None, options: ProfileOptions
) -> Iterator[Refusal]:
    """Judge index URLs against the policy, and the lock's registries against the settings."""
    allowed = {normal_index(url) for url in options.registries or (DEFAULT_INDEX,)}
    indexes = effective_indexes(manifest)
    for index in indexes:
        if normal_index(index.url) not in allowed:
            yield Refusal(
                "index_not_allowed",
                MANIFEST,
                f"{index.setting} names {normal_index(index.url)}, which the policy doesn't allow",
                "add it to the policy's registries.python, or use an allowed index",
            )
    named = {normal_index(index.url) for index in indexes}
    for url in lock.registries if lock else ():
        if normal_index(url) not in named:
            yield Refusal(
                "registry_unnamed",
                LOCK,
                f"packages were locked from {normal_index(url)}, which no setting names",
                "name that index in [[tool.uv.index]], or lock again without the user's own settings",
            )


def lock_refusals(lock: Lock, newest: UvBinary) -> Iterator[Refusal]:
    """Judge the lock's form and its packages."""
    if lock.version != LOCK_VERSION:
        yield Refusal(
            "lock_version_unknown",
            LOCK,
            f"lock version {lock.version} isn't known (supported: {LOCK_VERSION})",
            "lock with a supported uv, or ask for a newer image",
        )
    if lock.revision > newest.revision:
        yield Refusal(
            "lock_revision_too_new",
            LOCK,
            f"revision {lock.revision} is above {newest.revision}, what uv {newest.version} writes",
            "ask for an image with a newer uv",
        )
    for entry in lock.entries:
        if registry_of(entry) and not any(file.is_wheel for file in entry.files):
            yield Refusal(
                "sdist_only",
                LOCK,
                f"{entry.name} {entry.version} has no wheel, and nothing is built from source",
                "use a version with wheels, or drop the dependency",
            )
    if not lock.project_slot and not any(is_local(entry) for entry in lock.entries):
        yield Refusal("lock_unparsable", LOCK, "it holds no entry of the project", "run `uv lock`")


def surroundings_refusals(around: Surroundings, manifest: Manifest | None) -> Iterator[Refusal]:
    """Judge settings files that staging can't take along."""
    for path in around.uv_toml:
        yield Refusal(
            "uv_toml",
            path,
            "uv.toml replaces settings of pyproject.toml",
            "move its settings into [tool.uv] of pyproject.toml",
        )
    for path in around.workspaces_above:
        yield Refusal(
            "workspace_above",
            path,
            "a directory above the project is a workspace root",
            "workspaces aren't supported; nothing to change here",
        )
    if manifest is None or not manifest.uv:
        for path in around.settings_above:
            yield Refusal(
                "settings_above",
                path,
                "uv would read the settings of a directory above the project",
                "give the project its own [tool.uv] table",
            )


def choose_image(requires_python: str, images: tuple[ToolchainImage, ...]) -> ToolchainImage | None:
    """Pick the newest image whose Python may satisfy the project; patch versions are unknown here."""
    spec = specifier_set(requires_python)
    if spec is None:
        return None
    samples = python_samples(requires_python)
    fitting = [
        image
        for image in images
        if any(
            spec.contains(sample, prereleases=True)
            for sample in samples
            if f"{sample.major}.{sample.minor}" == ".".join(image.version.split(".")[:2])
        )
    ]
    return max(fitting, key=_image_order, default=None)


def _image_order(image: ToolchainImage) -> tuple[int, ...]:
    return tuple(int(part) for part in image.version.split(".") if part.isdigit())
