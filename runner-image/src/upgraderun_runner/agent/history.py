"""Reads what the fold names: decisions verbatim, and the observations that rules need (§9.1).

Caller: the loop. Decisions are immutable artifacts, so each is read once per process.
"""

from collections.abc import Mapping
from typing import Any

from upgraderun_protocol.records import RecordError, parse_json
from upgraderun_runner.agent.calls import Call, read_call
from upgraderun_runner.agent.view import RunView, step_indexes, view_of
from upgraderun_runner.client.journal import Journal


class History:
    """The loop's past as a view; computed anew before each decision."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._calls: dict[int, Call | None] = {}
        self._observed: dict[int, Mapping[str, Any]] = {}

    async def view(self) -> RunView:
        """The view of everything that is journaled or deferred by now."""
        fold = self._journal.fold
        for index in step_indexes(fold):
            if index not in self._calls:
                self._calls[index] = await self._call(index)
            if index not in self._observed and self._is_search(index):
                await self._observe(index)
        return view_of(fold, self._calls, self._observed)

    async def _call(self, index: int) -> Call | None:
        entry = self._journal.fold.done(f"s{index}/decision")
        assert entry is not None, f"step {index} has its decision before anything else"
        try:
            return read_call(parse_json(await self._journal.fetch(entry.artifacts["decision"])))
        except RecordError:
            return None

    def _is_search(self, index: int) -> bool:
        call = self._calls[index]
        return call is not None and call.tool == "search_files"

    async def _observe(self, index: int) -> None:
        entry = self._journal.fold.done(f"s{index}")
        if entry is not None:
            value = parse_json(await self._journal.fetch(entry.artifacts["observation"]))
            self._observed[index] = value["result"] if isinstance(value, dict) else {}
