"""The built-in agent: a pure function of the fold, first match (upgrade-run.md §2 "Rules").

Caller: the loop, in modes Rules and Baseline (which has no codemods and edits nothing). It reads no
file and asks nobody; whatever it decides passes schema, policy and gates like anybody's decision.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import re2
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from upgraderun_protocol.bundle import Codemod
from upgraderun_runner.agent.calls import Call
from upgraderun_runner.agent.ending import CODES
from upgraderun_runner.agent.view import RunView, StepView
from upgraderun_runner.ecosystems.base import Target
from upgraderun_runner.limits import SEARCH_HIT_BYTES
from upgraderun_runner.text import counted


@dataclass(frozen=True, slots=True)
class Situation:
    """What the rules look at: history, ranked targets, codemods that the policy allows.

    `is_source` says whether a path holds code that a codemod may change: prose that mentions an import
    path isn't renamed, a protected test neither.
    """

    view: RunView
    ranked: tuple[Target, ...]
    codemods: tuple[Codemod, ...]
    is_source: Callable[[str], bool]


def decide(situation: Situation) -> Call:
    """The first rule that fits; the last one always does."""
    for rule in RULES:
        call = rule(situation)
        if call is not None:
            return call
    raise AssertionError("the last rule fits always")


def _apply_first(s: Situation) -> Call | None:
    """Rule 1: nothing applied, nothing tried."""
    if s.view.target is not None or s.view.tried("apply_upgrade") or not s.ranked:
        return None
    best = s.ranked[0]
    return Call("apply_upgrade", {"dependency": best.name, "version": best.to_version})


def _explain_refusal(s: Situation) -> Call | None:
    """Rule 6 after a refusal: what was refused once is refused again."""
    last = s.view.last
    if last is None or not last.is_failed:
        return None
    code = last.reason if last.reason in CODES else _CODE_OF_TOOL.get(last.tool)
    return _blocked(code, last.data.get("message", f"{last.tool} failed: {last.reason}"))


def _normalise(s: Situation) -> Call | None:
    """Rule 2: the pair isn't normalised since it changed."""
    if s.view.target is None or s.view.is_normalised:
        return None
    return Call("normalize_manifests", {})


def _go_on_renaming(s: Situation) -> Call | None:
    """A codemod that has begun comes to its end before the tree is judged again."""
    search = _last_search(s)
    if search is None:
        return None
    for site in _sites(s, search):
        if site not in _edits(s.view):
            return site
    return None


def _validate(s: Situation) -> Call | None:
    """Rule 3: no accepted post validation of this tree."""
    if s.view.target is None or s.view.accepted_validation is not None:
        return None
    return Call("run_validation", {})


def _propose(s: Situation) -> Call | None:
    """Rule 4: it is conclusive and introduced nothing."""
    validation, target = s.view.accepted_validation, s.view.target
    if validation is None or target is None:
        return None
    if not validation.conclusive or validation.introduced != "0":
        return None
    title = f"Upgrade {target.name} from {target.from_version} to {target.to_version}"
    summary = (
        f"{target.name} moves from {target.from_version} to {target.to_version}. "
        "All checks were run before and after; nothing that passed before fails now."
    )
    return Call("prepare_proposal", {"title": title[:120], "summary": summary})


def _start_renaming(s: Situation) -> Call | None:
    """Rule 5: an untried codemod of the policy fits dependency and version range."""
    validation = s.view.accepted_validation
    if validation is None or not validation.conclusive:
        return None
    tried = {step.call.arguments.get("pattern") for step in _searches(s.view) if step.call}
    for codemod in s.codemods:
        if _fits(codemod, s.view.target) and pattern_of(codemod) not in tried:
            return Call("search_files", {"pattern": pattern_of(codemod)})
    return None


def _block(s: Situation) -> Call:
    """Rule 6: nothing else fits."""
    validation = s.view.accepted_validation
    if validation is None:
        return _blocked(None, "no upgrade could be applied and nothing else is left to try")
    if not validation.conclusive:
        return _blocked("validation_inconclusive", "the validation could not be concluded")
    count = int(validation.introduced.partition(":")[0])
    return _blocked("regressed", f"new after the upgrade: {counted(count, 'finding')}")


RULES: Final[tuple[Callable[[Situation], Call | None], ...]] = (
    _apply_first,
    _explain_refusal,
    _normalise,
    _go_on_renaming,
    _validate,
    _propose,
    _start_renaming,
    _block,
)
"""The rules in their order; read from top to bottom they are the agent."""

_CODE_OF_TOOL: Final[Mapping[str, str]] = {
    "prepare_proposal": "not_ready",
    "edit_file": "regressed",
    "search_files": "regressed",
    "run_validation": "validation_inconclusive",
}


def _blocked(code: str | None, reason: str) -> Call:
    arguments: dict[str, Any] = {"reason": reason[:2000] or "blocked"}
    if code is not None:
        arguments["code"] = code
    return Call("report_blocked", arguments)


def _fits(codemod: Codemod, target: Target | None) -> bool:
    """Whether a codemod is meant for this upgrade. An unreadable range fits nothing."""
    if target is None or codemod.dependency != target.name:
        return False
    try:
        return Version(target.to_version) in SpecifierSet(codemod.versions, prereleases=True)
    except (InvalidVersion, InvalidSpecifier):
        return False


def pattern_of(codemod: Codemod) -> str:
    """RE2 pattern for an import path as a whole: not inside a longer name, not after a dot."""
    return rf"(?:^|[^\w.]){re2.escape(codemod.old)}(?:$|[^\w])"


def _searches(view: RunView) -> tuple[StepView, ...]:
    return tuple(step for step in view.settled if step.tool == "search_files" and step.is_done)


def _last_search(s: Situation) -> StepView | None:
    searches = _searches(s.view)
    return searches[-1] if searches else None


def _edits(view: RunView) -> list[Call]:
    return [step.call for step in view.settled if step.call and step.tool == "edit_file"]


def _sites(s: Situation, search: StepView) -> list[Call]:
    """One edit per hit of a search that was a codemod's; hits cut to their bound and prose are left out."""
    pattern = search.call.arguments.get("pattern") if search.call else None
    codemod = next((c for c in s.codemods if pattern_of(c) == pattern), None)
    if codemod is None or search.observed is None:
        return []
    calls: dict[str, Call] = {}
    for hit in search.observed.get("hits", ()):
        old = str(hit["text"])
        if len(old.encode("utf-8")) >= SEARCH_HIT_BYTES or not s.is_source(str(hit["path"])):
            continue
        new = _renamed(old, codemod)
        if new != old:
            call = Call("edit_file", {"path": hit["path"], "old_text": old, "new_text": new})
            calls.setdefault(call.digest, call)
    return list(calls.values())


def _renamed(line: str, codemod: Codemod) -> str:
    """Rename each whole occurrence of the path in a line."""
    whole = re2.compile(rf"(^|[^\w.]){re2.escape(codemod.old)}($|[^\w])")
    renamed: str = whole.sub(lambda match: f"{match[1]}{codemod.new}{match[2]}", line)
    return renamed
