"""Outages and refusals of the registry, in every phase that asks it (upgrade-run.md §8.1, §15)."""

import re
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from support.fixtures.faults import Fault
from support.fixtures.packages import Package
from support.pythonbench import Bench, release
from support.toolchain import uv_binary
from upgraderun_runner.ecosystems.base import (
    AcquisitionFailed,
    AcquisitionRecord,
    RegistryUnreachable,
    Target,
)
from upgraderun_runner.ecosystems.python.uvsettings import KNOWN_KEYS

pytestmark = pytest.mark.slow

UPGRADE = Target("aa", "1.0.0", "1.0.1")
Phase = Callable[[Bench, Path, AcquisitionRecord], Awaitable[object]]


async def acquire(bench: Bench, tree: Path, _acquired: AcquisitionRecord) -> object:
    bench.cache.rename(bench.root / "away")
    return await bench.acquire(tree)


async def candidates(bench: Bench, tree: Path, acquired: AcquisitionRecord) -> object:
    return await bench.candidates(tree, acquired)


async def apply(bench: Bench, tree: Path, acquired: AcquisitionRecord) -> object:
    return await bench.apply(tree, acquired, UPGRADE)


async def normalize(bench: Bench, tree: Path, acquired: AcquisitionRecord) -> object:
    pair = bench.ecosystem.read_pair(tree, ".")
    manifest = pair.manifest.replace(b"aa>=1", b"aa>=1.0.1")
    return await bench.normalize(tree, type(pair)(manifest, pair.lock), acquired, UPGRADE)


async def ready(bench: Bench) -> tuple[Path, AcquisitionRecord]:
    bench.publish(Package("aa", (release("1.0.0"), release("1.0.1"))))
    tree = bench.snapshot(bench.manifest("aa>=1"), {}, "aa==1.0.0")
    return tree, await bench.acquire(tree)


@pytest.mark.parametrize("phase", [acquire, candidates, apply, normalize])
class TestEveryPhase:
    async def test_a_refused_connection_is_unreachable(self, bench: Bench, phase: Phase) -> None:
        tree, acquired = await ready(bench)
        bench.registry.control.refuse_connections(True)

        with pytest.raises(RegistryUnreachable) as caught:
            await phase(bench, tree, acquired)

        bench.registry.control.refuse_connections(False)
        assert bench.registry.url.endswith(caught.value.host)
        assert "unreachable" == caught.value.reason

    async def test_a_server_error_is_unreachable(self, bench: Bench, phase: Phase) -> None:
        tree, acquired = await ready(bench)
        bench.registry.control.add_fault(Fault("status", path="/demo/", status=503))

        with pytest.raises(RegistryUnreachable) as caught:
            await phase(bench, tree, acquired)

        assert "http_5xx" == caught.value.error_class

    async def test_a_denial_is_not_unreachable(self, bench: Bench, phase: Phase) -> None:
        tree, acquired = await ready(bench)
        bench.registry.control.add_fault(Fault("status", path="/demo/", status=403))

        with pytest.raises(AcquisitionFailed) as caught:
            await phase(bench, tree, acquired)

        assert "registry_denied" == caught.value.reason


def test_the_known_settings_are_those_of_the_real_uv(tmp_path: Path) -> None:
    """A key that uv doesn't know makes it drop all settings: the lists must agree."""
    text = '[project]\nname = "x"\nversion = "1"\nrequires-python = ">=3.11"\n[tool.uv]\nnone = 1\n'
    (tmp_path / "pyproject.toml").write_text(text)

    done = subprocess.run(
        [uv_binary(), "lock", "--offline"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "UV_CACHE_DIR": str(tmp_path / "c")},
        capture_output=True,
        text=True,
        check=False,
    )

    listed = done.stderr.partition("expected one of")[2].partition("\n")[0]
    assert KNOWN_KEYS == set(re.findall(r"`([\w-]+)`", listed))
