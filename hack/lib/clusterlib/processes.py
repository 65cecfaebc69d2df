"""Daemons: started, recorded with their start time, and ended only if the record still fits.

Callers: `apiserver`, `node` and `local`. A process that isn't in a record of ours is never
signalled; a pid that was given to another process since then is recognised by its start time.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from clusterlib.errors import ClusterError

STOP_SECONDS = 15.0
POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Daemon:
    """One process that this program started: its pid and the moment the kernel gave it."""

    name: str
    pid: int
    started: str


def start(
    name: str,
    argv: Sequence[str],
    home: Path,
    *,
    env: Mapping[str, str] | None = None,
    die_with_parent: bool = False,
) -> Daemon:
    """Start a daemon with its log in `home/log` and its record in `home/run`.

    With `die_with_parent` the kernel kills it when the starting thread ends, so that an aborted
    test run leaves nothing behind.
    """
    log = log_path(home, name)
    log.parent.mkdir(parents=True, exist_ok=True)
    prefix = ["setpriv", "--pdeathsig", "KILL", "--"] if die_with_parent else []
    with log.open("ab") as output:
        child = subprocess.Popen(
            [*prefix, *argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **(env or {})},
            cwd=home,
        )
    daemon = Daemon(name, child.pid, _start_time(child.pid) or "")
    child.returncode = 0  # it outlives this program on purpose: no warning about that
    record = _record_path(home, name)
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps(asdict(daemon)))
    return daemon


def recorded(home: Path) -> list[Daemon]:
    """All daemons with a record in this folder, alive or not."""
    return [
        Daemon(**json.loads(path.read_text())) for path in sorted((home / "run").glob("*.json"))
    ]


def is_alive(daemon: Daemon) -> bool:
    """Whether that very process still runs; a zombie doesn't."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(daemon.pid, os.WNOHANG)
    return bool(daemon.started) and _start_time(daemon.pid) == daemon.started


def stop(home: Path, daemon: Daemon, *, seconds: float = STOP_SECONDS) -> None:
    """End a daemon, by force after `seconds`, and forget its record. Harmless when it is gone."""
    for number, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, STOP_SECONDS)):
        if not is_alive(daemon):
            break
        with contextlib.suppress(ProcessLookupError):
            os.kill(daemon.pid, number)
            os.kill(daemon.pid, signal.SIGCONT)  # a stopped process takes no other signal
        wait_until(lambda: not is_alive(daemon), patience)
    if is_alive(daemon):
        raise ClusterError(
            f"{daemon.name} (pid {daemon.pid}) doesn't end; end it by hand and try again"
        )
    _record_path(home, daemon.name).unlink(missing_ok=True)


def wait_until(holds: Callable[[], bool], seconds: float) -> bool:
    """Poll a cheap predicate until it holds or the time is over; say which."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def log_path(home: Path, name: str) -> Path:
    """File with everything that a daemon printed."""
    return home / "log" / f"{name}.log"


def log_tail(home: Path, name: str, lines: int = 15) -> str:
    """Last lines of a daemon's log, for error messages."""
    path = log_path(home, name)
    if not path.exists():
        return ""
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])


def _record_path(home: Path, name: str) -> Path:
    return home / "run" / f"{name}.json"


def _start_time(pid: int) -> str | None:
    """Boot and clock tick of the process's start; nothing for a dead process or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    if fields[0] in "ZX":
        return None
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}:{fields[19]}"
