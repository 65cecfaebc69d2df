"""CPU time and memory of running processes, as `/proc` tells them; the bare programs as processes.

Callers: the programs in `hack/bench`.
"""

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from clusterlib import processes
from clusterlib.apiserver import ApiServer

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_LIBRARIES: Final = Path(__file__).resolve().parents[1]


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used since its start, user and system."""
    text = Path(f"/proc/{pid}/stat").read_text()
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def server_cpu(server: ApiServer) -> dict[str, float]:
    """CPU time of etcd and the API servers of an instance, by daemon."""
    return {each.name: cpu_seconds(each.pid) for each in processes.recorded(server.directory)}


def memory_mib(pid: int) -> tuple[float, float]:
    """Resident memory of a process now, and its highest since the start."""
    text = Path(f"/proc/{pid}/status").read_text()
    return _kib(text, "VmRSS") / 1024, _kib(text, "VmHWM") / 1024


def _kib(text: str, field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB$", text, re.MULTILINE)
    assert found is not None, f"the kernel tells no {field}"
    return int(found[1])


def bare_log(folder: Path, which: str) -> Path:
    """Everything that a bare program wrote since its last start."""
    return folder / f"bare-{which}.log"


@contextlib.asynccontextmanager
async def bare_process(
    which: str, kubeconfig: Path, namespace: str, folder: Path
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run one of the programs of `benchlib.bare` until the context ends; see `bare_log`."""
    argv = [sys.executable, "-m", "benchlib.bare", which, str(kubeconfig), namespace]
    environment = {**os.environ, "PYTHONPATH": str(_LIBRARIES)}
    with bare_log(folder, which).open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *argv, stdout=log, stderr=log, env=environment
        )
    try:
        yield process
        assert process.returncode is None, f"the bare {which} ended by itself"
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
