"""The loop's end in whole words: of which upgrade, and what was found (upgrade-run.md §4). Pure.

Caller: the end of a run, before its report. The loop itself reads the journal alone, which holds counts
and codes; people need the names that stand in the evidence.
"""

from typing import Final

from upgraderun_runner.agent.ending import End
from upgraderun_runner.agent.view import RunView
from upgraderun_runner.ecosystems.base import ValidationRecord

SHOWN_MAX: Final = 3
_OF_FINDINGS: Final = frozenset({"regressed", "repair_budget_exhausted"})


def in_whole_words(end: End, view: RunView, after: ValidationRecord | None) -> End:
    """The same end; its message names the upgrade and the first findings of the last validation."""
    subject, found = _subject(view), _found(end, after)
    return End(end.outcome, f"{subject}{end.message}{found}")


def _subject(view: RunView) -> str:
    """The upgrade that stands, else the one that was tried last."""
    target = view.target
    if target is not None:
        return f"{target.name} {target.from_version} -> {target.to_version}: "
    calls = [step.call for step in view.settled if step.call and step.tool == "apply_upgrade"]
    if not calls:
        return ""
    return f"{calls[-1].arguments.get('dependency')} {calls[-1].arguments.get('version')}: "


def _found(end: End, after: ValidationRecord | None) -> str:
    if after is None:
        return ""
    if end.outcome in _OF_FINDINGS:
        return _listed(tuple(finding.key for finding in after.introduced))
    return _listed(after.reasons) if end.outcome == "validation_inconclusive" else ""


def _listed(items: tuple[str, ...]) -> str:
    if not items:
        return ""
    rest = f" and {len(items) - SHOWN_MAX} more" if len(items) > SHOWN_MAX else ""
    return f": {', '.join(items[:SHOWN_MAX])}{rest}"
