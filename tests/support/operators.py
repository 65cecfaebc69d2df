"""Operator processes on this machine, against a real API server: start, ask, kill, pause, wake."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import httpx

READY_SECONDS: Final = 120
STOP_SECONDS: Final = 30


def free_port() -> int:
    """Find a port of loopback that nobody has now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(slots=True)
class OperatorProcess:
    """One replica. `artifacts` is the folder that all replicas share.

    `variables` are added to its environment, such as UPGRADERUN_FAULT or a smaller soft bound.
    `hook` is a folder with the fault hook; without it the process has none, like a release image.
    """

    identity: str
    kubeconfig: Path
    namespace: str
    artifacts: Path
    logs: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    hook: Path | None = None
    api_port: int = field(default_factory=free_port)
    metrics_port: int = field(default_factory=free_port)
    process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        """Where runners reach this replica."""
        return f"https://localhost:{self.api_port}"

    @property
    def log(self) -> Path:
        """Everything that the process wrote, over all its starts."""
        return self.logs / f"operator-{self.identity}.log"

    async def start(self) -> None:
        """Start it and wait until it says that it is ready."""
        self.logs.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *self._command(),
                stdout=log,
                stderr=log,
                env=self._environment(),
                start_new_session=True,
            )
        await self._until_ready()

    async def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End the process by a signal and wait for its end."""
        self.signal(number)
        await self.ended()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal: SIGSTOP pauses it past its lease, SIGCONT wakes it."""
        if self.process is not None and self.process.returncode is None:
            os.killpg(self.process.pid, number)

    async def ended(self) -> int:
        """Wait for the end of the process, whoever causes it, and return its code."""
        assert self.process is not None, "the operator was never started"
        return await self.process.wait()

    async def stop(self) -> None:
        """End it as a rollout does: SIGTERM, and SIGKILL if it doesn't follow."""
        if self.process is None or self.process.returncode is not None:
            return
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self.ended()
        except TimeoutError:
            await self.kill()
            raise AssertionError(f"SIGTERM was not followed; see {self.log}") from None

    async def metrics(self) -> str:
        """Scrape it once."""
        async with httpx.AsyncClient(trust_env=False) as client:
            return (await client.get(f"http://127.0.0.1:{self.metrics_port}/metrics")).text

    async def _until_ready(self) -> None:
        assert self.process is not None
        address = f"http://127.0.0.1:{self.metrics_port}/readyz"
        async with asyncio.timeout(READY_SECONDS), httpx.AsyncClient(trust_env=False) as client:
            while True:
                if self.process.returncode is not None:
                    raise AssertionError(f"the operator ended at start:\n{self.tail()}")
                try:
                    if (await client.get(address)).status_code == 200:
                        return
                except httpx.TransportError:
                    pass
                # Readiness has no event to wait for from outside; each try is a real request.
                await asyncio.sleep(0.05)

    def tail(self, lines: int = 40) -> str:
        """Last lines of its log, for a failing test's message."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _command(self) -> tuple[str, ...]:
        """An isolated interpreter; the hook's folder is no part of its installation."""
        if self.hook is None:
            return (sys.executable, "-I", "-m", "upgraderun_operator")
        start = "import runpy, sys; sys.path.append(sys.argv.pop()); "
        start += "runpy.run_module('upgraderun_operator', run_name='__main__', alter_sys=True)"
        return (sys.executable, "-I", "-c", start, str(self.hook))

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "UPGRADERUN_NAMESPACE": self.namespace,
            "UPGRADERUN_IDENTITY": self.identity,
            "UPGRADERUN_KUBECONFIG": str(self.kubeconfig),
            "UPGRADERUN_ARTIFACTS": str(self.artifacts),
            "UPGRADERUN_API_HOST": "127.0.0.1",
            "UPGRADERUN_API_PORT": str(self.api_port),
            "UPGRADERUN_METRICS_PORT": str(self.metrics_port),
            "UPGRADERUN_OPERATOR_URL": self.url,
            "UPGRADERUN_TLS_NAMES": "localhost",
            "UPGRADERUN_ALLOW_INLINE": "true",
            **self.variables,
        }


@contextlib.asynccontextmanager
async def restarted_with(operator: OperatorProcess, **variables: str) -> AsyncIterator[None]:
    """Run a replica with further variables for a while, then as before."""
    before = operator.variables
    await operator.stop()
    operator.variables = {**before, **variables}
    try:
        await operator.start()
        yield
    finally:
        await operator.stop()
        operator.variables = before
        await operator.start()
