"""The list of guards is whole, each edit has its one place, each test exists; and the tool can tell.

A removal that nobody notices, one that breaks the program instead of its guard, a test that fails before:
each is shown to be told, on a small tree (reliability.md §8).
"""

import ast
import shutil
from pathlib import Path

import pytest

from guardlib.cli import check, listed
from guardlib.removal import Edit, Guard, NoSuchPlaceError, Removal
from guardlib.table import GUARDS, NAMES
from guardlib.trial import BrokenTrialError, Trials

ROOT = Path(__file__).resolve().parents[2]
EVERY = tuple(removal for guard in GUARDS for removal in guard.removals)
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def names_in(file: Path) -> set[str]:
    """Tests of a file, as pytest names them without cases."""
    found: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, FUNCTIONS):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            functions = [each.name for each in node.body if isinstance(each, FUNCTIONS)]
            found |= {f"{node.name}::{name}" for name in functions}
    return found


class TestTable:
    """The closed list of reliability.md §8, as far as it must be noticed."""

    def test_holds_every_guard_of_the_list_once(self) -> None:
        assert NAMES == tuple(guard.name for guard in GUARDS)
        assert len(NAMES) == len(set(NAMES)) == 13
        assert all(guard.removals for guard in GUARDS)

    @pytest.mark.parametrize("removal", EVERY, ids=lambda each: each.without)
    def test_each_removal_has_one_place_and_tests_that_exist(self, removal: Removal) -> None:
        edited = removal.edit.applied((ROOT / removal.edit.file).read_text(encoding="utf-8"))
        compile(edited, removal.edit.file, "exec")
        assert removal.tests
        for test in removal.tests:
            file, _, name = test.partition("::")
            assert name in names_in(ROOT / file), test

    def test_stands_whole_on_its_page(self) -> None:
        page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")

        assert "\n".join(listed(GUARDS)) in page, "put what `hack/guards --list` prints there"


SOURCE = "protocol/src/upgraderun_protocol/__init__.py"
ASIDE = "protocol/src/upgraderun_protocol/aside.py"
TEST = "tests/test_ids.py::test_ids"
SMALL = {
    SOURCE: "def is_id(text):\n    # Forty digits.\n    return len(text) == 40\n",
    ASIDE: "NOTHING = 0\n",
    "operator/src/none": "",
    "runner-image/src/none": "",
    "hack/lib/none": "",
    "tests/test_ids.py": (
        "from upgraderun_protocol import is_id\n\n\n"
        "def test_ids():\n    assert is_id('f' * 40)\n    assert not is_id('f' * 41)\n"
    ),
    "pyproject.toml": (
        "[tool.pytest.ini_options]\n"
        'addopts = "--import-mode=importlib"\n'
        'asyncio_default_fixture_loop_scope = "function"\n'
    ),
}
"""A tree with one guard and one test."""
WRONG = Edit(SOURCE, "== 40", ">= 40")
HARMLESS = Edit(SOURCE, "Forty", "40")
RAISES = Edit(SOURCE, "return", "assert False\n    return")
GARBLED = Edit(SOURCE, "return", "return return")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small tree, with the tool itself in it."""
    root = tmp_path_factory.mktemp("small")
    for name, text in SMALL.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "hack/lib/guardlib", root / "hack/lib/guardlib")
    return root


def told(root: Path, scratch: Path, *removals: Removal) -> tuple[int, list[str]]:
    """Exit code and lines of a table with these removals."""
    said: list[str] = []
    code = check([Guard("length", "here", removals)], root, scratch, said.append)
    return code, said


class TestTool:
    """Every named test must tell, and nothing but an assertion of the test counts."""

    def test_tells_of_a_removal_that_goes_unnoticed(self, small: Path, tmp_path: Path) -> None:
        edits = {"shorter": WRONG, "words": HARMLESS, "raises": RAISES, "garbled": GARBLED}
        removals = (Removal(name, edit, (TEST,)) for name, edit in edits.items())

        code, said = told(small, tmp_path, *removals)

        assert 1 == code
        assert "1 of 4 removals of 1 guards were noticed" in said[-1]
        for (name, found), line in zip(
            {
                "shorter": "AssertionError: assert not True + where True = is_id(('f' * 41)) |",
                "words": "UNNOTICED: passed |",
                "raises": "UNNOTICED: raised: AssertionError",
                "garbled": "UNNOTICED: didn't run: ",
            }.items(),
            said[2:6],
            strict=True,
        ):
            assert line.startswith(f"| length | here | {SOURCE}: {name} | {TEST} | {found}")

    def test_says_yes_where_everything_is_noticed(self, small: Path, tmp_path: Path) -> None:
        code, said = told(small, tmp_path, Removal("shorter", WRONG, (TEST,)))

        assert 0 == code
        assert "1 of 1 removals of 1 guards were noticed" in said[-1]

    def test_wants_the_tests_to_pass_before(self, small: Path, tmp_path: Path) -> None:
        broken = tmp_path / "broken"
        shutil.copytree(small, broken)
        WRONG.apply(broken)

        code, said = told(broken, tmp_path, Removal("words", HARMLESS, (TEST,)))

        assert 1 == code
        assert said[0].startswith(f"{TEST} must pass on the unedited tree: asserted: ")

    def test_refuses_an_edit_that_the_tests_never_load(self, small: Path, tmp_path: Path) -> None:
        removal = Removal("aside", Edit(ASIDE, "0", "1"), (TEST,))

        with pytest.raises(BrokenTrialError, match=r"aside\.py was never loaded"):
            Trials(small, tmp_path).seen(removal)

    def test_refuses_modules_of_another_tree(self, small: Path, tmp_path: Path) -> None:
        other = tmp_path / "other"
        shutil.copytree(small, other)
        (other / SOURCE).unlink()
        (other / ASIDE).unlink()
        test = (
            "from upgraderun_protocol.canonical import is_git_id\n\n\ndef test_ids():\n    pass\n"
        )
        (other / "tests/test_ids.py").write_text(test, encoding="utf-8")

        with pytest.raises(BrokenTrialError, match="another tree"):
            Trials(other, tmp_path).untouched([Removal("any", WRONG, (TEST,))])

    @pytest.mark.parametrize("find", ["no such place", "t"])
    def test_refuses_an_edit_without_its_one_place(self, find: str) -> None:
        with pytest.raises(NoSuchPlaceError, match="not one"):
            Edit(SOURCE, find, "").applied(SMALL[SOURCE])
