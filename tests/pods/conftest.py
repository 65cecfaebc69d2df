"""More whole runs in pods than each change can wait for: `make test-pods`, docs/reliability.md."""

import pytest

from support.cluster import cluster as cluster  # noqa: PLC0414  a fixture, made visible
from support.inpods import images as images  # noqa: PLC0414  the same
from support.inpods import operator as operator  # noqa: PLC0414  the same
from support.inpods import outside as outside  # noqa: PLC0414  the same
from support.inpods import platform as platform  # noqa: PLC0414  the same
from support.podscenes import SCENES


@pytest.fixture(scope="session")
def scenes() -> tuple[str, ...]:
    """Repositories of these tests."""
    return SCENES
