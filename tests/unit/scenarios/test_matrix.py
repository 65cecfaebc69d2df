"""`make scenarios`: the matrix fits a terminal and tells what was seen of the table as it stands."""

from dataclasses import replace
from pathlib import Path

import pytest

from support.scenarios import Cell, Row, cells, load_table
from support.scenarios.matrix import matrix, not_seen
from support.scenarios.results import FAILED, NOT_RUN, SEEN, mark, record
from support.scenarios.table import MODES

ROWS = load_table()


class TestResults:
    """A result counts for the row that was run, and for no other."""

    def test_what_was_never_run(self, tmp_path: Path) -> None:
        assert NOT_RUN == mark(ROWS[0], ROWS[0].cells[0], tmp_path)

    @pytest.mark.parametrize(("passed", "expected"), [(True, SEEN), (False, FAILED)])
    def test_what_was_run(self, tmp_path: Path, *, passed: bool, expected: str) -> None:
        row, cell = ROWS[0], ROWS[0].cells[0]
        record(row, cell, passed=passed, folder=tmp_path)
        assert expected == mark(row, cell, tmp_path)
        assert NOT_RUN == mark(row, row.cells[1], tmp_path)

    def test_a_changed_row_was_not_seen(self, tmp_path: Path) -> None:
        row, cell = ROWS[0], ROWS[0].cells[0]
        record(row, cell, passed=True, folder=tmp_path)
        assert NOT_RUN == mark(replace(row, run={"cancel": True}), cell, tmp_path)
        assert NOT_RUN == mark(row, replace(cell, outcome="blocked"), tmp_path)


class TestMatrix:
    """Every row in a line, every cell with its mark."""

    @pytest.mark.parametrize("columns", [80, 100, 200])
    def test_fits_the_terminal(self, columns: int) -> None:
        text = matrix(ROWS, lambda _row, _cell: SEEN, columns)
        assert max(len(line) for line in text.splitlines()) <= columns

    def test_shows_every_cell(self) -> None:
        text = matrix(ROWS, lambda _row, _cell: SEEN, 200)
        lines = text.partition("\n\n")[0].splitlines()
        names = [line.split(" + ")[0].strip() for line in lines if " + " in line]
        assert [row.id.removeprefix("unsupported-") for row in ROWS] == names
        assert f"{len(cells(ROWS))} cells: + {len(cells(ROWS))} seen as expected" in text

    @pytest.mark.parametrize(
        ("other", "told"), [(FAILED, "! 1 failed"), (NOT_RUN, ". 1 not run as they stand")]
    )
    def test_names_what_was_not_seen(self, other: str, told: str) -> None:
        def one(row: Row, cell: Cell) -> str:
            return other if (row.id, cell.mode) == ("major", "Rules") else SEEN

        assert ["major-Rules"] == not_seen(ROWS, one)
        assert told in matrix(ROWS, one, 100)


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_every_row_is_shown_by_a_cell(row: Row) -> None:
    """`make test` plays one mode of it, or all three."""
    played = [cell.mode for cell in row.cells if row.is_shown_by(cell)]

    assert played == ([row.shown_in] if row.shown_in else list(MODES))
