"""A git client for tests: the real binary, an empty configuration, no prompt.

Used by the contract tests of the fixture servers, by the scenario builder and by the demo.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

IDENTITY = ("Fixture Author", "author@example.com")
COMMIT_DATE = "2025-01-01T00:00:00+00:00"


@dataclass(frozen=True, slots=True)
class Done:
    """What a git command answered."""

    code: int
    out: str
    err: str


def environment(**more: str) -> dict[str, str]:
    """Pinned author and dates, so that the same content has the same commit id everywhere."""
    trust = {key: os.environ[key] for key in ("GIT_SSL_CAINFO",) if key in os.environ}
    return {
        **trust,
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_NAME": IDENTITY[0],
        "GIT_AUTHOR_EMAIL": IDENTITY[1],
        "GIT_AUTHOR_DATE": COMMIT_DATE,
        "GIT_COMMITTER_NAME": IDENTITY[0],
        "GIT_COMMITTER_EMAIL": IDENTITY[1],
        "GIT_COMMITTER_DATE": COMMIT_DATE,
        **more,
    }


def try_git(directory: Path, *arguments: str, **more: str) -> Done:
    """Run git; the caller looks at the code."""
    done = subprocess.run(
        ["git", "-c", "core.autocrlf=false", *arguments],
        cwd=directory,
        env=environment(**more),
        capture_output=True,
        text=True,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def git(directory: Path, *arguments: str, **more: str) -> str:
    """Run git; raises RuntimeError with its error output."""
    done = try_git(directory, *arguments, **more)
    if done.code != 0:
        raise RuntimeError(f"git {' '.join(arguments)} in {directory}: {done.err}{done.out}")
    return done.out.strip()


def git_input(directory: Path, data: bytes, *arguments: str, **more: str) -> str:
    """Run git with data on its standard input; raises RuntimeError with its error output."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=directory,
        env=environment(**more),
        input=data,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"git {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode()


def authenticated(url: str, token: str) -> str:
    """The URL with the token as password."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://x-access-token:{token}@{rest}"
