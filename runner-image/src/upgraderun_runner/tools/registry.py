"""From a judged call to its effect: one function per tool (upgrade-run.md §9.2).

Caller: the loop, after decision, schema and policy. A tool answers with what the agent sees and with
what the journal's outcome says; it raises `ToolFailed` for everything that the agent may mend.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from upgraderun_protocol.ids import Sha256
from upgraderun_runner import limits
from upgraderun_runner.agent.calls import Call
from upgraderun_runner.agent.view import RunView
from upgraderun_runner.tools import manifests, proposing, reading, validating, writing
from upgraderun_runner.tools.bench import Bench
from upgraderun_runner.tools.schemas import TOOLS
from upgraderun_runner.tools.step import Step

Reader = Callable[[Bench, Mapping[str, Any]], Awaitable[dict[str, Any]]]

READERS: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        "get_repository_profile": reading.get_repository_profile,
        "list_candidates": reading.list_candidates,
        "read_file": reading.read_file,
        "list_directory": reading.list_directory,
        "search_files": reading.search_files,
        "read_dependency_source": reading.read_dependency_source,
        "git_diff": reading.git_diff,
    }
)
"""Tools without effect: their intent travels with their outcome."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool did: the observation, the outcome's data, an evidence artifact if there is one."""

    observation: Mapping[str, Any]
    data: Mapping[str, str] = field(default_factory=dict)
    record: Sha256 | None = None


async def execute(
    bench: Bench, step: Step, call: Call, view: RunView, planned: writing.PlannedWrite | None
) -> Result:
    """Run one allowed call to its end."""
    reader = READERS.get(call.tool)
    if reader is not None:
        step.intend()
        return Result(await reader(bench, call.arguments))
    if planned is not None:
        shown = await writing.write(bench, step, planned)
        return Result(shown, {"tree": str(shown["tree"])})
    if call.tool == "apply_upgrade":
        return _promoted(await manifests.apply_upgrade(bench, step, call.arguments), named=True)
    if call.tool == "normalize_manifests":
        target = proposing.promoted(view)
        return _promoted(await manifests.normalize_manifests(bench, step, target), named=False)
    if call.tool == "run_validation":
        return await _validated(bench, step)
    if call.tool == "prepare_proposal":
        frozen = await proposing.prepare_proposal(bench, step, call.arguments, view)
        return Result(frozen, {"proposal": str(frozen["proposal"])})
    assert call.tool == "report_blocked", "every listed tool has its branch"
    step.intend()
    return Result(dict(call.arguments))


def timeout_of(bench: Bench, tool: str) -> int:
    """Seconds that a tool may take; a validation gets the sum of its checks and five minutes."""
    seconds = TOOLS[tool].timeout_seconds
    if seconds is not None:
        return seconds
    # Checks, once more for each repetition of failing tests (§7.2), and once for coverage (§7.4).
    runs = len(bench.context.profile.checks) + 6
    return runs * bench.bundle.policy.check_timeout_seconds + limits.VALIDATION_SLACK_SECONDS


def _promoted(shown: dict[str, Any], *, named: bool) -> Result:
    data = {"changed": "true" if shown["changed"] else "false", "tree": str(shown["tree"])}
    if named:
        target = shown["target"]
        data |= {
            "name": target["name"],
            "from": target["fromVersion"],
            "to": target["toVersion"],
        }
    return Result(shown, data)


async def _validated(bench: Bench, step: Step) -> Result:
    shown, record, digest = await validating.run_validation(bench, step)
    data = {
        "tree": record.tree,
        "conclusive": "true" if record.conclusive else "false",
        "clean": "true" if record.clean else "false",
        "introduced": validating.introduced_word(record),
    }
    return Result(shown, data, digest)
