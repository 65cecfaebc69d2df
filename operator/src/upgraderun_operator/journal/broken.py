"""What status says of a journal that can't be used: the journal itself stays as it is. Pure.

Callers: `adapters.writer`. Nothing else may be written to such a run (security.md H23).
"""

from collections.abc import Mapping
from typing import Any, Final

from upgraderun_operator.journal.conditions import conflict_reason
from upgraderun_operator.model.conditions import (
    STALLS,
    ConditionStatus,
    ConditionType,
    StalledReason,
)
from upgraderun_operator.model.conflicts import CONFLICTS
from upgraderun_protocol.outcomes import ConflictKind

TEXT_MAX: Final = 512
_TOO_NEW: Final = StalledReason.JOURNAL_TOO_NEW
_BROKEN: Final = ConflictKind.JOURNAL_BROKEN


def broken_status(
    status: Mapping[str, Any], message: str, *, too_new: bool, generation: int, now: str
) -> dict[str, Any] | None:
    """The same status with the condition that tells people; None if it says so already.

    Broken: `Conflict` and `conflict{kind}`, so that gauge and field selector find it. Too new:
    `Stalled`, until the operator is upgraded. In both nothing moves, and tools must see it.
    """
    kind = ConditionType.STALLED if too_new else ConditionType.CONFLICT
    told = {kind.value, ConditionType.STALLED.value, ConditionType.RECONCILING.value}
    reason = _TOO_NEW.value if too_new else conflict_reason(_BROKEN.value)
    step = STALLS[_TOO_NEW].next_step if too_new else CONFLICTS[_BROKEN].next_step
    text = f"{message[: 2 * TEXT_MAX - len(step) - 2]}; {step}"
    known = status.get("conditions")
    conditions = list(known) if isinstance(known, list) else []
    before = next((item for item in conditions if item.get("type") == kind.value), None)
    if before is not None and before.get("status") == "True" and before.get("reason") == reason:
        return None
    condition = {
        "type": kind.value,
        "status": ConditionStatus.TRUE.value,
        "reason": reason,
        "message": text,
        "lastTransitionTime": now,
        "observedGeneration": generation,
    }
    rest = [item for item in conditions if item.get("type") not in told]
    stalled = {**condition, "type": ConditionType.STALLED.value}
    added = [stalled] if too_new else [stalled, condition]
    changed: dict[str, Any] = {**status, "conditions": [*rest, *added]}
    if not too_new:
        changed["conflict"] = {
            "kind": reason,
            "expected": "a journal whose entries continue each other up to its head",
            "observed": message[:TEXT_MAX],
            "evidence": ["status.journal"],
        }
    return changed
