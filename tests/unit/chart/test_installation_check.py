"""What `helm test` runs: the shipped script against the operator's own probes, behind real TLS."""

import asyncio
import contextlib
import ssl
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from support.certificates import make_authority
from support.chart import CHART, render
from support.operators import free_port
from upgraderun_operator.api.probes import probe_app
from upgraderun_operator.api.serving import Site
from upgraderun_operator.metrics import Metrics

SCRIPT = CHART / "files" / "installation_check.py"
HOST = "127.0.0.1"


@dataclass
class Installation:
    """One replica's probes, and a server behind TLS that knows no path but theirs."""

    metrics: int
    api: int
    authority: Path
    state: Metrics = field(default_factory=Metrics)
    is_ready: bool = True
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    def app(self) -> web.Application:
        return probe_app(self.state.render, self.answer)

    def answer(self) -> bool:
        self.asked.set()
        return self.is_ready

    async def check(self, *further: str, seconds: float = 0.0) -> tuple[int, str]:
        """Run the script as the test pod does; exit code and what it says."""
        flags = {
            "--api": f"https://{HOST}:{self.api}",
            "--ca": str(self.authority),
            "--metrics": f"{HOST}:{self.metrics}",
            "--seconds": str(seconds),
        }
        script = SCRIPT.read_text(encoding="utf-8")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-c", script),
            *(f"{name}={value}" for name, value in flags.items()),
            *further,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, said.decode()


@pytest.fixture
async def installation(tmp_path: Path) -> AsyncIterator[Installation]:
    authority = make_authority(tmp_path / "ca")
    pair = authority.issue(HOST)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.certificate, pair.key)
    made = Installation(free_port(), free_port(), authority.bundle)
    made.state.leader.set(1)
    async with contextlib.AsyncExitStack() as stack:
        for port, context in ((made.metrics, None), (made.api, tls)):
            site = Site(made.app(), HOST, port)
            await site.open(context)
            stack.push_async_callback(site.close)
        yield made


async def test_a_good_installation_passes_and_says_what_was_seen(
    installation: Installation,
) -> None:
    code, said = await installation.check()

    assert (0, True) == (code, "1 replicas are ready" in said)


async def test_a_replica_that_is_not_ready_fails_it(installation: Installation) -> None:
    installation.is_ready = False

    code, said = await installation.check()

    assert (1, True) == (code, "says 503 on /readyz" in said)


async def test_it_waits_for_what_is_not_there_yet(installation: Installation) -> None:
    installation.is_ready = False

    checking = asyncio.create_task(installation.check(seconds=60.0))
    await installation.asked.wait()
    installation.is_ready = True

    assert 0 == (await checking)[0]


async def test_no_leader_fails_it(installation: Installation) -> None:
    installation.state.leader.set(0)

    code, said = await installation.check()

    assert (1, True) == (code, "0 of 1 replicas lead" in said)


async def test_another_authority_fails_it(installation: Installation, tmp_path: Path) -> None:
    stranger = make_authority(tmp_path / "other").bundle

    code, said = await installation.check(f"--ca={stranger}")

    assert 1 == code
    assert "certificate verify failed" in said


async def test_nobody_there_fails_it(installation: Installation) -> None:
    code, said = await installation.check(f"--metrics={HOST}:{free_port()}")

    assert (1, True) == (code, "doesn't answer" in said)


def test_the_test_pod_runs_this_script_against_the_services_of_the_release() -> None:
    objects = {(obj["kind"], obj["metadata"]["name"]): obj for obj in render()}
    pod = objects[("Pod", "upgraderun-operator-test")]
    way = objects[("NetworkPolicy", "upgraderun-operator-test")]
    (container,) = pod["spec"]["containers"]
    script, *flags = container["args"]
    services = {name for kind, name in objects if kind == "Service"}

    assert SCRIPT.read_text(encoding="utf-8") == script
    assert {"https://upgraderun-operator", "upgraderun-operator-metrics"} == {
        flag.partition("=")[2].partition(".")[0] for flag in flags if ".svc:" in flag
    }
    assert {"upgraderun-operator", "upgraderun-operator-metrics"} <= services
    assert "test" == pod["metadata"]["annotations"]["helm.sh/hook"]
    assert not [label for label in pod["metadata"]["labels"] if label.startswith("upgraderun.dev/")]
    (source,) = way["spec"]["ingress"][0]["from"]
    assert source["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert {8443, 8080} == {port["port"] for port in way["spec"]["ingress"][0]["ports"]}
