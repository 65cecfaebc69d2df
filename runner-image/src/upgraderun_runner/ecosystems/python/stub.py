"""The stub build back end for a dynamic version (upgrade-run.md §8.5, uv-facts).

Callers: staging and acquire's lock proof. uv runs the build back end for `dynamic = ["version"]` even
with `--no-build`; a staged copy therefore names this in-tree module instead. The lock records neither
back end nor version, so its bytes are the real ones. Only staged copies are ever changed.
"""

import json
from pathlib import Path
from typing import Final

import tomlkit

from upgraderun_runner.ecosystems.base import Pair
from upgraderun_runner.ecosystems.python.manifest import Manifest, parse_manifest
from upgraderun_runner.ecosystems.python.refusals import LOCK, MANIFEST

_MODULE: Final = "ur_stub_backend"
_PLACEHOLDER: Final = "0.0.0"
_SOURCE: Final = '''"""Answers the static metadata of the manifest and a placeholder version; builds nothing."""
import json
import pathlib

_METADATA = json.loads({metadata!r})


def _prepare(directory, config_settings=None):
    folder = pathlib.Path(directory) / {folder!r}
    folder.mkdir()
    (folder / "METADATA").write_text(_METADATA, encoding="utf-8")
    (folder / "WHEEL").write_text("Wheel-Version: 1.0\\nGenerator: stub\\nRoot-Is-Purelib: true\\n")
    return folder.name


prepare_metadata_for_build_wheel = _prepare
prepare_metadata_for_build_editable = _prepare


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_editable = get_requires_for_build_wheel
'''


def write_pair(directory: Path, pair: Pair) -> None:
    """Put a pair into an empty directory, with the stub if the version is dynamic."""
    directory.mkdir(parents=True)
    manifest = parse_manifest(pair.manifest)
    (directory / LOCK).write_bytes(pair.lock)
    if "version" not in manifest.dynamic:
        (directory / MANIFEST).write_bytes(pair.manifest)
        return
    (directory / MANIFEST).write_text(_with_stub(pair.manifest), encoding="utf-8")
    (directory / f"{_MODULE}.py").write_text(_module(manifest), encoding="utf-8")


def read_lock(directory: Path) -> bytes:
    """Read the lock that uv left."""
    return (directory / LOCK).read_bytes()


def _with_stub(manifest: bytes) -> str:
    document = tomlkit.parse(manifest.decode("utf-8"))
    document["build-system"] = {
        "requires": [],
        "build-backend": _MODULE,
        "backend-path": ["."],
    }
    return tomlkit.dumps(document)


def _module(manifest: Manifest) -> str:
    folder = f"{manifest.name.replace('-', '_')}-{_PLACEHOLDER}.dist-info"
    return _SOURCE.format(metadata=json.dumps(_metadata(manifest)), folder=folder)


def _metadata(manifest: Manifest) -> str:
    """Spell the static metadata as core metadata 2.1."""
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {manifest.project['name']}",
        f"Version: {_PLACEHOLDER}",
        f"Requires-Python: {manifest.requires_python}",
    ]
    lines += [
        f"Requires-Dist: {declaration.requirement}"
        for declaration in manifest.declarations
        if declaration.where == "dependencies"
    ]
    for extra, items in manifest.project.get("optional-dependencies", {}).items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {_with_extra(item, extra)}" for item in items]
    return "\n".join(lines) + "\n"


def _with_extra(requirement: str, extra: str) -> str:
    head, _, marker = requirement.partition(";")
    condition = f"extra == '{extra}'"
    return (
        f"{head.strip()} ; ({marker.strip()}) and {condition}"
        if marker
        else f"{head.strip()} ; {condition}"
    )
