"""The one wrapper around git (security.md §6, H27): fixed argv, environment built from nothing.

Callers: the other modules of `workspace` and `forge.push`. Nobody else starts git. No shell, no
configuration of system, user or repository that could name a program, no hook, no filter.
"""

import asyncio
import contextlib
import os
import signal
import stat
from dataclasses import dataclass, field
from pathlib import Path

from upgraderun_protocol.canonical import is_git_id
from upgraderun_protocol.ids import CommitId
from upgraderun_runner.workspace import gitenv, limits
from upgraderun_runner.workspace.errors import (
    GitFailed,
    OutputTooLong,
    RemoteFailed,
    RemoteFailure,
    TimedOut,
)

_CHUNK = 64 * limits.KIB
_HINTS: tuple[tuple[RemoteFailure, tuple[str, ...]], ...] = (
    (
        "denied",
        ("Authentication failed", "could not read", "returned error: 401", "returned error: 403"),
    ),
    ("not_found", ("not found", "returned error: 404")),
    ("moved", ("returned error: 30", "redirect")),
    (
        "unreachable",
        ("Could not resolve", "Failed to connect", "timed out", "Connection", "SSL", "error: 5"),
    ),
)


@dataclass(frozen=True, slots=True)
class Credential:
    """A secret for one origin (security.md H22). `origin` is `https://host[:port]`."""

    origin: str
    username: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Identity:
    """Author and committer of a commit (upgrade-run.md §10)."""

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

    `private` is a 0700 directory outside every workspace, on a volume that may execute: it holds
    the askpass script, an empty HOME and the read-only global configuration. `allowed_protocols`
    is ("https",) unless the policy's own repository URL is http (fixtures, development).
    """

    private: Path
    path: str = "/usr/local/bin:/usr/bin:/bin"
    allowed_protocols: tuple[str, ...] = ("https",)
    ca_bundle: Path | None = None

    @property
    def home(self) -> Path:
        """The empty directory that serves as HOME, and as work tree where none is needed."""
        return self.private / "home"

    def places(self, git_dir: Path, work_tree: Path) -> gitenv.Places:
        """Name the files that the environment points at."""
        return gitenv.Places(
            home=self.home,
            global_config=self.private / "gitconfig",
            askpass=self.private / "askpass",
            git_dir=git_dir,
            work_tree=work_tree,
        )


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long a command may run, how much it may say, how large a directory may grow meanwhile."""

    timeout_seconds: int = limits.LOCAL_TIMEOUT_SECONDS
    stdout_max: int = limits.GIT_STDOUT_BYTES_MAX
    directory: Path | None = None
    directory_max: int = limits.CLONE_BYTES_MAX


LOCAL = Bounds()
REMOTE = Bounds(timeout_seconds=limits.REMOTE_TIMEOUT_SECONDS)
PUSH = Bounds(timeout_seconds=limits.PUSH_TIMEOUT_SECONDS)


@dataclass(frozen=True, slots=True)
class GitResult:
    """How a command ended. `stderr` is cut and free of the credential, for messages only."""

    exit_code: int
    stdout: bytes
    stderr: str


class Git:
    """Git on one git directory. `prepare_git` once per process comes first."""

    def __init__(self, settings: GitSettings, git_dir: Path, work_tree: Path | None = None) -> None:
        """Without `work_tree` git sees an empty one, so no attribute or ignore file is read."""
        self.settings = settings
        self.git_dir = git_dir
        self.work_tree = work_tree or settings.home

    def with_work_tree(self, work_tree: Path) -> "Git":
        """The same repository, seen with a work tree."""
        return Git(self.settings, self.git_dir, work_tree)

    async def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        index: Path | None = None,
        stamp: Stamp | None = None,
        bounds: Bounds = LOCAL,
    ) -> GitResult:
        """Run one local command to its end and say how it ended, whatever the status.

        Raises GitFailed if it breaks one of `bounds`; the process group is killed first.
        """
        return await self._run(arguments, stdin, self._environment(index, stamp), bounds)

    async def check(
        self,
        *arguments: str,
        stdin: bytes = b"",
        index: Path | None = None,
        stamp: Stamp | None = None,
        bounds: Bounds = LOCAL,
    ) -> bytes:
        """Run a local command that must succeed; its standard output. Raises GitFailed."""
        result = await self.run(*arguments, stdin=stdin, index=index, stamp=stamp, bounds=bounds)
        if result.exit_code != 0:
            raise GitFailed(arguments[0], result.exit_code, result.stderr)
        return result.stdout

    async def remote(
        self, *arguments: str, url: str, credential: Credential | None, bounds: Bounds = REMOTE
    ) -> GitResult:
        """Run a command that talks to `url`; the credential only goes to its own origin (H22).

        Raises RemoteFailed if it outlasts its time (unknown), GitFailed if it breaks another bound.
        """
        environment = self._environment(None, None)
        if credential is not None and credential.origin == gitenv.origin_of(url):
            environment |= gitenv.credential_environment(
                credential.origin, credential.username, credential.secret
            )
        try:
            result = await self._run(arguments, b"", environment, bounds)
        except TimedOut as error:
            raise RemoteFailed(arguments[0], "unreachable", error.text) from error
        return GitResult(result.exit_code, result.stdout, _without(result.stderr, credential))

    def argv(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        """The whole command line: settings first, where nothing can override them."""
        settings = self.settings
        fixed = gitenv.setting_arguments(settings.allowed_protocols, settings.ca_bundle)
        return ("git", "--no-pager", *fixed, *arguments)

    def _environment(self, index: Path | None, stamp: Stamp | None) -> dict[str, str]:
        settings = self.settings
        environment = gitenv.base_environment(
            settings.path,
            settings.places(self.git_dir, self.work_tree),
            settings.allowed_protocols,
        )
        if index is not None:
            environment["GIT_INDEX_FILE"] = str(index)
        if stamp is not None:
            environment |= gitenv.stamp_environment(
                stamp.identity.name, stamp.identity.email, stamp.unix_seconds
            )
        return environment

    async def _run(
        self, arguments: tuple[str, ...], stdin: bytes, environment: dict[str, str], bounds: Bounds
    ) -> GitResult:
        process = await asyncio.create_subprocess_exec(
            *self.argv(arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
            cwd=self.work_tree,
            start_new_session=True,
        )
        try:
            return await _bounded(process, arguments[0], stdin, bounds)
        finally:
            await _end(process)


async def _bounded(
    process: asyncio.subprocess.Process, command: str, stdin: bytes, bounds: Bounds
) -> GitResult:
    """Talk to a process until it ends or breaks a bound."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    talk = asyncio.gather(
        _feed(process.stdin, stdin),
        _collect(process.stdout, bounds.stdout_max),
        _collect(process.stderr, limits.GIT_STDERR_BYTES_MAX, keep_reading=True),
        process.wait(),
    )
    seconds = 0
    step = limits.CLONE_PROBE_SECONDS
    try:
        while not talk.done():
            await asyncio.wait({talk}, timeout=step if bounds.directory else bounds.timeout_seconds)
            seconds += step if bounds.directory else bounds.timeout_seconds
            if bounds.directory and directory_bytes(bounds.directory) > bounds.directory_max:
                raise GitFailed(command, -1, f"more than {bounds.directory_max} bytes on disk")
            if not talk.done() and seconds >= bounds.timeout_seconds:
                raise TimedOut(command, -1, f"no end within {bounds.timeout_seconds} s")
        _, stdout, stderr, exit_code = talk.result()
    except _TooMuchError as error:
        raise OutputTooLong(command, -1, f"said more than {bounds.stdout_max} bytes") from error
    finally:
        talk.cancel()
    return GitResult(exit_code, stdout, _printable(stderr))


class _TooMuchError(Exception):
    """A stream passed its bound."""


async def _feed(stream: asyncio.StreamWriter, data: bytes) -> None:
    try:
        if data:
            stream.write(data)
            await stream.drain()
        stream.close()
        await stream.wait_closed()
    except (BrokenPipeError, ConnectionResetError):
        return  # git ended without reading all: its status says why


async def _collect(
    stream: asyncio.StreamReader, bytes_max: int, *, keep_reading: bool = False
) -> bytes:
    kept = bytearray()
    while chunk := await stream.read(_CHUNK):
        kept += chunk[: max(0, bytes_max - len(kept))] if keep_reading else chunk
        if len(kept) > bytes_max:
            raise _TooMuchError
    return bytes(kept)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill what is left of the process group: git's transport helpers are children of git."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def directory_bytes(directory: Path) -> int:
    """Bytes of all files beneath a directory; entries that vanish meanwhile don't count."""
    total = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            try:
                total += Path(parent, name).lstat().st_size
            except FileNotFoundError:
                continue
    return total


def _printable(data: bytes) -> str:
    text = data.decode("utf-8", errors="replace")
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text).strip()


def _without(text: str, credential: Credential | None) -> str:
    return text if credential is None else text.replace(credential.secret, "[redacted]")


def remote_failure(command: str, result: GitResult) -> RemoteFailed:
    """Turn a failed remote command into an error; its kind is a hint for people, no verdict."""
    for kind, marks in _HINTS:
        if any(mark in result.stderr for mark in marks):
            return RemoteFailed(command, kind, result.stderr)
    return RemoteFailed(command, "unknown", result.stderr)


def prepare_git(settings: GitSettings) -> None:
    """Write askpass, empty HOME and configuration into `settings.private`. May be repeated.

    Raises PermissionError if the directory belongs to somebody else or others may enter it.
    """
    settings.private.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = settings.private.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise PermissionError(f"{settings.private} isn't a private directory of this user")
    settings.home.mkdir(mode=0o500, exist_ok=True)
    places = settings.places(settings.home, settings.home)
    _write_once(places.askpass, gitenv.ASKPASS_SCRIPT, 0o500)
    _write_once(places.global_config, "# Nothing: settings travel on the command line.\n", 0o400)


def _write_once(path: Path, text: str, mode: int) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


async def resolve_ref(git: Git, ref: str) -> CommitId | None:
    """The commit that a full ref name points at, or None if there is no such ref."""
    result = await git.run("rev-parse", "--verify", "--quiet", "--end-of-options", ref)
    text = result.stdout.decode("ascii", errors="replace").strip()
    if result.exit_code == 0 and is_git_id(text):
        return CommitId(text)
    if result.exit_code == 1:
        return None
    raise GitFailed("rev-parse", result.exit_code, result.stderr)
