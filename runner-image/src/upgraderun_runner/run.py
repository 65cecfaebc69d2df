"""The role `run`: prepare, recover, loop, end (upgrade-run.md §3 phases 2 to 12, §13.1).

Caller: `main`. There is one path: a first start finds an empty journal, a resume a longer one.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

from upgraderun_protocol.ends import YieldReason
from upgraderun_protocol.entries import EntryState
from upgraderun_protocol.ids import ProposalDigest
from upgraderun_protocol.kinds import Writer
from upgraderun_runner.agent.agents import Decide, baseline_agent, rules_agent, scripted_agent
from upgraderun_runner.agent.loop import Loop
from upgraderun_runner.agent.scripted import DecisionListError
from upgraderun_runner.ecosystems.python.ecosystem import PythonEcosystem
from upgraderun_runner.errors import RunEnds, TransportError, Yielded
from upgraderun_runner.image import Offer, find_toolchain, version_of_the_image
from upgraderun_runner.phases.ending import store_end_report
from upgraderun_runner.phases.prelude import prepare, read_context
from upgraderun_runner.phases.recovery import recover_files, recover_steps
from upgraderun_runner.phases.session import Session
from upgraderun_runner.phases.workspace import open_workspace
from upgraderun_runner.process import Conclusion, Machine, Settings, Speaking, speak
from upgraderun_runner.remote import git_settings, give_back
from upgraderun_runner.sandbox.inline import InlineSandbox
from upgraderun_runner.tools.bench import Bench
from upgraderun_runner.tools.manifests import as_conflict
from upgraderun_runner.workspace.errors import (
    StorageUnavailable,
    WorkspaceBusy,
    WorkspaceContradicts,
)
from upgraderun_runner.workspace.git import prepare_git
from upgraderun_runner.workspace.lock import WorkspaceLock, probe_volume

SOURCE_SUFFIXES = (".py", ".pyi")


OpenSession = Callable[[Speaking, Path], Awaitable[Session]]
"""Puts together what a process works with on a volume: git, sandbox, toolchain."""


async def run_role(settings: Settings, machine: Machine, offer: Offer) -> int:
    """Run to an end; returns the exit code (upgrade-run.md §4)."""

    async def session(speaking: Speaking, root: Path) -> Session:
        return await _session(speaking, offer, root)

    return await run_with(settings, machine, session, offer.ca_bundle)


async def run_with(
    settings: Settings, machine: Machine, session: OpenSession, ca_bundle: Path | None
) -> int:
    """Run to an end with a session of the caller's making: the image's, or a simulated one."""
    return await speak(
        settings, machine, Writer.RUNNER, lambda speaking: _work(speaking, session, ca_bundle)
    )


async def _work(speaking: Speaking, session: OpenSession, ca_bundle: Path | None) -> Conclusion:
    frozen = _frozen(speaking)
    if frozen is not None:
        return frozen
    root = speaking.settings.workspace
    assert root is not None, "the run role has a workspace"
    try:
        with WorkspaceLock(root / "workspace.lock"):
            probe_volume(root, speaking.machine.seams.new_id()[:12])
            return await _in_workspace(speaking, await session(speaking, root), ca_bundle)
    except (WorkspaceBusy, StorageUnavailable) as error:
        raise Yielded(YieldReason.NOT_RESUMABLE, str(error)) from error
    except WorkspaceContradicts as error:
        raise as_conflict(error) from error


def _frozen(speaking: Speaking) -> Conclusion | None:
    """A frozen proposal needs no workspace any more (§13.2)."""
    entry = speaking.journal.fold.last("proposal", EntryState.DONE)
    if entry is None:
        return None
    target = f"{entry.data['name']} {entry.data['from']} -> {entry.data['to']}"
    return Conclusion(
        "proposal_prepared",
        f"{target}: one commit is frozen",
        entry.artifacts["report"],
        ProposalDigest(entry.artifacts["record"]),
    )


async def _in_workspace(speaking: Speaking, session: Session, ca_bundle: Path | None) -> Conclusion:
    try:
        workspace = await open_workspace(session)
        context = await read_context(session, workspace)
    finally:
        # Nothing after this needs it, and the repository's own code runs next.
        await give_back(speaking, ca_bundle)
    if workspace.resumed:
        await recover_files(session, workspace)
    bench = await prepare(session, workspace, context)
    await recover_steps(bench)
    decide = await _agent(speaking, bench)
    end, view = await Loop(bench, decide, speaking).run()
    frozen = _frozen(speaking)
    if frozen is not None:
        return frozen
    told, report = await store_end_report(bench, view, end)
    return Conclusion(told.outcome, told.message, report)


async def _session(speaking: Speaking, offer: Offer, root: Path) -> Session:
    machine, bundle = speaking.machine, speaking.bundle
    if bundle.policy.sandbox != "Inline":
        raise RunEnds(
            "policy_refused",
            f"sandbox {bundle.policy.sandbox} isn't served by this runner; the policy may set "
            "sandbox.type Inline",
        )
    git = git_settings(speaking, offer.ca_bundle)
    prepare_git(git)
    sandbox = await InlineSandbox.start(machine.seams.monotonic)
    toolchain = await find_toolchain(offer, sandbox, machine.private)
    return Session(
        bundle=bundle,
        client=speaking.client,
        journal=speaking.journal,
        root=root,
        git=git,
        credential=speaking.credentials.get,
        ecosystem=PythonEcosystem(toolchain),
        sandbox=sandbox,
        control=speaking,
        redactor=machine.redactor,
        seams=machine.seams,
        fault=machine.fault,
        python=version_of_the_image(),
    )


async def _agent(speaking: Speaking, bench: Bench) -> Decide:
    """The deciding function of the run's mode."""
    bundle, ranked = speaking.bundle, bench.candidates.ranked
    if bundle.mode == "Baseline":
        return baseline_agent(ranked)
    if bundle.mode == "Rules":
        return rules_agent(ranked, bundle.policy.codemods, lambda path: _is_source(bench, path))
    if bundle.mode == "Scripted" and bundle.policy.decisions is not None:
        try:
            return scripted_agent(await speaking.journal.fetch(bundle.policy.decisions))
        except DecisionListError as error:
            raise RunEnds("policy_refused", str(error)) from error
        except TransportError as error:
            if error.status != 404:
                raise
            message = f"the decision list {bundle.policy.decisions} isn't stored"
            raise RunEnds("policy_refused", message) from error
    raise RunEnds("policy_refused", f"mode {bundle.mode} has no agent in this runner")


def _is_source(bench: Bench, path: str) -> bool:
    """Whether a codemod may change a file: Python code that no glob protects."""
    return path.endswith(SOURCE_SUFFIXES) and bench.protected.match(path) is None
