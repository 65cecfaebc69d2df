"""Reading, hashing and replacing files beneath a root without following a link (security.md H29).

Callers: promotion, file tools, candidate. A replacement is atomic: a sibling is written, synced,
renamed, the directory synced; mode is kept.
"""

from pathlib import Path

from upgraderun_protocol.ids import Sha256

ABSENT = "absent"
"""The hash of a file that isn't there (upgrade-run.md §8.5)."""

TEMPORARY_PREFIX = ".upgraderun-tmp-"
"""Names of temporary siblings: what a sweep may remove."""


def read_file(root: Path, path: str, bytes_max: int) -> bytes | None:
    """Content of a regular file beneath root, or None if it is absent.

    Raises PathRefused for a link component, something not regular, or more than `bytes_max`.
    """
    raise NotImplementedError


def hash_file(root: Path, path: str) -> Sha256 | None:
    """SHA-256 of a regular file beneath root, or None if it is absent. Raises PathRefused."""
    raise NotImplementedError


def replace_file(root: Path, path: str, content: bytes) -> None:
    """Write a file wholly or not at all. A new file is 0644 and its directories are made.

    Raises PathRefused for a link component or a target neither absent nor regular.
    """
    raise NotImplementedError
