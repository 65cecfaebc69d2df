"""Puts a finished repository on a fixture host, with one token that reads and one that publishes.

Used by the scenario worlds, the corpus tests and the demo.
"""

import secrets
from dataclasses import dataclass
from pathlib import Path

from support.fixtures.launch import Host
from support.gitclient import authenticated, git
from support.toolchain import ToolFailedError

PERSON = "fixture-maintainer"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Credentials for one repository: `clone` reads, `push` pushes and opens pull requests."""

    clone: str
    push: str


def publish(host: Host, repository: str, local: Path, commit: str) -> Tokens:
    """Make `owner/name` on the host and push the commit as its `main`, with the tags of `local`."""
    host.control.put_repository(repository, collaborators=[PERSON])
    tokens = Tokens(*(f"fixture-{kind}-{secrets.token_hex(8)}" for kind in ("clone", "push")))
    host.control.add_token(tokens.clone, "upgraderun-clone", repository, contents="read")
    host.control.add_token(
        tokens.push, "upgraderun-bot", repository, contents="write", pull_requests="write"
    )
    url = authenticated(host.repository_url(repository), tokens.push)
    git(local, "push", "-q", url, "--tags", f"{commit}:refs/heads/main")
    if host.control.refs(repository).get("refs/heads/main") != commit:
        raise ToolFailedError(f"{repository}: the base commit didn't arrive")
    return tokens
