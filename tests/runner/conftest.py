"""Servers and an installed runner for tests of whole runs; both are made once a session."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.ordinary_user import RunnerEnvironment, runner_environment
from support.worlds import Outside, open_outside


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> RunnerEnvironment:
    return runner_environment(tmp_path_factory.mktemp("runner"), faults=True)


@pytest.fixture(scope="session")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    folder: Path = tmp_path_factory.mktemp("outside")
    folder.chmod(0o755)
    with open_outside(folder) as servers:
        yield servers
