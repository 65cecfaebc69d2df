"""Tools that write sources: `write_file` and `edit_file` (upgrade-run.md §9.2, §9.4).

Callers: the loop plans a write for the policy, then lets it happen. A write is atomic; its intent names
the hashes before and after, so that a restart knows which of the two is there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from upgraderun_protocol.canonical import sha256_of
from upgraderun_runner import limits
from upgraderun_runner.agent.policy import Write
from upgraderun_runner.performing import Effect
from upgraderun_runner.tools.bench import Bench
from upgraderun_runner.tools.reading import clean
from upgraderun_runner.tools.step import Step, ToolFailed
from upgraderun_runner.workspace.candidate import ignored_paths
from upgraderun_runner.workspace.errors import PathRefused
from upgraderun_runner.workspace.files import ABSENT, read_file, replace_file
from upgraderun_runner.workspace.layout import Layout
from upgraderun_runner.workspace.paths import write_violation


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """One file as it would become; `before` is None for a file that isn't there yet."""

    path: str
    before: bytes | None
    after: bytes
    shown: Mapping[str, Any]


async def plan_write(bench: Bench, tool: str, arguments: Mapping[str, Any]) -> PlannedWrite:
    """Compute the new content. Raises ToolFailed where the call can't be meant seriously."""
    path = clean(str(arguments["path"]))
    try:
        before = read_file(bench.layout.work, path, limits.WRITE_CONTENT_MAX)
    except PathRefused as error:
        raise ToolFailed("path_refused", str(error)) from error
    if tool == "write_file":
        after = str(arguments["content"]).encode("utf-8")
        return PlannedWrite(path, before, after, {})
    return _edit(path, before, str(arguments["old_text"]), str(arguments["new_text"]))


def _edit(path: str, before: bytes | None, old: str, new: str) -> PlannedWrite:
    if before is None:
        raise ToolFailed("not_found", f"{path} is not there; write_file makes new files")
    try:
        text = before.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ToolFailed("not_text", f"{path} is no UTF-8 text") from error
    count = text.count(old)
    if count != 1 or old == new:
        lines = [n for n, line in enumerate(text.splitlines(), 1) if old.splitlines()[0] in line]
        raise ToolFailed(
            "no_unique_match" if count != 1 else "no_change",
            f"old_text occurs {count} times in {path}; it must occur once and differ from new_text",
            {"count": count, "lines": lines[:50]},
        )
    start = text.index(old)
    line = text.count("\n", 0, start) + 1
    after = text[:start] + new + text[start + len(old) :]
    shown = {"first_line": line, "last_line": line + new.count("\n")}
    return PlannedWrite(path, before, after.encode("utf-8"), shown)


async def judge_write(bench: Bench, planned: PlannedWrite) -> Write:
    """What the policy needs to know: the broken path rule, the size of the projected diff."""
    diff = await bench.projected({planned.path: planned.after})
    return Write(await _violation(bench, planned.path), len(diff.files), diff.lines)


async def _violation(bench: Bench, path: str) -> str | None:
    refused = write_violation(path)
    if refused is not None:
        return f"{path}: {refused.detail}"
    glob = bench.protected.match(path)
    if glob is not None:
        return f"{path} is protected by {glob}; no agent changes it"
    if path in await ignored_paths(bench.git, bench.layout, bench.context.base_tree, (path,)):
        return f"{path} is ignored by the repository and would not enter the commit"
    return None


async def write(bench: Bench, step: Step, planned: PlannedWrite) -> dict[str, Any]:
    """Write the file and say what is changed now. The intent stands before the file changes."""
    before = ABSENT if planned.before is None else sha256_of(planned.before)
    step.intend(path=journal_path(planned.path), before=before, after=sha256_of(planned.after))
    await step.begin()
    try:
        FILE_WRITE(bench.fault, bench.layout, planned)
    except PathRefused as error:
        raise ToolFailed("path_refused", str(error)) from error
    bench.journal.defer(recorded=lambda: FILE_WRITE.recorded(bench.fault))
    tree = await bench.tree()
    sources = await bench.sources(tree)
    return {
        "path": planned.path,
        **planned.shown,
        "tree": tree,
        "files_changed": len(sources.files),
        "lines_changed": sources.lines,
    }


def _write_file(layout: Layout, planned: PlannedWrite) -> None:
    replace_file(layout.work, planned.path, planned.after)


FILE_WRITE: Final = Effect("file_write", _write_file)


def journal_path(path: str) -> str:
    """A path as it fits into an entry; a longer one is named by its digest."""
    return path if len(path.encode("utf-8")) <= 96 else f"sha256:{sha256_of(path.encode('utf-8'))}"
