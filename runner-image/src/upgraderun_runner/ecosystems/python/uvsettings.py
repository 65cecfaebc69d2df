"""What uv reads from `[tool.uv]`: known keys, index settings, `required-version` (uv-facts §4).

Callers: profile and refusals. Pure. A key that the image's uv doesn't know makes it drop *all*
settings with only a warning, so it must be refused; a test compares the list with the real uv.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from upgraderun_runner.ecosystems.python.manifest import Manifest

DEFAULT_INDEX: Final = "https://pypi.org/simple"
"""The public index: what uv asks when nothing else is configured."""

KNOWN_KEYS: Final = frozenset(
    [
        "required-version",
        "system-certs",
        "native-tls",
        "offline",
        "no-cache",
        "cache-dir",
        "preview",
        "preview-features",
        "python-preference",
        "python-downloads",
        "concurrent-downloads",
        "concurrent-builds",
        "concurrent-installs",
        "index",
        "index-url",
        "extra-index-url",
        "no-index",
        "find-links",
        "index-strategy",
        "keyring-provider",
        "http-proxy",
        "https-proxy",
        "no-proxy",
        "allow-insecure-host",
        "resolution",
        "prerelease",
        "prerelease-package",
        "fork-strategy",
        "dependency-metadata",
        "config-settings",
        "config-settings-package",
        "no-build-isolation",
        "require-build-hashes",
        "no-build-isolation-package",
        "extra-build-dependencies",
        "extra-build-variables",
        "exclude-newer",
        "exclude-newer-package",
        "link-mode",
        "compile-bytecode",
        "no-sources",
        "no-sources-package",
        "upgrade",
        "upgrade-package",
        "reinstall",
        "reinstall-package",
        "no-build",
        "no-build-package",
        "no-binary",
        "no-binary-package",
        "torch-backend",
        "python-install-mirror",
        "pypy-install-mirror",
        "graalpy-install-mirror",
        "pyodide-install-mirror",
        "python-downloads-json-url",
        "publish-url",
        "trusted-publishing",
        "check-url",
        "add-bounds",
        "audit",
        "pip",
        "cache-keys",
        "override-dependencies",
        "exclude-dependencies",
        "constraint-dependencies",
        "build-constraint-dependencies",
        "environments",
        "required-environments",
        "minimum-libc-version",
        "conflicts",
        "workspace",
        "sources",
        "managed",
        "package",
        "default-groups",
        "dependency-groups",
        "dev-dependencies",
        "build-backend",
    ]
)
"""Top-level keys of `[tool.uv]` that uv 0.13.9 knows."""


@dataclass(frozen=True, slots=True)
class Index:
    """One index of the manifest. `setting` is where it is named; uv's default has none."""

    url: str
    setting: str


def normal_index(url: str) -> str:
    """Spell an index URL for comparison: no credentials, no trailing slash."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].lower()
    return urlunsplit((parts.scheme.lower(), host, parts.path.rstrip("/"), parts.query, ""))


def effective_indexes(manifest: Manifest) -> tuple[Index, ...]:
    """List every index that a resolution may ask: the named ones, and uv's default unless replaced."""
    found = [Index(url, setting) for url, setting in _named(manifest.uv)]
    rows = _rows(manifest.uv)
    replaced = "index-url" in manifest.uv or any(row.get("default") is True for row in rows)
    if not replaced and manifest.uv.get("no-index") is not True:
        found.append(Index(DEFAULT_INDEX, "uv's default"))
    return tuple(found)


def _rows(uv: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    rows = uv.get("index", [])
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def _named(uv: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = [(str(row.get("url", "")), "tool.uv.index") for row in _rows(uv)]
    if "index-url" in uv:
        found.append((str(uv["index-url"]), "tool.uv.index-url"))
    for key in ("extra-index-url", "find-links"):
        found += [(str(url), f"tool.uv.{key}") for url in _strings(uv.get(key))]
    return found


def _strings(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def unknown_keys(manifest: Manifest) -> tuple[str, ...]:
    """Name the keys of `[tool.uv]` that the image's uv doesn't know."""
    return tuple(sorted(set(manifest.uv) - KNOWN_KEYS))
