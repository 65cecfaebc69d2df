"""Running fixture servers and one repository for the contract tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.fixtures.launch import Host, Registry, host_in_process, registry_in_process
from support.shop import Clone, open_shop


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with host_in_process(tmp_path / "host") as running:
        yield running


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with registry_in_process(tmp_path / "registry") as running:
        yield running


@pytest.fixture
def clone(host: Host, tmp_path: Path) -> Clone:
    return open_shop(host, tmp_path / "clone")


@pytest.fixture
def pushed(clone: Clone) -> str:
    """A commit of ours on our branch."""
    commit = clone.commit()
    assert clone.push_create_only(commit).code == 0
    return commit
