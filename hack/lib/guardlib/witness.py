"""A pytest plugin: writes down how each test ended, and which files of the product it was that ran.

Caller: `guardlib.trial`, which loads it into the pytest of a copy by `-p guardlib.witness`. It tells an
assertion of a test from everything else that may go wrong in a tree that was edited.
"""

import json
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

PASSED = "passed"
ASSERTED = "asserted"
"""The test itself said that something doesn't hold."""
TIMED_OUT = "timed out"
RAISED = "raised"
"""Something else came out of it: an error of the program, of a fixture, of an import."""

_PRODUCT = ("upgraderun_protocol", "upgraderun_operator", "upgraderun_runner")
_WORDS_MAX = 200


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the notes go."""
    parser.addoption("--guard-notes", type=Path, required=True, help="a file of JSON lines")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note how a test ended."""
    report = yield
    if report.failed or (report.when == "call" and report.passed):
        kind, words = _ending(item, call)
        _note(item.config, {"test": item.nodeid, "kind": kind, "words": words[:_WORDS_MAX]})
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Note whose modules were loaded."""
    ours = (
        module for name, module in sorted(sys.modules.items()) if name.partition(".")[0] in _PRODUCT
    )
    files = [str(Path(module.__file__).resolve()) for module in ours if module.__file__]
    _note(session.config, {"loaded": files})


def _ending(item: pytest.Item, call: pytest.CallInfo[None]) -> tuple[str, str]:
    if call.excinfo is None:
        return PASSED, ""
    words = call.excinfo.exconly(tryshort=True)
    if call.excinfo.errisinstance(pytest.fail.Exception):
        return (TIMED_OUT if "pytest-timeout" in words else ASSERTED), words
    inside = Path(call.excinfo.traceback[-1].path).resolve()
    tests = (item.config.rootpath / "tests").resolve()
    if call.excinfo.errisinstance(AssertionError) and inside.is_relative_to(tests):
        return ASSERTED, words
    return RAISED, words


def _note(config: pytest.Config, line: dict[str, Any]) -> None:
    with config.getoption("--guard-notes").open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(line) + "\n")
