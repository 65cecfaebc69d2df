"""The Inline driver: commands are child processes of the runner (DESIGN §3, `sandbox.type: Inline`).

Callers: `main` makes it, steps use it through `StepCommands`. It isolates `execute` from the network
where the kernel allows that and says so; it can't keep a command from reading what the runner's user
may read, which is why the proposal tells it. Prohibitions: no shell, no inherited environment.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from upgraderun_runner.sandbox.commands import Command, CommandResult, Profile
from upgraderun_runner.sandbox.driver import Isolation

_HELPER = (sys.executable, "-I", "-S", str(Path(__file__).resolve().parent / "netns_exec.py"))
"""Without the site packages, which it doesn't need: that halves its start."""
_CHUNK = 64 * 1024
_GRACE_SECONDS = 5.0
"""How long the helper may take to end descendants before the whole group is killed."""
_DRAIN_SECONDS = 5.0
"""How long a pipe that an escaped process keeps open is read after the command ended."""


class _Stream:
    """Collects one stream up to its bound; what is beyond is read and dropped.

    A pipe of our own, because asyncio's `Process.wait` waits for the pipes that it made itself: a
    daemon that keeps one open would hold up the whole command.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self.truncated = False
        self._read_end, self.write_end = os.pipe()

    async def drain(self) -> None:
        """Read to the end. The write end must be closed here once the child has it."""
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(self._read_end, "rb", 0)
        )
        try:
            await self._collect(reader)
        finally:
            transport.close()

    async def _collect(self, reader: asyncio.StreamReader) -> None:
        while chunk := await reader.read(_CHUNK):
            room = self._limit - self._size
            if len(chunk) > room:
                self.truncated = True
            if room > 0:
                self._parts.append(chunk[:room])
                self._size += min(room, len(chunk))

    @property
    def data(self) -> bytes:
        return b"".join(self._parts)


class InlineSandbox:
    """Runs commands as process groups. Make it with `start`, which finds out what isolates."""

    def __init__(self, isolation: Isolation, monotonic: Callable[[], float]) -> None:
        self._isolation = isolation
        self._monotonic = monotonic

    @classmethod
    async def start(cls, monotonic: Callable[[], float]) -> "InlineSandbox":
        """Ask the kernel once whether a user and network namespace can be made."""
        probe = await asyncio.create_subprocess_exec(
            *_HELPER, "--probe", env={}, stdin=asyncio.subprocess.DEVNULL
        )
        works = await probe.wait() == 0
        return cls(Isolation.NETWORK_NAMESPACE if works else Isolation.NONE, monotonic)

    @property
    def isolation(self) -> Isolation:
        """What separates `execute` from the network."""
        return self._isolation

    async def run(self, command_id: str, command: Command) -> CommandResult:  # noqa: ARG002 - pods are named by it; a child process needs no name
        """Run to the end, the timeout or a kill; a program that can't start is exit status 127."""
        begun = self._monotonic()
        out, err = _Stream(command.stdout_limit), _Stream(command.stdout_limit)
        readers = asyncio.gather(out.drain(), err.drain())
        try:
            process = await asyncio.create_subprocess_exec(
                *self._argv(command),
                cwd=command.workdir,
                env=dict(command.env),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out.write_end,
                stderr=err.write_end,
                start_new_session=True,
            )
        except (FileNotFoundError, PermissionError, NotADirectoryError) as error:
            _close(out, err)
            await readers
            return _not_started(error, self._elapsed(begun))
        _close(out, err)
        timed_out = await self._wait(process, command.timeout_seconds, readers)
        code = process.returncode
        if code is None:
            raise AssertionError("the process was waited for")
        exit_code = 128 - code if code < 0 else code
        return CommandResult(
            exit_code=exit_code,
            timed_out=timed_out,
            killed=not timed_out and exit_code == 128 + signal.SIGKILL,
            stdout=out.data,
            stderr=err.data,
            stdout_truncated=out.truncated,
            stderr_truncated=err.truncated,
            duration_ms=self._elapsed(begun),
        )

    def _argv(self, command: Command) -> tuple[str, ...]:
        if command.profile is not Profile.EXECUTE:
            return command.argv
        share = ("--share-network",) if self._isolation is Isolation.NONE else ()
        return (*_HELPER, *share, "--", *command.argv)

    async def _wait(
        self,
        process: asyncio.subprocess.Process,
        timeout_seconds: int,
        readers: asyncio.Future[tuple[None, None]],
    ) -> bool:
        timed_out = False
        try:
            await asyncio.wait_for(process.wait(), timeout_seconds)
        except TimeoutError:
            timed_out = True
            await _end(process)
        except asyncio.CancelledError:
            await _end(process)
            raise
        finally:
            _kill_group(process.pid)
            done, _ = await asyncio.wait({readers}, timeout=_DRAIN_SECONDS)
            if not done:
                readers.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await readers
        return timed_out

    def _elapsed(self, begun: float) -> int:
        return round((self._monotonic() - begun) * 1000)


def _close(*streams: _Stream) -> None:
    for stream in streams:
        os.close(stream.write_end)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ask the leader to end its descendants, then kill the whole group."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _GRACE_SECONDS)
    except TimeoutError:
        _kill_group(process.pid)
        await process.wait()


def _kill_group(leader: int) -> None:
    """End what is left of the group; the id can't be reused while a member lives."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _not_started(error: OSError, duration_ms: int) -> CommandResult:
    return CommandResult(
        exit_code=127,
        timed_out=False,
        killed=False,
        stdout=b"",
        stderr=str(error).encode(),
        stdout_truncated=False,
        stderr_truncated=False,
        duration_ms=duration_ms,
    )
