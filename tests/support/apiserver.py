"""The `api_server` fixture: one real API server per test session, on free ports of loopback.

Callers: `tests/api/conftest.py` and other suites that need an API server but no nodes. Nothing but
the API server acts there: no default service accounts, no garbage collection, deleted namespaces
stay; a test that needs those starts its own with `Options(controllers=True)`.
"""

from collections.abc import Iterator

import pytest

from clusterlib.apiserver import ApiServer, Options, start_api_server


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server of this session's own; every test makes its own namespace in it."""
    server = start_api_server(tmp_path_factory.mktemp("api"), Options(fsync=False))
    yield server
    server.stop()
