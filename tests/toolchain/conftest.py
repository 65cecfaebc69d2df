"""One registry per module, one bench per test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from support.fixtures.launch import Registry, registry_in_process
from support.pythonbench import Bench, open_bench
from support.realwheels import shelve


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with registry_in_process(tmp_path_factory.mktemp("registry")) as running:
        shelve(running.control)
        yield running


@pytest_asyncio.fixture
async def bench(registry: Registry, tmp_path: Path) -> Bench:
    registry.control.clear_faults()
    registry.control.refuse_connections(False)
    return await open_bench(tmp_path, registry)
