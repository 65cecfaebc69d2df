"""Tests here run pods on a real cluster."""

import pytest

from support.cluster import cluster as cluster  # noqa: PLC0414  a fixture, made visible
from support.inpods import images as images  # noqa: PLC0414  the same
from support.inpods import operator as operator  # noqa: PLC0414  the same
from support.inpods import outside as outside  # noqa: PLC0414  the same
from support.inpods import platform as platform  # noqa: PLC0414  the same


@pytest.fixture(scope="session")
def scenes() -> tuple[str, ...]:
    """Repositories of these tests."""
    return (
        *("patch-safe", "breaking-minor", "baseline-failing"),
        *("undisturbed", "runner-killed", "operator-killed", "publisher-killed"),
        *("other-replica", "leader-killed"),
    )
