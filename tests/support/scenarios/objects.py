"""Writes exact trees and commits into a git repository by plumbing, without a checkout.

Author, dates and message are pinned (`support.gitclient`), so equal content has equal ids. Trees
that no checkout could hold (odd paths, submodules) are possible.
"""

import hashlib
import tempfile
from collections.abc import Mapping
from pathlib import Path

from support.gitclient import git, git_input
from support.scenarios.repository import GITLINK, Entry

ABSENT_SUBMODULE = "4" * 40


def write_tree(repository: Path, entries: Mapping[str, Entry]) -> str:
    """Write a tree; equal contents are stored once. Returns its id."""
    blobs: dict[bytes, str] = {}
    lines: list[bytes] = []
    for path, entry in sorted(entries.items()):
        blob = ABSENT_SUBMODULE
        if entry.mode != GITLINK:
            key = hashlib.sha256(entry.content).digest()
            if key not in blobs:
                blobs[key] = git_input(
                    repository, entry.content, "hash-object", "-w", "--stdin"
                ).strip()
            blob = blobs[key]
        lines.append(f"{entry.mode} {blob}\t{path}\0".encode())
    with tempfile.TemporaryDirectory() as scratch:
        index = str(Path(scratch) / "index")
        git_input(
            repository,
            b"".join(lines),
            *("update-index", "-z", "--index-info"),
            GIT_INDEX_FILE=index,
        )
        return git(repository, "write-tree", GIT_INDEX_FILE=index)


def commit_tree(repository: Path, tree: str, message: str, *parents: str) -> str:
    """Make a commit and point `main` at it."""
    flags = [flag for parent in parents for flag in ("-p", parent)]
    commit = git(repository, "commit-tree", tree, *flags, "-m", message)
    git(repository, "update-ref", "refs/heads/main", commit)
    return commit


def bare_repository(folder: Path) -> Path:
    """An empty bare repository that keeps nothing busy."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "--bare", "--initial-branch=main", ".")
    git(folder, "config", "gc.auto", "0")
    return folder


def write_files(folder: Path, texts: Mapping[str, str]) -> None:
    """Write text files below a folder."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
