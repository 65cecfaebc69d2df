"""The tree that `work/` would commit now (upgrade-run.md §6, "candidate tree").

Callers: policy, diff, validation, readiness. Writes objects, never an index of the repository.
"""

from upgraderun_protocol.ids import TreeId

from upgraderun_runner.workspace.git import Git
from upgraderun_runner.workspace.layout import Layout


async def candidate_tree(git: Git, layout: Layout, base_tree: TreeId) -> TreeId:
    """Write the tree of `work/`: a temporary index seeded from the base tree, all changes added.

    Tracked files stay tracked though an ignore rule matches them; ignored untracked files never
    enter; only the tree's own `.gitignore` files say what is ignored. No attribute, no filter.
    Raises TreeRefused for what can't be in a tree (devices, nested repositories).
    """
    raise NotImplementedError


async def ignored_paths(
    git: Git, layout: Layout, base_tree: TreeId, paths: tuple[str, ...]
) -> frozenset[str]:
    """Which of these paths are untracked in the base and ignored: refused for writes (§9.4)."""
    raise NotImplementedError
