"""Histories of the loop for unit tests of agents: steps in few words, checked like real entries."""

from collections.abc import Mapping
from typing import Any

from upgraderun_protocol.bundle import Codemod, LimitOptions, ScopeOptions
from upgraderun_protocol.entries import Draft, EntryState, entry_from_draft
from upgraderun_protocol.fold import Fold
from upgraderun_protocol.ids import EntryId, Epoch, Sha256
from upgraderun_protocol.kinds import Writer, check_draft
from upgraderun_runner.agent.calls import Call
from upgraderun_runner.agent.view import RunView, view_of
from upgraderun_runner.ecosystems.base import Target

TARGET = Target("tinylib", "1.0.0", "1.1.0")
OTHER = Target("zlib-ng", "2.0.0", "2.0.1")
CODEMOD = Codemod("tinylib", ">=1.1", "tinylib.prices", "tinylib.cents")
LIMITS = LimitOptions(50, 3, 3, 8, 3)
SCOPE = ScopeOptions(10, 200, 20, 400)
BASE, TREE, EDITED = "a" * 40, "b" * 40, "c" * 40
DIGEST = Sha256("d" * 64)


class Story:
    """A journal of steps; each method adds one and returns the story."""

    def __init__(self) -> None:
        self.fold = Fold()
        self._calls: dict[int, Call | None] = {}
        self._observed: dict[int, Mapping[str, Any]] = {}

    @property
    def view(self) -> RunView:
        return view_of(self.fold, self._calls, self._observed)

    def applied(self) -> "Story":
        """`apply_upgrade` promoted the target."""
        index = self._decide("apply_upgrade", {"dependency": "tinylib", "version": "1.1.0"})
        self._promote(index, EntryState.DONE)
        return self._settle(index, "done", {"tool": "apply_upgrade", "tree": TREE})

    def promotion_interrupted(self) -> "Story":
        """The pair was found at its before-image."""
        index = self._decide("apply_upgrade", {"dependency": "tinylib", "version": "1.1.0"})
        self._promote(index, EntryState.INTERRUPTED)
        return self._settle(index, "interrupted", {"tool": "apply_upgrade", "reason": "restarted"})

    def normalised(self) -> "Story":
        """`normalize_manifests` changed nothing."""
        data = {"tool": "normalize_manifests", "changed": "false", "tree": TREE}
        return self.did("normalize_manifests", data)

    def validated(
        self, introduced: str = "0", *, tree: str = TREE, conclusive: bool = True
    ) -> "Story":
        """`run_validation` came to its end."""
        data = {
            "tool": "run_validation",
            "tree": tree,
            "clean": "true" if introduced == "0" else "false",
            "conclusive": "true" if conclusive else "false",
            "introduced": introduced,
        }
        index = self._decide("run_validation", {})
        return self._settle(index, "done", data, record=True)

    def edited(self, path: str = "app.py", *, tree: str = EDITED) -> "Story":
        """`write_file` changed a source file."""
        arguments = {"path": path, "content": "x"}
        return self.did("write_file", {"tool": "write_file", "tree": tree}, arguments)

    def searched(self, pattern: str, *hits: tuple[str, str]) -> "Story":
        """`search_files` found lines: (path, text)."""
        index = self._decide("search_files", {"pattern": pattern})
        self._observed[index] = {"hits": [{"path": p, "line": 1, "text": t} for p, t in hits]}
        return self._settle(index, "done", {"tool": "search_files"})

    def did(
        self, tool: str, data: dict[str, str], arguments: Mapping[str, Any] | None = None
    ) -> "Story":
        """Any tool came to its end."""
        return self._settle(self._decide(tool, arguments or {}), "done", data)

    def failed(
        self,
        tool: str,
        reason: str,
        message: str = "why",
        arguments: Mapping[str, Any] | None = None,
    ) -> "Story":
        """Any tool was refused or went wrong."""
        index = self._decide(tool, arguments or {})
        return self._settle(index, "failed", {"tool": tool, "reason": reason, "message": message})

    def interrupted(self, tool: str) -> "Story":
        """The runner ended inside."""
        index = self._decide(tool, {})
        return self._settle(index, "interrupted", {"tool": tool, "reason": "restarted"})

    def undecodable(self) -> "Story":
        """A decision that is none."""
        index = self._decide("invalid", {})
        self._calls[index] = None
        return self._settle(index, "failed", {"tool": "invalid", "reason": "invalid_decision"})

    def frozen(self) -> "Story":
        """The proposal is done."""
        index = self._decide("prepare_proposal", {"title": "t", "summary": "s"})
        data = {"name": "tinylib", "from": "1.0.0", "to": "1.1.0"}
        counts = {"files": "2", "added": "3", "removed": "3"}
        self._add(
            f"proposal/s{index}",
            "proposal",
            EntryState.DONE,
            {**data, **counts},
            {"record": DIGEST, "report": DIGEST},
        )
        return self._settle(index, "done", {"tool": "prepare_proposal"})

    def _decide(self, tool: str, arguments: Mapping[str, Any]) -> int:
        index = self.view.next_index
        self._calls[index] = Call(tool, arguments)
        self._add(
            f"s{index}/decision", "decision", EntryState.DONE, {"tool": tool}, {"decision": DIGEST}
        )
        return index

    def _promote(self, index: int, outcome: EntryState) -> None:
        entry = f"s{index}/promotion"
        data = {"promotes": "upgrade", "name": "tinylib", "from": "1.0.0", "to": "1.1.0"}
        self._add(entry, "promotion", EntryState.INTENT, data, {"plan": DIGEST})
        ended = {} if outcome is EntryState.DONE else {"reason": "restarted"}
        self._add(entry, "promotion", outcome, ended, {})

    def _settle(
        self, index: int, state: str, data: dict[str, str], *, record: bool = False
    ) -> "Story":
        artifacts = {"observation": DIGEST}
        if record:
            artifacts["record"] = DIGEST
        self._add(f"s{index}", "step", EntryState(state), data, artifacts)
        return self

    def _add(
        self,
        entry: str,
        kind: str,
        state: EntryState,
        data: Mapping[str, str],
        artifacts: Mapping[str, Sha256],
    ) -> None:
        draft = Draft(EntryId(entry), kind, state, data, artifacts)
        check_draft(draft, Writer.RUNNER)
        at = "2026-11-30T12:00:00Z"
        self.fold.add(
            entry_from_draft(draft, seq=self.fold.seq + 1, at=at, attempt="a1", epoch=Epoch(1))
        )
