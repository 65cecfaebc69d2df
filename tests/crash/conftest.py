"""What the kill tests share: an installed runner, servers outside, an API server, folders."""

import tempfile
from pathlib import Path

import pytest

from support.apiserver import api_server as api_server  # noqa: PLC0414  a fixture, made visible
from support.ordinary_user import fault_hook
from support.wholeruns import folder as folder  # noqa: PLC0414  as above
from support.wholeruns import outside as outside  # noqa: PLC0414  as above
from support.wholeruns import runner as runner  # noqa: PLC0414  as above


@pytest.fixture(scope="session")
def hook(folder: Path) -> Path:
    """A folder with the fault hook."""
    return fault_hook(folder / "hook")


@pytest.fixture
def place(folder: Path) -> Path:
    """A folder of one test, open to the ordinary user."""
    made = Path(tempfile.mkdtemp(dir=folder))
    made.chmod(0o755)
    return made
