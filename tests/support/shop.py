"""One small repository on the fixture host, with tokens: what the contract tests push to."""

from dataclasses import dataclass
from pathlib import Path

from support.fixtures.launch import Host
from support.gitclient import Done, authenticated, git, try_git

REPOSITORY = "acme/shop"
READ, PUSH, FORGE = "token-that-reads", "token-that-pushes", "token-of-the-publisher"
BRANCH = "upgraderun/tinylib-1.0.1-0a1b2c3d"
REF = f"refs/heads/{BRANCH}"


@dataclass(frozen=True, slots=True)
class Clone:
    """A working clone of the shop, with one commit on main that is also on the server."""

    path: Path
    host: Host
    base: str

    def url(self, token: str = PUSH) -> str:
        """The repository's URL with a token."""
        return authenticated(self.host.repository_url(REPOSITORY), token)

    def commit(self, file: str = "README.md", content: str = "changed\n") -> str:
        """Commit one file onto the base here; the server doesn't know of it."""
        git(self.path, "checkout", "-q", "--detach", self.base)
        (self.path / file).write_text(content)
        git(self.path, "add", "-A")
        git(self.path, "commit", "-q", "-m", f"Change {file}")
        return git(self.path, "rev-parse", "HEAD")

    def push_create_only(self, commit: str, token: str = PUSH) -> Done:
        """The push of upgrade-run.md §12: creates the branch or fails."""
        return try_git(
            self.path,
            "push",
            "--no-verify",
            "--porcelain",
            f"--force-with-lease={REF}:",
            self.url(token),
            f"{commit}:{REF}",
        )


def open_shop(host: Host, directory: Path) -> Clone:
    """Make the repository, its tokens and the clone."""
    host.control.put_repository(REPOSITORY, collaborators=["maintainer"])
    host.control.add_token(READ, "reader", REPOSITORY, contents="read")
    host.control.add_token(PUSH, "pusher", REPOSITORY, contents="write")
    host.control.add_token(FORGE, "publisher", REPOSITORY, contents="write", pull_requests="write")
    directory.mkdir(parents=True)
    git(directory, "init", "-q", "--initial-branch=main")
    (directory / "README.md").write_text("shop\n")
    git(directory, "add", "-A")
    git(directory, "commit", "-q", "-m", "base")
    git(directory, "push", "-q", authenticated(host.repository_url(REPOSITORY), PUSH), "main")
    return Clone(directory, host, git(directory, "rev-parse", "HEAD"))
