"""Servers and an installed runner for tests of whole runs; both are made once a session.

Folders lie outside pytest's own: each pytest session makes that one private, also while another
session's processes of an ordinary user work in it.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.ordinary_user import RunnerEnvironment, runner_environment
from support.worlds import Outside, open_outside


@pytest.fixture(scope="session")
def open_root() -> Iterator[Path]:
    """A folder that every user may enter."""
    with tempfile.TemporaryDirectory(prefix="upgraderun-tests-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def folder(open_root: Path) -> Path:
    """A folder of one test."""
    made = Path(tempfile.mkdtemp(dir=open_root))
    made.chmod(0o755)
    return made


@pytest.fixture(scope="session")
def runner(open_root: Path) -> RunnerEnvironment:
    return runner_environment(open_root / "runner", faults=True)


@pytest.fixture(scope="session")
def outside(open_root: Path) -> Iterator[Outside]:
    (open_root / "outside").mkdir()
    with open_outside(open_root / "outside") as servers:
        yield servers
