"""Print the scenario table as a matrix: what is expected of each cell, and whether it was seen.

`make scenarios` calls it after playing every cell. It runs nothing itself; the results are those of the
last runs of the cells in this checkout. Exit code 1 if a cell ended otherwise than the table says,
or wasn't played as it stands.
"""

import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.scenarios import load_table
from support.scenarios.matrix import matrix, not_seen
from support.scenarios.results import mark


def main() -> int:
    """Print, and name what wasn't seen as expected."""
    rows = load_table()
    print(matrix(rows, mark, shutil.get_terminal_size((100, 24)).columns))
    wrong = not_seen(rows, mark)
    if wrong:
        print("not seen as expected: " + ", ".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
