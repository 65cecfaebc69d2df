"""pytest plug-in: writes collected ids, one final outcome per id and a trailer as JSON lines.

Loaded by `PYTHONPATH=<this folder> python -m pytest -p ur_report` inside sandboxes, with pytest 7 to 9,
with or without xdist (uv-facts §5). `UR_REPORT` names the file. `UR_ONLY` may name a JSON list of ids:
then only these run. Standard library and pytest only; it never changes an outcome.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

DETAIL_MAX = 500
RANK = ("passed", "skipped", "xfailed", "xpassed", "failed", "error")


class Report:
    """The report file: opened anew for each batch, so that a crash leaves whole lines."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def write(self, *records: dict[str, object]) -> None:
        """Append records; names that aren't ASCII are escaped."""
        with self.path.open("a", encoding="ascii") as file:
            file.writelines(json.dumps(record, ensure_ascii=True) + "\n" for record in records)


class Selection:
    """Runs only the ids of a list; in xdist it works in each worker."""

    def __init__(self, path: str) -> None:
        self.ids = set(json.loads(Path(path).read_text(encoding="utf-8")))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Drop the others, telling pytest so."""
        dropped = [item for item in items if item.nodeid not in self.ids]
        if dropped:
            items[:] = [item for item in items if item.nodeid in self.ids]
            config.hook.pytest_deselected(items=dropped)


class Recorder:
    """Collects what happens and writes it when the session ends."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.ids: dict[str, bool] = {}
        self.outcomes: dict[str, tuple[str, str]] = {}
        self.final: set[str] = set()
        self.broken: dict[str, str] = {}

    def collected(self, ids: Iterable[str]) -> None:
        """Remember ids in their order."""
        self.ids.update(dict.fromkeys(ids, True))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """See the items of a session without workers."""
        self.collected(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """See the items of a worker: the controller has none."""
        self.collected(ids)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """See what can't be collected."""
        if report.failed:
            self.broken[report.nodeid] = message(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the worst outcome of an id; a rerun starts it anew (uv-facts §5)."""
        node_id = report.nodeid
        if str(report.outcome) == "rerun":
            self.outcomes.pop(node_id, None)
            self.final.discard(node_id)
            return
        outcome = outcome_of(report)
        known = self.outcomes.get(node_id)
        if outcome and (known is None or RANK.index(outcome) > RANK.index(known[0])):
            self.outcomes[node_id] = (outcome, message(report))
        if report.when not in ("setup", "call"):
            self.final.add(node_id)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Write everything after the other plug-ins set the exit status."""
        yield
        finished = {i: self.outcomes[i] for i in self.outcomes if i in self.final}
        rows: list[dict[str, object]] = [{"kind": "collected", "id": i} for i in self.ids]
        rows += [{"kind": "collect_error", "id": i, "detail": d} for i, d in self.broken.items()]
        rows += [
            {"kind": "outcome", "id": i, "outcome": outcome, "detail": detail}
            for i, (outcome, detail) in finished.items()
        ]
        counts = {"collected": len(self.ids), "outcomes": len(finished)}
        rows.append({"kind": "trailer", "exit": int(session.exitstatus), **counts})
        self.report.write(*rows)


def outcome_of(report: pytest.TestReport) -> str:
    """Say what one phase means for its test; empty: nothing yet."""
    expected = hasattr(report, "wasxfail")
    if report.failed:
        return "error" if report.when in ("setup", "teardown") else "failed"
    if report.skipped:
        return "xfailed" if expected else "skipped"
    if report.when != "call":
        return ""
    return "xpassed" if expected else "passed"


def message(report: Any) -> str:
    """The crash's one line, or the end of whatever text there is."""
    longrepr = getattr(report, "longrepr", None)
    text = getattr(getattr(longrepr, "reprcrash", None), "message", None)
    if text is None:
        text = str(longrepr or "").strip().rpartition("\n")[2]
    return " ".join(str(text).split())[:DETAIL_MAX]


def environment_report() -> Report | None:
    """The report that the environment names."""
    path = os.environ.get("UR_REPORT")
    return Report(path) if path else None


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests() -> Generator[None, Any, None]:
    """Record a root conftest that can't be imported: pytest then exits 4 without a session."""
    outcome = yield
    error = outcome.excinfo[1] if outcome.excinfo else None
    report = environment_report()
    if report is None or type(error).__name__ != "ConftestImportFailure":
        return
    cause = getattr(error, "cause", None) or getattr(error, "excinfo", (None, None))[1]
    path = os.path.relpath(str(getattr(error, "path", "conftest.py")))
    detail = " ".join(f"{type(cause).__name__}: {cause}".split())[:DETAIL_MAX]
    report.write({"kind": "conftest_error", "id": path, "detail": detail})


def pytest_configure(config: pytest.Config) -> None:
    """Register what the environment asks for; xdist workers only select."""
    only = os.environ.get("UR_ONLY")
    if only:
        config.pluginmanager.register(Selection(only), "ur_selection")
    report = environment_report()
    if report is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(report), "ur_recorder")
