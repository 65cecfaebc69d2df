"""The machine of a simulated world: time that jumps, threads that don't run beside, doubled programs.

An event loop with no I/O at all. When nothing can run, the clock goes to the next timer at once. A
call into a thread runs in place. A process that is started is a function of its arguments. Callers:
`support.sim.world` and the contract tests of the doubles.
"""

import asyncio
import concurrent.futures
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

EPOCH = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
NO_PROCESS = 2**30
"""A process id that no kernel gives: a signal to it finds nothing."""


@dataclass(frozen=True, slots=True)
class Started:
    """A program as it was started."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    stdin: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended."""

    code: int
    stdout: bytes = b""
    stderr: bytes = b""


Runs = Callable[[Started], Ended]


class Stuck(RuntimeError):  # noqa: N818 - says what became of the world
    """Nothing can ever happen again: every task waits for another one."""


class Killed(BaseException):
    """Unwinds the coroutine in which a program was killed. Everything it still does is refused."""


@dataclass(eq=False, slots=True)
class Program:
    """One process of the world: its tasks die together, and then nothing of it has an effect."""

    name: str
    dead: bool = False
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def check(self) -> None:
        """Refuse an effect of what was killed."""
        if self.dead:
            raise Killed(self.name)

    def kill(self) -> None:
        """End it: no handler, no `finally` of it reaches the world any more."""
        self.dead = True
        self.ended.set()
        for task in tuple(self.tasks):
            task.cancel()


PROGRAM: ContextVar[Program | None] = ContextVar("PROGRAM", default=None)


def check_alive() -> None:
    """Refuse what a killed program still tries; whoever belongs to no program passes."""
    program = PROGRAM.get()
    if program is not None:
        program.check()


class SimLoop(asyncio.BaseEventLoop):
    """`runs` is what a started process does."""

    def __init__(self, runs: Runs | None = None) -> None:
        super().__init__()
        self._moment = 0.0
        self._selector = _Jump(self)
        self.runs = runs
        self.set_task_factory(_task)

    def time(self) -> float:
        """Virtual seconds."""
        return self._moment

    def now(self) -> datetime:
        """The wall clock of this world."""
        return EPOCH + timedelta(seconds=self._moment)

    def jump(self, seconds: float) -> None:
        """Let time pass at once."""
        self._moment += seconds

    def run_in_executor(  # type: ignore[override]  # a thread's work is done in place
        self,
        executor: concurrent.futures.Executor | None,
        func: Callable[..., Any],
        *args: Any,
    ) -> "asyncio.Future[Any]":
        """Do it now: in this world no thread runs beside the loop."""
        future: asyncio.Future[Any] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - handed on, as an executor does
            future.set_exception(error)
        return future

    async def subprocess_exec(  # type: ignore[override]  # the options of pipes don't matter here
        self, protocol_factory: Callable[[], asyncio.SubprocessProtocol], *argv: Any, **options: Any
    ) -> tuple[asyncio.SubprocessTransport, asyncio.SubprocessProtocol]:
        """Start a double; it runs once its standard input is closed."""
        check_alive()
        protocol = protocol_factory()
        transport = _Process(self, protocol, tuple(map(str, argv)), options)
        protocol.connection_made(transport)
        return transport, protocol

    def _process_events(self, _events: list[Any]) -> None:
        """Nothing comes from outside."""

    def _write_to_self(self) -> None:
        """Nothing has to be woken."""


def _task(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
    """Make a task that belongs to the program that started it."""
    task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, **options)
    context = options.get("context")
    program = context.get(PROGRAM) if context is not None else PROGRAM.get()
    if program is not None:
        program.tasks.add(task)
        task.add_done_callback(program.tasks.discard)
    return task


class _Jump:
    """What the loop asks for events: there are none, so time goes to the next timer."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Stuck("every task waits for another one")
        if timeout > 0:
            self._loop.jump(timeout)
        return []

    def close(self) -> None:
        """There is nothing to close."""


class _Process(asyncio.SubprocessTransport):
    """One double of a process, with pipes."""

    def __init__(
        self,
        loop: SimLoop,
        protocol: asyncio.SubprocessProtocol,
        argv: tuple[str, ...],
        options: Mapping[str, Any],
    ) -> None:
        super().__init__()
        self._loop = loop
        self._protocol = protocol
        self._argv = argv
        self._options = options
        self._code: int | None = None
        self._exited: asyncio.Future[int] = loop.create_future()
        self._stdin = _Stdin(self.run)

    def run(self, stdin: bytes) -> None:
        """Be that program: its effects are done, then its output comes."""
        assert self._loop.runs is not None, f"no program {self._argv[0]} in this world"
        env, cwd = self._options.get("env") or {}, str(self._options.get("cwd") or "/")
        ended = self._loop.runs(Started(self._argv, env, cwd, stdin))
        self._loop.call_soon(self._end, ended)

    def _end(self, ended: Ended) -> None:
        self._protocol.pipe_connection_lost(0, None)
        for fd, data in ((1, ended.stdout), (2, ended.stderr)):
            if data:
                self._protocol.pipe_data_received(fd, data)
            self._protocol.pipe_connection_lost(fd, None)
        self._code = ended.code
        self._protocol.process_exited()
        if not self._exited.done():
            self._exited.set_result(ended.code)

    def get_pid(self) -> int:
        return NO_PROCESS

    def get_returncode(self) -> int | None:
        return self._code

    def get_pipe_transport(self, fd: int) -> asyncio.BaseTransport:
        return self._stdin if fd == 0 else _Reading()

    async def _wait(self) -> int:
        """Wait for its end; one that never ran was killed before it began."""
        return -9 if self._code is None and not self._stdin.closed else await self._exited

    def close(self) -> None:
        """It has ended."""


class _Reading(asyncio.ReadTransport):
    """The reading end of a pipe; nothing has to be held back."""

    def close(self) -> None:
        """It has ended."""


class _Stdin(asyncio.WriteTransport):
    """The writing end of a process's standard input."""

    def __init__(self, closed: Callable[[bytes], None]) -> None:
        super().__init__()
        self._closed = closed
        self._data = bytearray()
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._data += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._closed(bytes(self._data))
