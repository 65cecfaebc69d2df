"""Real git, real files, a real smart HTTP host: what the tests of this folder stand on."""

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.fixtures.launch import Host, host_in_process
from upgraderun_protocol.ids import CommitId, RunUid, TreeId
from upgraderun_runner.workspace.git import Credential, Git, GitSettings, prepare_git
from upgraderun_runner.workspace.identity import WorkspaceIdentity, create_workspace
from upgraderun_runner.workspace.layout import Layout

RUN_UID = RunUid("3f1c9a2b-0000-4000-8000-000000000001")
REPOSITORY = "acme/shop"
CLONE_TOKEN = "clone-token-canary-1"
PUSH_TOKEN = "push-token-canary-2"


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes objects with plain git, also such that no honest client would make."""

    directory: Path

    def git(self, *arguments: str, stdin: bytes = b"") -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.directory,
            input=stdin,
            capture_output=True,
            check=True,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.directory),
                "GIT_INDEX_FILE": str(self.directory / "maker.index"),
                "GIT_AUTHOR_NAME": "Ann",
                "GIT_AUTHOR_EMAIL": "ann@example.com",
                "GIT_AUTHOR_DATE": "@1700000000 +0000",
                "GIT_COMMITTER_NAME": "Ann",
                "GIT_COMMITTER_EMAIL": "ann@example.com",
                "GIT_COMMITTER_DATE": "@1700000000 +0000",
            },
        )
        return done.stdout.decode().strip()

    def blob(self, content: bytes) -> str:
        return self.git("hash-object", "-w", "--stdin", stdin=content)

    def raw_tree(self, rows: list[tuple[str, bytes, str]]) -> TreeId:
        """A tree object from (mode, name, object id), unchecked and in the given order."""
        data = b"".join(
            mode.encode() + b" " + name + b"\0" + bytes.fromhex(object_id)
            for mode, name, object_id in rows
        )
        return TreeId(
            self.git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=data)
        )

    def tree(self, files: Mapping[str, bytes | str | tuple[str, bytes]]) -> TreeId:
        """A tree from path to content, or to (mode, content); links are ("120000", target)."""
        lines = []
        for path, value in files.items():
            mode, content = value if isinstance(value, tuple) else ("100644", value)
            data = content.encode() if isinstance(content, str) else content
            lines.append(f"{mode} {self.blob(data)}\t{path}\0".encode())
        (self.directory / "maker.index").unlink(missing_ok=True)
        self.git("update-index", "-z", "--index-info", stdin=b"".join(lines))
        return TreeId(self.git("write-tree"))

    def commit(self, tree: TreeId, *parents: str, branch: str = "main") -> CommitId:
        flags = [flag for parent in parents for flag in ("-p", parent)]
        commit = self.git("commit-tree", tree, *flags, "-m", "A commit")
        self.git("update-ref", f"refs/heads/{branch}", commit)
        return CommitId(commit)


@pytest.fixture
def settings(tmp_path: Path) -> GitSettings:
    made = GitSettings(tmp_path / "private", allowed_protocols=("http",))
    prepare_git(made)
    return made


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    (tmp_path / "volume").mkdir()
    made = Layout(tmp_path / "volume", 1)
    create_workspace(made, WorkspaceIdentity(RUN_UID, 1, "nonce"))
    return made


@pytest.fixture
def git(settings: GitSettings, layout: Layout) -> Git:
    return Git(settings, layout.git)


@pytest.fixture
def maker(layout: Layout) -> Maker:
    """Makes objects straight in the workspace's git directory."""
    subprocess.run(
        ["git", "init", "-q", "--bare", str(layout.git)], check=True, capture_output=True
    )
    return Maker(layout.git)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with host_in_process(tmp_path / "host") as running:
        running.control.put_repository(REPOSITORY, private=True)
        running.control.add_token(CLONE_TOKEN, "cloner", REPOSITORY, contents="read")
        running.control.add_token(
            PUSH_TOKEN, "upgraderun", REPOSITORY, contents="write", pull_requests="write"
        )
        yield running


@pytest.fixture
def remote(tmp_path: Path, host: Host) -> Maker:
    """Makes objects and branches straight in the host's bare repository."""
    return Maker(tmp_path / "host" / f"{REPOSITORY}.git")


@pytest.fixture
def clone_credential(host: Host) -> Credential:
    return Credential(host.url, "x-access-token", CLONE_TOKEN)


@pytest.fixture
def push_credential(host: Host) -> Credential:
    return Credential(host.url, "x-access-token", PUSH_TOKEN)


@pytest.fixture
def fresh_git(tmp_path: Path, settings: GitSettings) -> Callable[[str], Git]:
    """A git directory that doesn't exist yet, as a publisher has it."""
    return lambda name: Git(settings, tmp_path / name)
