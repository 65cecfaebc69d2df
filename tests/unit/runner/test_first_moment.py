"""Both programs hear SIGTERM before they load what takes seconds (main's handlers come later)."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TERM_BIT = 1 << (signal.SIGTERM - 1)


def hears(pid: int) -> bool:
    """Whether a process has a handler for SIGTERM (proc_pid_status(5), SigCgt)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (caught,) = [line.split()[1] for line in lines if line.startswith("SigCgt:")]
    return bool(int(caught, 16) & TERM_BIT)


@pytest.mark.parametrize("program", ["upgraderun_operator", "upgraderun_runner"])
def test_a_pod_deleted_while_it_starts_ends_at_once(program: str) -> None:
    """Without arguments and settings either ends by itself, with another code, if it isn't told."""
    with subprocess.Popen(
        [sys.executable, "-I", "-m", program],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"]},
    ) as process:
        while not hears(process.pid):
            assert process.poll() is None, "it ended before it had a handler"
        loaded = Path(f"/proc/{process.pid}/maps").read_text()
        process.send_signal(signal.SIGTERM)

        assert 128 + signal.SIGTERM == process.wait(30)
    assert "_ssl" not in loaded
