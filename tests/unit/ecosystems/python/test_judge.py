"""Which changed lines count as exercised (upgrade-run.md §7.4); in doubt none."""

from textwrap import dedent

import pytest

from upgraderun_runner.ecosystems.python.judge import FileCoverage, coverage_of, judge_file


def ran(*lines: int, branches: str = "", missing: str = "") -> FileCoverage:
    """Coverage with executed lines and branches such as `2>3 2>5`."""
    return FileCoverage(frozenset(lines), frozenset(), _branches(branches), _branches(missing))


def _branches(text: str) -> frozenset[tuple[int, int]]:
    pairs = (pair.split(">") for pair in text.split())
    return frozenset((int(start), int(end)) for start, end in pairs)


def judged(before: str, after: str, coverage: FileCoverage | None) -> list[tuple[int, int, bool]]:
    found = judge_file("a.py", dedent(before), dedent(after), coverage)
    for judgement in found:
        assert judgement.exercised is not bool(judgement.reason)
    return [(j.first_line, j.last_line, j.exercised) for j in found]


FUNCTION = """\
import os

def f(x):
    y = g(x)
    return y
"""


class TestInAFunction:
    def test_a_statement_that_ran(self) -> None:
        after = FUNCTION.replace("g(x)", "h(x)")

        assert [(4, 4, True)] == judged(FUNCTION, after, ran(1, 3, 4, 5))
        assert [(4, 4, False)] == judged(FUNCTION, after, ran(1, 3))

    def test_a_statement_over_several_lines_counts_by_its_first(self) -> None:
        before = "def f(x):\n    return g(\n        x,\n        old=1,\n    )\n"
        after = before.replace("old", "new")

        assert [(4, 4, True)] == judged(before, after, ran(1, 2))
        assert [(4, 4, False)] == judged(before, after, ran(1, 4))

    def test_neighbours_with_one_verdict_are_joined(self) -> None:
        after = FUNCTION.replace("g(x)", "h(x)").replace("return y", "return y + 1")

        assert [(4, 5, True)] == judged(FUNCTION, after, ran(1, 3, 4, 5))
        assert [(4, 4, True), (5, 5, False)] == judged(FUNCTION, after, ran(1, 3, 4))

    def test_a_changed_condition_needs_every_branch(self) -> None:
        before = "def f(x):\n    if x.a:\n        return 1\n    return 2\n"
        after = before.replace("x.a", "x.b")

        assert [(2, 2, True)] == judged(before, after, ran(1, 2, 3, 4, branches="2>3 2>4"))
        assert [(2, 2, False)] == judged(before, after, ran(1, 2, 3, branches="2>3", missing="2>4"))
        assert [(2, 2, False)] == judged(before, after, ran(1, 2, 3, 4))

    def test_a_changed_line_below_a_condition_needs_no_branches(self) -> None:
        before = "def f(x):\n    if x:\n        return 1\n    return 2\n"

        assert [(3, 3, True)] == judged(
            before, before.replace("return 1", "return 9"), ran(1, 2, 3, missing="2>4")
        )

    @pytest.mark.parametrize(
        "line",
        [
            "return 1 if x.b else 2",
            "return x.b or x",
            "return [y for y in x if y.b]",
            "if x.b: return 1",
            "return sorted(x, key=lambda y: y.b)",
        ],
    )
    def test_a_changed_condition_inside_a_line_cannot_be_shown(self, line: str) -> None:
        before = f"def f(x):\n    {line.replace('.b', '.a')}\n"

        assert [(2, 2, False)] == judged(before, f"def f(x):\n    {line}\n", ran(1, 2))

    def test_an_unchanged_condition_inside_a_changed_line_is_fine(self) -> None:
        before = "def f(x):\n    return g(x.a or 1)\n"

        assert [(2, 2, True)] == judged(before, before.replace("g(", "h("), ran(1, 2))

    def test_a_changed_case_needs_every_branch(self) -> None:
        before = "def f(x):\n    match x:\n        case 1:\n            return 2\n    return 3\n"
        after = before.replace("case 1", "case 7")

        assert [(3, 3, True)] == judged(before, after, ran(1, 2, 3, 4, 5, branches="3>4 3>5"))
        assert [(3, 3, False)] == judged(before, after, ran(1, 2, 3, branches="3>5", missing="3>4"))

    def test_a_changed_except_clause_needs_to_have_run(self) -> None:
        before = "def f():\n    try:\n        g()\n    except A:\n        h()\n"
        after = before.replace("except A", "except B")

        assert [(4, 4, True)] == judged(before, after, ran(1, 2, 3, 4, 5))
        assert [(4, 4, False)] == judged(before, after, ran(1, 2, 3))

    def test_a_function_on_one_line_cannot_be_shown(self) -> None:
        assert [(1, 1, False)] == judged("def f(): return 1\n", "def f(): return 2\n", ran(1))


class TestSignature:
    def test_a_statement_of_the_body_ran(self) -> None:
        after = FUNCTION.replace("f(x)", "f(x, *, z=0)")

        assert [(3, 3, True)] == judged(FUNCTION, after, ran(1, 3, 4))
        assert [(3, 3, False)] == judged(FUNCTION, after, ran(1, 3))

    def test_a_removed_or_renamed_function_is_never_shown(self) -> None:
        after = FUNCTION.replace("def f", "def renamed")

        assert [(3, 3, False)] == judged(FUNCTION, after, ran(1, 3, 4, 5))

    def test_a_method_of_another_class_is_another_function(self) -> None:
        before = "class A:\n    def f(self):\n        return 1\n"

        found = judged(before, before.replace("class A", "class B"), ran(1, 2, 3))

        assert [(1, 1, False)] == found

    def test_a_decorator_is_never_shown(self) -> None:
        before = "@a\ndef f():\n    return 1\n"

        assert [(1, 1, False)] == judged(before, before.replace("@a", "@b"), ran(1, 2, 3))
        assert [(1, 1, False)] == judged(before, before.replace("@a\n", ""), ran(1, 2))


class TestModuleLevel:
    def test_an_import_needs_to_have_run(self) -> None:
        after = FUNCTION.replace("import os", "import sys")

        assert [(1, 1, True)] == judged(FUNCTION, after, ran(1, 3))
        assert [(1, 1, False)] == judged(FUNCTION, after, ran(3))

    def test_an_import_in_a_function_too(self) -> None:
        before = "def f():\n    from a import b\n    return b\n"

        assert [(2, 2, True)] == judged(before, before.replace("a ", "c "), ran(1, 2, 3))

    @pytest.mark.parametrize("line", ["X = 2", "class A(B): pass", "register(f)"])
    def test_other_statements_are_never_shown(self, line: str) -> None:
        assert [(1, 1, False)] == judged("X = 1\n", f"{line}\n", ran(1))

    def test_a_class_attribute_is_never_shown(self) -> None:
        before = "class A:\n    x = 1\n"

        assert [(2, 2, False)] == judged(before, before.replace("1", "2"), ran(1, 2))

    def test_comments_blanks_and_docstrings_need_nothing(self) -> None:
        after = '"""Now documented."""\n\n# a comment\n' + FUNCTION.replace(
            "    y =", '    """Too."""\n\n    y ='
        )

        assert [] == judged(FUNCTION, after, ran())


class TestRemoved:
    def test_the_code_around_it_ran(self) -> None:
        after = FUNCTION.replace("    y = g(x)\n", "")
        before = FUNCTION.replace("    y", "    a = 1\n    y", 1)

        assert [] == judged(before, before.replace("    y = g(x)\n", ""), ran(1, 3, 4, 5))
        assert [(4, 4, False)] == judged(before, before.replace("    y = g(x)\n", ""), ran(1, 3, 4))
        assert [(3, 3, False)] == judged(FUNCTION, after, ran(1, 3))

    def test_a_removed_import_needs_a_module_that_was_loaded(self) -> None:
        after = FUNCTION.replace("import os\n", "")

        assert [] == judged(FUNCTION, after, ran(2))
        assert [(1, 1, False)] == judged(FUNCTION, after, ran())

    def test_a_removed_statement_of_module_level_is_never_shown(self) -> None:
        assert [(1, 1, False)] == judged("import a\nX = 1\n", "import a\n", ran(1))

    def test_code_replaced_by_a_comment_is_removed(self) -> None:
        before = "def f():\n    a()\n    b()\n    c()\n"
        after = before.replace("b()", "# nothing")

        assert [] == judged(before, after, ran(1, 2, 4))
        assert [(3, 3, False)] == judged(before, after, ran(1, 2))


class TestNoCoverage:
    def test_a_file_without_record_is_not_exercised(self) -> None:
        after = FUNCTION.replace("g(x)", "h(x)")

        assert [(4, 4, False)] == judged(FUNCTION, after, None)

    def test_a_file_that_cannot_be_parsed_is_not_exercised(self) -> None:
        assert [(1, 1, False)] == judged(FUNCTION, "def f(:\n", ran(1))

    def test_a_new_file_is_judged_whole(self) -> None:
        assert [(1, 1, True), (3, 4, True), (5, 5, False)] == judged("", FUNCTION, ran(1, 3, 4))


def test_the_report_of_coverage_py_is_read_strictly() -> None:
    row: dict[str, object] = {
        "executed_lines": [1, 2],
        "missing_lines": [3],
        "executed_branches": [[1, 2]],
        "missing_branches": [[1, -1]],
    }

    assert FileCoverage(
        frozenset({1, 2}), frozenset({3}), frozenset({(1, 2)}), frozenset({(1, -1)})
    ) == coverage_of(row)
    for name in row:
        for wrong in (None, ["1"], [True], "12"):
            with pytest.raises((TypeError, ValueError)):
                coverage_of({**row, name: wrong})
