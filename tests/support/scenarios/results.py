"""Results of the scenario table's cells, one small file each, as the last run of each cell left it.

Callers: `tests/runs/conftest.py` writes them, `hack/scenarios.py` prints them. A result counts only for
the row as it stands now: a changed row wasn't seen yet.
"""

import hashlib
import json
from pathlib import Path

from support.scenarios.table import Cell, Row

RESULTS = Path(__file__).resolve().parents[3] / "build" / "out" / "scenarios"
SEEN, FAILED, NOT_RUN = "+", "!", "."


def record(row: Row, cell: Cell, *, passed: bool, folder: Path = RESULTS) -> None:
    """Write the result of one cell; the folder is ignored by git."""
    folder.mkdir(parents=True, exist_ok=True)
    result = {"row": _digest(row, cell), "passed": passed}
    file = folder / f"{row.id}-{cell.mode}.json"
    partial = file.with_suffix(".part")
    partial.write_text(json.dumps(result))
    partial.replace(file)


def mark(row: Row, cell: Cell, folder: Path = RESULTS) -> str:
    """How the cell's last run ended: seen as expected, failed, or not run as it stands now."""
    file = folder / f"{row.id}-{cell.mode}.json"
    if not file.is_file():
        return NOT_RUN
    result = json.loads(file.read_text())
    if result["row"] != _digest(row, cell):
        return NOT_RUN
    return SEEN if result["passed"] else FAILED


def _digest(row: Row, cell: Cell) -> str:
    """What the result is about: everything that the table says of this cell."""
    said = [row.repository, row.run, row.policy, row.outages, row.ineligible, row.refusals, cell]
    return hashlib.sha256(repr(said).encode() + row.decision_lines()).hexdigest()
