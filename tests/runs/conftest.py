"""Whole runs: a real API server, operator processes, pods as processes, real git and uv.

How each cell of the scenario table ended is kept in the checkout for `make scenarios`.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from support.apiserver import api_server as api_server  # noqa: PLC0414  a fixture, made visible
from support.scenarios.results import record
from support.wholeruns import folder as folder  # noqa: PLC0414  the same
from support.wholeruns import kube as kube  # noqa: PLC0414  the same
from support.wholeruns import outside as outside  # noqa: PLC0414  the same
from support.wholeruns import platform as platform  # noqa: PLC0414  the same
from support.wholeruns import runner as runner  # noqa: PLC0414  the same


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Keep the result of a cell."""
    outcome: Any = yield
    cell = getattr(item, "callspec", None)
    if call.when == "call" and cell is not None and {"row", "cell"} <= cell.params.keys():
        passed = outcome.get_result().passed
        record(cell.params["row"], cell.params["cell"], passed=passed)
