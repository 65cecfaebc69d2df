"""The scenario table as a matrix for a terminal: expected outcome per mode, and whether it was seen.

Caller: `hack/scenarios.py`. Rows of one refusal each stand under one heading, without its name.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from support.scenarios.results import FAILED, NOT_RUN, SEEN
from support.scenarios.table import MODES, Cell, Row

SHORT = {
    "proposal_prepared": "prepared",
    "proposal_published": "published",
    "requires_newer_toolchain": "newer_toolchain",
    "repair_not_exercised": "not_exercised",
}
FAMILY = "unsupported-"
NAME_MIN = 16
Mark = Callable[[Row, Cell], str]


def matrix(rows: Sequence[Row], mark: Mark, columns: int) -> str:
    """Render all rows within so many columns; names give way first."""
    shown = [
        [f"{mark(row, cell)} {said}" for cell, said in zip(row.cells, _outcomes(row), strict=True)]
        for row in rows
    ]
    widths = [max(len(line[i]) for line in [list(MODES), *shown]) for i in range(len(MODES))]
    longest = max(len(_name(row)) for row in rows)
    room = max(NAME_MIN, min(longest, columns - sum(widths) - len(widths)))
    lines = [_line("scenario", [f"  {mode}" for mode in MODES], widths, room)]
    family = False
    for row, cells in zip(rows, shown, strict=True):
        if row.scenario.startswith(FAMILY) and not family:
            lines.append(f"{FAMILY}*")
        family = row.scenario.startswith(FAMILY)
        lines.append(_line(_name(row), cells, widths, room))
    return "\n".join([*lines, "", *_legend(rows, mark)])


def not_seen(rows: Sequence[Row], mark: Mark) -> list[str]:
    """Name the cells that ended otherwise than the table says, or weren't played as they stand."""
    return [
        f"{row.id}-{cell.mode}" for row in rows for cell in row.cells if mark(row, cell) != SEEN
    ]


def _legend(rows: Sequence[Row], mark: Mark) -> Iterator[str]:
    marks = Counter(mark(row, cell) for row in rows for cell in row.cells)
    yield (
        f"{sum(marks.values())} cells: {SEEN} {marks[SEEN]} seen as expected, "
        f"{FAILED} {marks[FAILED]} failed, {NOT_RUN} {marks[NOT_RUN]} not run as they stand"
    )
    yield "`make scenarios` plays them all; asked: people let the run go on in between"


def _outcomes(row: Row) -> Iterator[str]:
    """What is expected in each mode; `same` as in the mode before."""
    before = ""
    for cell in row.cells:
        said = SHORT.get(cell.outcome, cell.outcome)
        said = f"asked, {said}" if cell.asks else said
        yield "same" if said == before else said
        before = said


def _name(row: Row) -> str:
    family = row.scenario.startswith(FAMILY)
    return f" {row.id.removeprefix(FAMILY)}" if family else row.id


def _line(name: str, cells: Sequence[str], widths: Sequence[int], room: int) -> str:
    parts = [_cut(name, room).ljust(room)]
    parts += [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
    return " ".join(parts).rstrip()


def _cut(name: str, room: int) -> str:
    """Leave out the middle of a name that is too long: its end tells variants apart."""
    if len(name) <= room:
        return name
    head = (room - 1) // 2
    return f"{name[:head]}…{name[len(name) - (room - 1 - head) :]}"
