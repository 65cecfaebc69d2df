"""Cloning from a smart HTTP host (upgrade-run.md §3 phase 2, security.md §6)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.fixtures.faults import Fault
from support.fixtures.launch import Host
from upgraderun_protocol.ids import CommitId
from upgraderun_runner.workspace import clone, limits
from upgraderun_runner.workspace.clone import Base, Source, clone_base, remote_refs
from upgraderun_runner.workspace.errors import BaseMissing, GitFailed, RemoteFailed
from upgraderun_runner.workspace.git import Bounds, Credential, Git, resolve_ref

REPOSITORY = "acme/shop"


@pytest.fixture
def url(host: Host) -> str:
    return host.repository_url(REPOSITORY)


class TestBase:
    """Clone without checkout, detached checkout of the base."""

    async def test_head_of_the_default_branch_becomes_the_detached_base(
        self, git: Git, remote: Any, url: str, clone_credential: Credential
    ) -> None:
        commit = remote.commit(remote.tree({"a.py": "x = 1\n"}))
        remote.commit(remote.tree({"b.py": "y\n"}), branch="other")

        base = await clone_base(git, Source(url), clone_credential)

        assert Base(commit, remote.git("rev-parse", f"{commit}^{{tree}}"), "main") == base
        assert commit == (git.git_dir / "HEAD").read_text().strip()
        assert ["HEAD", "config", "logs", "objects", "refs", "shallow"] == sorted(
            path.name for path in git.git_dir.iterdir()
        )

    async def test_named_branch_and_earlier_commit_of_it_are_taken(
        self, git: Git, remote: Any, url: str, clone_credential: Credential
    ) -> None:
        remote.commit(remote.tree({"main": "x"}))
        first = remote.commit(remote.tree({"a": "1"}), branch="v1")
        remote.commit(remote.tree({"a": "2"}), first, branch="v1")

        base = await clone_base(git, Source(url, "v1", first), clone_credential)

        assert (first, "v1") == (base.commit, base.branch)

    async def test_commit_of_another_branch_is_refused(
        self, git: Git, remote: Any, url: str, clone_credential: Credential
    ) -> None:
        remote.commit(remote.tree({"main": "x"}))
        other = remote.commit(remote.tree({"a": "1"}), branch="other")

        with pytest.raises(BaseMissing, match="isn't reachable from branch 'main'"):
            await clone_base(git, Source(url, "main", other), clone_credential)

    @pytest.mark.parametrize(
        "branch", ["absent", "-x", "a..b", "main:refs/heads/x", "a b", "x.lock"]
    )
    async def test_missing_or_impossible_branch_is_a_definite_answer(
        self, git: Git, remote: Any, url: str, clone_credential: Credential, branch: str
    ) -> None:
        remote.commit(remote.tree({"main": "x"}))

        with pytest.raises(BaseMissing):
            await clone_base(git, Source(url, branch), clone_credential)

    async def test_empty_repository_names_no_branch(
        self, git: Git, url: str, clone_credential: Credential
    ) -> None:
        with pytest.raises(BaseMissing):
            await clone_base(git, Source(url), clone_credential)

    async def test_second_clone_into_one_directory_is_refused(
        self, git: Git, remote: Any, url: str, clone_credential: Credential
    ) -> None:
        remote.commit(remote.tree({"main": "x"}))
        await clone_base(git, Source(url), clone_credential)

        with pytest.raises(GitFailed, match="exists already"):
            await clone_base(git, Source(url), clone_credential)


class TestUnreadableHost:
    """A transport error is never a verdict (DESIGN §2, principle 5)."""

    async def test_wrong_token_says_denied(
        self, git: Git, remote: Any, url: str, host: Host
    ) -> None:
        remote.commit(remote.tree({"main": "x"}))

        with pytest.raises(RemoteFailed) as caught:
            await clone_base(git, Source(url), Credential(host.url, "x", "wrong-token-canary"))

        assert "denied" == caught.value.kind
        assert "wrong-token-canary" not in str(caught.value)

    async def test_renamed_repository_is_told_and_not_followed(
        self, git: Git, remote: Any, host: Host, url: str, clone_credential: Credential
    ) -> None:
        """H22; https://docs.github.com/repositories/creating-and-managing-repositories/renaming-a-repository."""
        remote.commit(remote.tree({"main": "x"}))
        host.control.rename_repository(REPOSITORY, "acme/store")
        host.control.forget_requests()

        with pytest.raises(RemoteFailed) as caught:
            await clone_base(git, Source(url), clone_credential)

        assert "moved" == caught.value.kind
        assert not [row for row in host.control.requests() if "store" in row["path"]]

    async def test_answer_500_is_unknown_not_absent(
        self, git: Git, remote: Any, url: str, host: Host, clone_credential: Credential
    ) -> None:
        host.control.add_fault(Fault("status", path="info/refs", status=500))

        with pytest.raises(RemoteFailed) as caught:
            await remote_refs(git, url, ("refs/heads/main",), clone_credential)

        assert "unreachable" == caught.value.kind

    async def test_host_that_hangs_is_unknown_after_its_time(
        self,
        git: Git,
        url: str,
        host: Host,
        clone_credential: Credential,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(clone, "REMOTE", Bounds(timeout_seconds=1))
        host.control.add_fault(Fault("hang", path="info/refs", seconds=60))

        with pytest.raises(RemoteFailed, match="no end within 1 s") as caught:
            await remote_refs(git, url, ("refs/heads/main",), clone_credential)

        host.control.clear_faults()
        assert "unreachable" == caught.value.kind

    async def test_closed_port_is_unreachable(self, git: Git, host: Host) -> None:
        with pytest.raises(RemoteFailed) as caught:
            await clone_base(git, Source("http://127.0.0.1:1/a/b.git", "main"), None)

        assert "unreachable" == caught.value.kind

    async def test_redirect_is_not_followed(
        self, git: Git, remote: Any, url: str, host: Host, clone_credential: Credential
    ) -> None:
        """H22: redirects aren't followed."""
        target = f"{host.url}/acme/other.git/info/refs?service=git-upload-pack"
        host.control.add_fault(
            Fault("status", path="shop.git/info/refs", status=302, headers={"Location": target})
        )

        with pytest.raises(RemoteFailed):
            await remote_refs(git, url, ("refs/heads/main",), clone_credential)

        assert not [r for r in host.control.requests() if "other.git" in str(r)]


class TestCredential:
    """A credential goes only to its own origin (H22)."""

    async def test_other_origin_gets_nothing(self, git: Git, remote: Any, url: str) -> None:
        remote.commit(remote.tree({"main": "x"}))
        elsewhere = Credential("https://elsewhere.example", "x", "secret-canary-9")

        with pytest.raises(RemoteFailed) as caught:
            await clone_base(git, Source(url), elsewhere)

        assert "denied" == caught.value.kind

    async def test_secret_is_in_no_file_and_no_argument(
        self, git: Git, remote: Any, url: str, tmp_path: Path, clone_credential: Credential
    ) -> None:
        remote.commit(remote.tree({"main": "x"}))
        await clone_base(git, Source(url), clone_credential)

        written = [
            path
            for root in (git.git_dir, git.settings.private)
            for path in root.rglob("*")
            if path.is_file() and clone_credential.secret.encode() in path.read_bytes()
        ]

        assert [] == written
        assert clone_credential.secret not in " ".join(git.argv(("fetch",)))
        assert clone_credential.secret not in repr(clone_credential)


class TestBounds:
    """Clone on disk at most 2 GiB (security.md §4)."""

    async def test_clone_above_its_bound_fails(
        self,
        git: Git,
        remote: Any,
        url: str,
        clone_credential: Credential,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        remote.commit(remote.tree({"large": bytes(range(256)) * 8}))
        monkeypatch.setattr(limits, "CLONE_BYTES_MAX", 100)

        with pytest.raises(GitFailed, match="more than 100 bytes on disk"):
            await clone_base(git, Source(url), clone_credential)


def _commit_object(remote: Any, tree: str, author: str) -> CommitId:
    body = (
        f"tree {tree}\nauthor {author}\ncommitter Ann <a@b.c> 1700000000 +0000\n\nmessage\n"
    ).encode()
    commit = remote.git("hash-object", "-w", "-t", "commit", "--literally", "--stdin", stdin=body)
    remote.git("update-ref", "refs/heads/main", commit)
    return CommitId(commit)


class TestStrictCheck:
    """Received objects are checked; three old defects are only warnings (security.md §6)."""

    async def test_old_history_with_a_bad_time_zone_is_taken(
        self, git: Git, remote: Any, url: str, clone_credential: Credential
    ) -> None:
        commit = _commit_object(remote, remote.tree({"a": "1"}), "Ann <a@b.c> 1200000000 +051800")

        assert commit == (await clone_base(git, Source(url), clone_credential)).commit

    async def test_old_history_with_a_missing_space_is_taken(
        self, git: Git, remote: Any, url: str, clone_credential: Credential
    ) -> None:
        commit = _commit_object(remote, remote.tree({"a": "1"}), "Ann <a@b.c>1200000000 +0000")

        assert commit == (await clone_base(git, Source(url), clone_credential)).commit

    async def test_old_history_with_a_padded_mode_is_taken(
        self, git: Git, remote: Any, url: str, clone_credential: Credential
    ) -> None:
        inner = remote.tree({"a": "1"})
        commit = remote.commit(remote.raw_tree([("040000", b"lib", inner)]))

        assert commit == (await clone_base(git, Source(url), clone_credential)).commit

    async def test_broken_author_is_refused(
        self, git: Git, remote: Any, url: str, clone_credential: Credential
    ) -> None:
        _commit_object(remote, remote.tree({"a": "1"}), "Ann a@b.c> 1200000000 +0000")

        with pytest.raises(RemoteFailed):
            await clone_base(git, Source(url), clone_credential)

        assert await resolve_ref(git, clone.BASE_REF) is None


async def test_protocols_other_than_allowed_are_refused(
    git: Git, fresh_git: Callable[[str], Git], remote: Any
) -> None:
    """H27: `ext::`, `file:` and ssh never start a program."""
    remote.commit(remote.tree({"main": "x"}))
    marker = git.settings.private / "marker"
    urls = (
        f"ext::sh -c 'touch {marker}'", f"file://{remote.directory}", str(remote.directory),
        "ssh://host/a/b", "git@host:a/b", f"--upload-pack=touch {marker}", "git://host/a/b",
    )  # fmt: skip
    for number, url in enumerate(urls):
        with pytest.raises(RemoteFailed):
            await clone_base(fresh_git(f"g{number}"), Source(url, "main"), None)

    assert not marker.exists()
