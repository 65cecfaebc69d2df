"""What a failed uv means, decided by its texts (uv-facts §9).

Callers: acquire, staging, validate. Pure. Texts changed in every minor of uv, which is why tests pin
the version; the exit code can't tell an unreachable registry from a refused resolution.
"""

import re
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from upgraderun_runner.ecosystems.base import (
    AcquisitionFailed,
    Refusal,
    RegistryUnreachable,
    Unsupported,
)
from upgraderun_runner.sandbox.commands import CommandResult

TEXT_MAX: Final = 2000


class UvFailure(StrEnum):
    """Classes of failure, most specific first in `_CLASSES`."""

    UNREACHABLE = "unreachable"
    DENIED = "registry_denied"
    SETTINGS = "settings"
    INTEGRITY = "integrity"
    OWN_FAULT = "incomplete"
    STALE = "stale"
    NEWER_TOOLCHAIN = "newer_toolchain"
    SDIST_ONLY = "sdist_only"
    CONFLICT = "conflict"
    NOT_FOUND = "not_found"
    BUILD = "build"
    OTHER = "other"


_UNREACHABLE_HEADS: Final = ("Failed to fetch", "Request failed after", "error sending request")
_UNREACHABLE_CAUSES: Final = (
    ("dns error", "dns"),
    ("Connection refused", "connect"),
    ("Network is unreachable", "connect"),
    ("operation timed out", "timeout"),
    ("invalid peer certificate", "tls"),
    ("received corrupt message", "tls"),
    ("HTTP status server error (5", "http_5xx"),
    ("(429 Too Many Requests)", "http_429"),
    ("client error (Connect)", "connect"),
    ("connection closed before message completed", "connect"),
    ("Connection reset by peer", "connect"),
    ("end of file before message length reached", "connect"),
)
_BROKEN_ANSWER: Final = "Received some unexpected JSON"
_CLASSES: Final = (
    (
        UvFailure.DENIED,
        (
            "returned a 403 Forbidden",
            "HTTP status client error (403",
            "HTTP status client error (401",
            "lack of valid authentication credentials (401",
        ),
    ),
    (UvFailure.SETTINGS, ("during settings discovery",)),
    (UvFailure.INTEGRITY, ("Hash mismatch for",)),
    (
        UvFailure.OWN_FAULT,
        (
            "was not found in the cache",
            "not found in the cache",
            "Network connectivity is disabled",
            "Read-only file system",
            "is not defined in the",
            "Unable to find lockfile",
        ),
    ),
    (UvFailure.STALE, ("needs to be updated",)),
    (UvFailure.NEWER_TOOLCHAIN, ("does not satisfy Python>=", "hint: The `requires-python` value")),
    (
        UvFailure.SDIST_ONLY,
        ("no usable wheels", "marked as `--no-build` but has no binary distribution"),
    ),
    (UvFailure.NOT_FOUND, ("was not found in the package registry", "there is no version of")),
    (UvFailure.CONFLICT, ("No solution found when resolving dependencies", "unsatisfiable")),
    (UvFailure.NOT_FOUND, ("HTTP status client error (404",)),
    (
        UvFailure.BUILD,
        ("Failed to build", "The build backend returned an error", "Call to `"),
    ),
)
_URL: Final = re.compile(r"https?://[^\s`)\"']+")


def uv_text(result: CommandResult) -> str:
    """The error as people read it, at most 2,000 characters, hints kept."""
    return result.stderr.decode("utf-8", "replace").strip()[-TEXT_MAX:]


def unfolded(result: CommandResult) -> str:
    """The error on one line: older uv wraps lines inside words' spaces."""
    return " ".join(result.stderr.decode("utf-8", "replace").split())


def settings_ignored(result: CommandResult) -> bool:
    """Whether uv warned that it ignores `[tool.uv]`; it then goes on with other indexes."""
    return "during settings discovery" in unfolded(result)


def classify_failure(result: CommandResult) -> tuple[UvFailure, str]:
    """Name the class of a failure, and for an unreachable registry the kind of outage."""
    text = unfolded(result)
    if any(head in text for head in _UNREACHABLE_HEADS):
        for cause, kind in _UNREACHABLE_CAUSES:
            if cause in text:
                return UvFailure.UNREACHABLE, kind
    if _BROKEN_ANSWER in text:
        return UvFailure.UNREACHABLE, "broken_answer"
    for failure, marks in _CLASSES:
        if any(mark in text for mark in marks):
            return failure, ""
    return UvFailure.OTHER, ""


def host_in(text: str, fallback: str) -> str:
    """Name the host that an error speaks of."""
    found = _URL.search(text)
    return urlsplit(found.group(0) if found else fallback).netloc.rpartition("@")[2]


def raise_acquisition(result: CommandResult, registry: str) -> None:
    """Raise what a failed fetch stands for. Returns only if the registry gave a real answer.

    `registry` is the URL to name where the text names none.
    """
    text = uv_text(result)
    host = host_in(text, registry)
    if result.timed_out or result.killed:
        raise AcquisitionFailed("timeout", host, text or "the command was ended")
    failure, kind = classify_failure(result)
    if failure is UvFailure.UNREACHABLE:
        raise RegistryUnreachable(host, kind, text)
    if failure is UvFailure.SETTINGS:
        raise Unsupported((unknown_settings(text),))
    if failure in (UvFailure.DENIED, UvFailure.INTEGRITY, UvFailure.OWN_FAULT):
        raise AcquisitionFailed(failure.value, host, text)


def unknown_settings(text: str) -> Refusal:
    """The refusal for a `[tool.uv]` table that uv couldn't read."""
    return Refusal(
        "unknown_setting",
        "pyproject.toml",
        f"uv can't read [tool.uv] and would ignore all of it: {text[:500]}",
        "correct or remove the key that the text names",
    )
