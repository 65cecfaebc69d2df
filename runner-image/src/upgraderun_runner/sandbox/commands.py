"""What a sandbox is asked to run, and what came back (security.md §3, upgrade-run.md §8.1).

Callers: `ecosystems` makes commands, the drivers of this package run them. Prohibitions: nothing here
runs anything; a command never names a shell, and its environment is complete (nothing is inherited).
"""

from dataclasses import dataclass
from enum import StrEnum

STREAM_BYTES_MAX = 4 * 1024 * 1024
"""Bound of each output stream of a command (upgrade-run.md §7.1)."""


class Profile(StrEnum):
    """What a command may reach: registries, the staged pair, nothing at all, a pinned tool."""

    ACQUIRE = "acquire"
    MUTATE = "mutate"
    EXECUTE = "execute"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Command:
    """One program with everything it may see. Paths are absolute and equal in every pod.

    `reads` and `writes` are the directories that a pod mounts; the Inline driver can't enforce them.
    """

    argv: tuple[str, ...]
    profile: Profile
    workdir: str
    env: tuple[tuple[str, str], ...]
    timeout_seconds: int
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    stdout_limit: int = STREAM_BYTES_MAX


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How one command ended. `exit_code` is 128 + signal for a process that a signal ended.

    `timed_out`: we ended it for its time limit. `killed`: somebody else did (SIGKILL, for example
    for memory). Either way it says nothing about the code under test (upgrade-run.md §7.2).
    """

    exit_code: int
    timed_out: bool
    killed: bool
    stdout: bytes
    stderr: bytes
    stdout_truncated: bool
    stderr_truncated: bool
    duration_ms: int

    @property
    def whole(self) -> bool:
        """Whether the command ended by itself and no output is missing."""
        return not (self.timed_out or self.killed or self.stdout_truncated or self.stderr_truncated)
