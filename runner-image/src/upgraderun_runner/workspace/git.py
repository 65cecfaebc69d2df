"""The one wrapper around git (security.md §6, H27): fixed argv, environment built from nothing.

Callers: the other modules of `workspace` and `forge.push`. Nobody else starts git. No shell, no
configuration of system, user or repository that could name a program, no hook, no filter.
"""

from dataclasses import dataclass, field
from pathlib import Path

from upgraderun_protocol.ids import CommitId

from upgraderun_runner.workspace import limits


@dataclass(frozen=True, slots=True)
class Credential:
    """A secret for one origin (security.md H22). `origin` is `https://host[:port]`."""

    origin: str
    username: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Identity:
    """Author and committer of a commit, as git would store them (upgrade-run.md §10)."""

    name: str
    email: str


@dataclass(frozen=True, slots=True)
class Stamp:
    """Identity and time of a commit; both dates are the same, UTC, whole seconds."""

    identity: Identity
    unix_seconds: int


@dataclass(frozen=True, slots=True)
class GitSettings:
    """What `main` knows about git on this machine.

    `private` is a 0700 directory outside every workspace: it holds the askpass script, an empty
    HOME and the read-only global configuration. `allowed_protocols` is ("https",) unless the
    policy's own repository URL is http (fixtures inside a cluster, development).
    """

    private: Path
    path: str = "/usr/local/bin:/usr/bin:/bin"
    allowed_protocols: tuple[str, ...] = ("https",)
    ca_bundle: Path | None = None


@dataclass(frozen=True, slots=True)
class GitResult:
    """How a command ended. `stderr` is redacted and cut, for messages only."""

    exit_code: int
    stdout: bytes
    stderr: str


class Git:
    """Git on one git directory. Make one with `prepare_git` once per process and `at` per place."""

    def __init__(self, settings: GitSettings, git_dir: Path, work_tree: Path | None = None) -> None:
        """Without `work_tree` git sees an empty one, so no attribute or ignore file is read."""
        raise NotImplementedError

    async def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        index: Path | None = None,
        stamp: Stamp | None = None,
        credential: Credential | None = None,
        timeout_seconds: int = limits.LOCAL_TIMEOUT_SECONDS,
        stdout_max: int = limits.GIT_STDOUT_BYTES_MAX,
    ) -> GitResult:
        """Run one command to its end and return how it ended, whatever the status.

        Raises GitFailed if it outlasts the timeout or says more than `stdout_max`; the process
        group is killed first.
        """
        raise NotImplementedError

    async def check(self, *arguments: str, stdin: bytes = b"", index: Path | None = None) -> bytes:
        """Run a local command that must succeed; its standard output. Raises GitFailed."""
        raise NotImplementedError


def prepare_git(settings: GitSettings) -> None:
    """Write askpass, empty HOME and configuration into `settings.private`. May be repeated."""
    raise NotImplementedError


async def resolve_ref(git: Git, ref: str) -> CommitId | None:
    """The commit that a full ref name points at, or None if there is no such ref."""
    raise NotImplementedError
