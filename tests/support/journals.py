"""A run's journal and artifacts as a test reads them afterwards: from status, store and report.

It folds with the protocol's own fold, so every story that is read is also a chain that was checked.
"""

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from support.kubeapi import Json
from support.platform import Platform
from upgraderun_protocol.entries import GENESIS, Entry, EntryState, chain, entry_from_json
from upgraderun_protocol.fold import Fold
from upgraderun_protocol.ids import Sha256

PODS: Final = frozenset({"attempt", "delivery"})
"""Kinds of entries that start a pod."""


@dataclass(frozen=True)
class Story:
    """Everything that a finished run left behind. `artifacts` is the folder of the run's blobs."""

    status: Json
    report: Json
    fold: Fold
    artifacts: Path

    def artifact(self, digest: str) -> Any:
        """Read a JSON artifact."""
        return json.loads(blob(self.artifacts, digest))

    def of(self, entry: Entry | None, role: str) -> Any:
        """Read the JSON artifact that an entry names."""
        assert entry is not None
        return self.artifact(entry.artifacts[role])

    @property
    def commit(self) -> str:
        """The frozen commit, as the intent names it."""
        intent = self.fold.intent(self.proposal.id)
        assert intent is not None
        return intent.data["commit"]

    @property
    def target(self) -> tuple[str, str, str]:
        """The frozen upgrade: name, before, after."""
        data = self.proposal.data
        return data["name"], data["from"], data["to"]

    @property
    def pods(self) -> dict[str, tuple[str, str]]:
        """Name and UID of every pod that the journal names, by the id of the entry that starts it."""
        entries = [entry for entry in self.fold if entry.kind in PODS]
        names = {entry.id: entry.data["pod"] for entry in entries if "pod" in entry.data}
        uids = {entry.id: entry.data["podUID"] for entry in entries if "podUID" in entry.data}
        return {entry: (names[entry], uid) for entry, uid in uids.items()}

    @property
    def selected(self) -> tuple[str, str, str] | None:
        """What the selection put first: name, before, after; None if nothing is eligible."""
        entry = self.fold.last("candidates", EntryState.DONE)
        if entry is None or "name" not in entry.data:
            return None
        return entry.data["name"], entry.data["from"], entry.data["to"]

    @property
    def introduced(self) -> list[str]:
        """Keys that the report calls new after the upgrade."""
        mark = "new after the upgrade: "
        notes = self.report.get("notes", [])
        return [note.removeprefix(mark) for note in notes if note.startswith(mark)]

    @property
    def changed_files(self) -> list[str]:
        """Paths that the proposal's patch changes."""
        return sorted(re.findall(r"^diff --git a/\S+ b/(\S+)$", self.report["patch"], re.MULTILINE))

    @property
    def denied_tools(self) -> list[str]:
        """Tools whose calls the policy denied, in order."""
        return [
            entry.data["tool"]
            for entry in self.fold
            if entry.kind == "step" and entry.data.get("reason") == "policy_denied"
        ]

    @property
    def findings(self) -> list[str]:
        """Keys that the report names, over all checks."""
        return [key for check in self.report.get("checks", []) for key in check["findings"]]

    @cached_property
    def report_text(self) -> str:
        """Everything that people read in report and conditions."""
        return json.dumps([self.report, self.status.get("conditions")], ensure_ascii=False)

    def reasons_of(self, name: str, version: str) -> set[str]:
        """Reasons of one version: in the list of candidates, or in the report of an early end."""
        done = self.fold.last("candidates", EntryState.DONE)
        if done is not None:
            for row in self.of(done, "list")["record"]["candidates"]:
                if (row["name"], row["version"]) == (name, version):
                    return {reason["code"] for reason in row["reasons"]}
        pattern = rf"^{re.escape(name)} \S+ -> {re.escape(version)} \(\w+\): (.*)$"
        for note in self.report.get("notes", []):
            if match := re.search(pattern, note):
                return set(re.findall(r"(?:^|; )([a-z_]+): ", match[1]))
        raise AssertionError(f"{name} {version} isn't among the candidates")

    @property
    def proposal(self) -> Entry:
        entry = self.fold.last("proposal", EntryState.DONE)
        assert entry is not None, "nothing was frozen"
        return entry


def blob(artifacts: Path, digest: str) -> bytes:
    """Bytes of an artifact, wherever the store keeps them below a run's folder."""
    found = next(artifacts.rglob(digest), None)
    assert found is not None, f"artifact {digest} is not in the store"
    return found.read_bytes()


def entries_of(status: Json, artifacts: Path) -> list[Entry]:
    """Read segments and the rest, in order, and check the chain against the stored head."""
    journal = status["journal"]
    rows: list[Json] = []
    for segment in journal.get("compacted", {}).get("segments", []):
        digest = segment if isinstance(segment, str) else segment["digest"]
        rows += json.loads(blob(artifacts, digest))["entries"]
    rows += journal["entries"]
    entries = [entry_from_json(row) for row in rows]
    assert Sha256(journal["head"]["digest"]) == chain(GENESIS, entries), "the chain is broken"
    return entries


async def read_story(platform: Platform, name: str) -> Story:
    """Read what a run left behind, through people's eyes and the artifact store."""
    run = await platform.run(name)
    report = await platform.kube.find(platform.path("upgradereports", name))
    artifacts = platform.artifacts(run["metadata"]["uid"])
    fold = Fold(entries_of(run["status"], artifacts))
    return Story(run["status"], report or {"patch": "", "checks": []}, fold, artifacts)
