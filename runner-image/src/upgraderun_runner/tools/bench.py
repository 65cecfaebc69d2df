"""The bench that tools work on: one run's workspace, evidence and journal in one value.

Callers: phases make it after the prelude, tools and the loop use it. It holds no decision; what it
computes (candidate tree, projected diff) is computed from the files anew each time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from upgraderun_protocol.bundle import Bundle
from upgraderun_protocol.effects import FaultPoint
from upgraderun_protocol.ids import TreeId
from upgraderun_protocol.redact import Redactor
from upgraderun_runner.client.journal import Journal
from upgraderun_runner.client.transport import Seams
from upgraderun_runner.ecosystems.base import (
    AcquisitionRecord,
    CandidateList,
    Pair,
    ValidationRecord,
)
from upgraderun_runner.ecosystems.python.ecosystem import PythonEcosystem
from upgraderun_runner.evidence import ContextRecord
from upgraderun_runner.sandbox.driver import Sandbox
from upgraderun_runner.workspace.candidate import candidate_tree
from upgraderun_runner.workspace.diff import TreeDiff, diff_trees
from upgraderun_runner.workspace.git import Git
from upgraderun_runner.workspace.index import temporary_index, write_tree
from upgraderun_runner.workspace.layout import Layout
from upgraderun_runner.workspace.promotion import delete_staging
from upgraderun_runner.workspace.protected import ProtectedPaths
from upgraderun_runner.workspace.snapshot import make_snapshot
from upgraderun_runner.workspace.trees import write_blob


@dataclass(slots=True)
class Bench:
    """Everything of one run that outlives a step."""

    bundle: Bundle
    journal: Journal
    git: Git
    layout: Layout
    context: ContextRecord
    ecosystem: PythonEcosystem
    sandbox: Sandbox
    acquisition: AcquisitionRecord
    cache: Path
    baseline: ValidationRecord
    candidates: CandidateList
    protected: ProtectedPaths
    redactor: Redactor
    seams: Seams
    fault: FaultPoint
    promoted_staging: list[str] = field(default_factory=list)

    @property
    def pair_paths(self) -> tuple[str, str]:
        """Manifest and lock, relative to the work tree."""
        return self.context.profile.manifest_path, self.context.profile.lock_path

    def pair(self) -> Pair:
        """Manifest and lock as they are in `work/` now."""
        return self.ecosystem.read_pair(self.layout.work, self.context.profile.directory)

    async def base_snapshot(self) -> Path:
        """The verified copy of the base tree."""
        return await make_snapshot(self.git, self.layout, self.context.base_tree)

    async def base_pair(self) -> Pair:
        """Manifest and lock of the base."""
        snapshot = await self.base_snapshot()
        return self.ecosystem.read_pair(snapshot, self.context.profile.directory)

    async def tree(self) -> TreeId:
        """The tree that `work/` would commit now."""
        return await candidate_tree(self.git, self.layout, self.context.base_tree)

    async def sources(self, tree: TreeId) -> TreeDiff:
        """What a tree changes against the base, the pair left out: the scope of §9.4."""
        diff = await diff_trees(self.git, self.context.base_tree, tree)
        return diff.without(self.pair_paths)

    async def projected(self, contents: Mapping[str, bytes]) -> TreeDiff:
        """The sources that would differ if these files were written now."""
        tree = await self.tree()
        index = self.layout.scratch("projected.index")
        modes = {change.path: change.new_mode for change in (await self.sources(tree)).files}
        async with temporary_index(self.git, index, tree) as seeded:
            changes = {
                path: (modes.get(path) or "100644", await write_blob(self.git, content))
                for path, content in contents.items()
            }
            return await self.sources(await write_tree(self.git, seeded, changes))

    def clean_promoted(self) -> None:
        """Delete the staging of promotions whose `done` stands by now (§8.6 step 6)."""
        while self.promoted_staging:
            delete_staging(self.layout, self.promoted_staging.pop(), self.fault)
