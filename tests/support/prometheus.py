"""A real Prometheus that scrapes operator processes and evaluates the chart's own alert rules.

Callers: tests of whole runs. Scrapes and rules run each second; the rules file is the shipped one.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from clusterlib.host import TEST_PACKAGES, ensure_packages
from support.operators import OperatorProcess, free_port
from support.ordinary_user import ROOT
from support.platform import until

RULES: Final = ROOT / "charts" / "upgraderun-operator" / "rules" / "upgraderun.rules.yaml"
JOB: Final = "upgraderun-operator"
EVERY: Final = "1s"
STOP_SECONDS: Final = 20


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A running server at `url`; `log` has what it wrote."""

    url: str
    log: Path
    process: asyncio.subprocess.Process
    client: httpx.AsyncClient

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let no scrape happen meanwhile."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    async def query(self, expression: str) -> dict[str, float]:
        """Evaluate an instant vector now; values by the label `instance`, "" where it has none."""
        result = (await self._get("query", query=expression))["result"]
        return {row["metric"].get("instance", ""): float(row["value"][1]) for row in result}

    async def firing(self, alert: str) -> list[dict[str, str]]:
        """Labels of the alerts of that name that fire now."""
        alerts = (await self._get("alerts"))["alerts"]
        rows = [row for row in alerts if row["labels"]["alertname"] == alert]
        return [row["labels"] for row in rows if row["state"] == "firing"]

    async def fires(self, alert: str, **labels: str) -> None:
        """Wait until an alert with these labels fires."""

        async def seen() -> bool:
            return any(labels.items() <= row.items() for row in await self.firing(alert))

        await until(seen, f"{alert} {labels} fires", seconds=60)

    async def has_scraped(self, operator: OperatorProcess) -> None:
        """Wait until a replica was scraped with success."""
        wanted = instance_of(operator)

        async def seen() -> bool:
            return (await self.query(f'up{{job="{JOB}"}}')).get(wanted) == 1.0

        await until(seen, f"{wanted} is scraped", seconds=60)

    async def _get(self, what: str, **query: str) -> dict[str, Any]:
        answer = await self.client.get(f"{self.url}/api/v1/{what}", params=query)
        body = answer.json()
        assert "success" == body["status"], body
        return dict(body["data"])


def instance_of(operator: OperatorProcess) -> str:
    """The label `instance` of a replica's series."""
    return f"127.0.0.1:{operator.metrics_port}"


@contextlib.asynccontextmanager
async def prometheus_of(
    folder: Path, operators: Sequence[OperatorProcess]
) -> AsyncIterator[Prometheus]:
    """Start a server that scrapes these replicas; it ends with the block."""
    ensure_packages(TEST_PACKAGES)
    log, port = folder / "prometheus.log", free_port()
    argv = [
        "prometheus",
        f"--config.file={_write_config(folder, operators)}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *argv, stdout=output, stderr=output, start_new_session=True, env={"PATH": os.defpath}
        )
    async with httpx.AsyncClient(trust_env=False, timeout=30.0) as client:
        server = Prometheus(f"http://127.0.0.1:{port}", log, process, client)
        try:
            await until(partial(_ready, server), "Prometheus is ready", seconds=60)
            yield server
        finally:
            await _stop(process)


def _write_config(folder: Path, operators: Sequence[OperatorProcess]) -> Path:
    targets = [instance_of(operator) for operator in operators]
    config = {
        "global": {"scrape_interval": EVERY, "scrape_timeout": EVERY, "evaluation_interval": EVERY},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": JOB, "static_configs": [{"targets": targets}]}],
    }
    file = folder / "prometheus.yaml"
    folder.mkdir(parents=True)
    file.write_text(yaml.safe_dump(config))
    return file


async def _ready(server: Prometheus) -> bool:
    assert server.process.returncode is None, server.log.read_text()
    try:
        return (await server.client.get(f"{server.url}/-/ready")).status_code == 200
    except httpx.TransportError:
        return False


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
