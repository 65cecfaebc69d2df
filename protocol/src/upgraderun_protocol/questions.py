"""What a runner asks people in the middle of its work (upgrade-run.md §9.3, §11).

The runner stores a question as an artifact and parks itself; the operator checks it like a request
body, shows it, and binds it in a request. After the answer the next runner compares what it is about
to do with the same record, so an approval lets through exactly what was asked.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from upgraderun_protocol.records import bounded

QUESTION_VERSION: Final = 1
RANGE_MAX: Final = 320
RANGES_MAX: Final = 100
"""Together at most 32 KiB of ranges are shown; `subject` binds all of them."""


class QuestionKind(StrEnum):
    """What is asked: kinds of UpgradeApproval beside Publication."""

    SCOPE_EXPANSION = "ScopeExpansion"
    """A write above the policy's soft scope; approved: up to the hard one."""
    UNEXERCISED_REPAIR = "UnexercisedRepair"
    """A proposal with repaired lines that no test runs."""


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """One question. `subject` is what an approval is for: digest of the call, or of tree and ranges.

    `files` and `lines` are the size of the repair with what is asked; `files_max` and `lines_max`
    the bounds that an approved scope expansion has. `tree` would be proposed, `ranges` say where no
    test runs it.
    """

    version: int
    kind: str = bounded(string_max=32)
    step: str = bounded(string_max=16)
    tool: str = bounded(string_max=64)
    subject: str = bounded(string_max=64)
    files: int = 0
    lines: int = 0
    files_max: int = 0
    lines_max: int = 0
    tree: str = bounded(string_max=40, default="")
    ranges: tuple[str, ...] = bounded(string_max=RANGE_MAX, items_max=RANGES_MAX, default=())
