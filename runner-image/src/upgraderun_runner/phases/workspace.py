"""Phase 2 and its resumption: the directory of the run's generation (upgrade-run.md §3, §13.1, §13.2).

Callers: `phases.prelude`. A generation that was cloned but has no `context` yet is never resumed; a
lost volume gets a new generation from the recorded base as long as nothing was promoted.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from upgraderun_protocol.entries import Draft, Entry, EntryState
from upgraderun_protocol.ids import CommitId, RunUid, TreeId
from upgraderun_protocol.messages import WorkspaceMessage
from upgraderun_protocol.outcomes import ConflictKind
from upgraderun_runner.agent.report import ReportFacts
from upgraderun_runner.errors import RunConflicts
from upgraderun_runner.phases.ends import not_fetched
from upgraderun_runner.phases.session import PhaseStep, Session
from upgraderun_runner.workspace.clone import CLONE, Base, Source, clone_base
from upgraderun_runner.workspace.errors import BaseMissing, GitFailed, RemoteFailed, TreeRefused
from upgraderun_runner.workspace.git import Git
from upgraderun_runner.workspace.identity import (
    IdentityMatch,
    WorkspaceIdentity,
    compare_identity,
    create_workspace,
    next_generation,
)
from upgraderun_runner.workspace.layout import Layout
from upgraderun_runner.workspace.snapshot import checkout
from upgraderun_runner.workspace.sweep import remove_generation
from upgraderun_runner.workspace.tags import nearest_tag

LOOK_AGAIN_SECONDS = 5
PRELUDE = frozenset({"workspace", "profile", "acquire", "baseline", "candidates"})
"""Phases before the loop: what a restart leaves open of them is interrupted and runs again."""


@dataclass(frozen=True, slots=True)
class OpenWorkspace:
    """The generation in use. `resumed`: it was there before this process."""

    layout: Layout
    git: Git
    base: Base
    resumed: bool


async def open_workspace(session: Session) -> OpenWorkspace:
    """Find the run's generation, or clone a new one."""
    fold = session.journal.fold
    session.finished("profile")
    cloned = session.finished("workspace")
    if cloned is None or fold.last("profile", EntryState.DONE) is None:
        return await _start(session)
    found = await _looked_twice(session, cloned)
    if found is IdentityMatch.OURS:
        return _resume(session, cloned)
    if any(entry.kind == "promotion" for entry in fold):
        raise contradicted_workspace(found, _intent(session, cloned).data["generation"])
    return await _start(session)


def contradicted_workspace(found: IdentityMatch, generation: str) -> RunConflicts:
    """The volume isn't this run's any more, and an upgrade was moved into what it held."""
    lost = found is IdentityMatch.ABSENT
    kind = ConflictKind.WORKSPACE_LOST if lost else ConflictKind.WORKSPACE_FOREIGN
    observed = "a volume without one" if lost else "a volume of another run or generation"
    return RunConflicts(kind, f"generation {generation} of this run", observed)


def remove_older(session: Session, layout: Layout) -> None:
    """Remove abandoned generations; called once a newer `context` stands (§13.2)."""
    for generation in range(1, layout.generation):
        remove_generation(Layout(session.root, generation))


async def _looked_twice(session: Session, cloned: Entry) -> IdentityMatch:
    """Compare identity; anything but ours is looked at again before it counts."""
    intent = _intent(session, cloned)
    generation = int(intent.data["generation"])
    layout = Layout(session.root, generation)
    expected = WorkspaceIdentity(RunUid(session.bundle.run.uid), generation, intent.data["nonce"])
    found = compare_identity(layout, expected)
    if found is not IdentityMatch.OURS:
        await session.seams.sleep(LOOK_AGAIN_SECONDS)
        found = compare_identity(layout, expected)
    return found


def _intent(session: Session, outcome: Entry) -> Entry:
    intent = session.journal.fold.intent(outcome.id)
    assert intent is not None, "a cloned workspace had its intent"
    return intent


def _resume(session: Session, cloned: Entry) -> OpenWorkspace:
    intent = _intent(session, cloned)
    layout = Layout(session.root, int(intent.data["generation"]))
    base = Base(CommitId(cloned.data["commit"]), TreeId(cloned.data["tree"]), cloned.data["branch"])
    return OpenWorkspace(layout, Git(session.git, layout.git), base, resumed=True)


async def _start(session: Session) -> OpenWorkspace:
    """Clone into a new generation, from the recorded base if one is recorded."""
    _interrupt_abandoned(session)
    generation = next_generation(session.root)
    layout = Layout(session.root, generation)
    step = session.phase("workspace")
    nonce = session.seams.new_id()
    step.intend(generation=str(generation), nonce=nonce)
    await step.begin()
    await asyncio.to_thread(
        create_workspace,
        layout,
        WorkspaceIdentity(RunUid(session.bundle.run.uid), generation, nonce),
    )
    git = Git(session.git, layout.git)
    base = await _clone(session, step, git)
    try:
        await checkout(git, layout, base.tree)
    except TreeRefused as error:
        notes = tuple(f"{v.path}: {v.detail} ({v.code})" for v in error.violations)
        more = f" (and {len(notes) - 1} more)" if len(notes) > 1 else ""
        message = f"the tree can't be handled: {notes[0]}{more}"
        raise await step.ends(ReportFacts("unsupported", message, notes=notes)) from error
    await session.client.fix_base(WorkspaceMessage(base.commit, base.tree))
    await session.journal.load()
    step.done(
        {"commit": base.commit, "tree": base.tree, "branch": base.branch},
        {},
        lambda: CLONE.recorded(session.fault),
    )
    return OpenWorkspace(layout, git, base, resumed=False)


async def _clone(session: Session, step: PhaseStep, git: Git) -> Base:
    repository = session.bundle.repository
    recorded = session.journal.fold.done("base")
    commit = CommitId(recorded.data["commit"]) if recorded else repository.commit
    source = Source(repository.url, repository.branch or None, commit)
    try:
        return await clone_base(git, source, await session.credential(), session.fault)
    except BaseMissing as error:
        message = f"{repository.url}: {error.what}"
        raise await step.ends(ReportFacts("unsupported", message)) from error
    except (GitFailed, RemoteFailed) as error:
        raise await step.ends(not_fetched(repository.url, error)) from error


async def tag_of(session: Session, base: Base, step: PhaseStep, scratch: Path) -> str:
    """Where a version derived from git starts; the same for both trees of a run (§7.3)."""
    url, aside = session.bundle.repository.url, Git(session.git, scratch / "tags.git")
    try:
        return await nearest_tag(aside, url, base.branch, base.commit, await session.credential())
    except (GitFailed, RemoteFailed) as error:
        raise await step.ends(not_fetched(url, error)) from error


def _interrupt_abandoned(session: Session) -> None:
    """Settle what an earlier process left open before its context: never resumed (§13.2)."""
    for intent in session.journal.fold.open_intents():
        if intent.kind in PRELUDE:
            session.journal.defer(
                Draft(
                    intent.id,
                    intent.kind,
                    EntryState.INTERRUPTED,
                    {"reason": "restarted", "message": "a new start clones again"},
                )
            )
