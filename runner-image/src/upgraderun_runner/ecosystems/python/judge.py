"""Which changed lines of a Python file a test is known to have run (upgrade-run.md §7.4).

Callers: exercise. Pure: two sources and one file's coverage in, judgements out. In doubt a line isn't
exercised: coverage.py knows branches between *lines*, so a changed condition inside a line can't be shown.

| changed | shown by |
|---|---|
| blank, comment, docstring | nothing is needed |
| import | the line ran |
| statement in a function | it ran; its condition: every branch out of it was taken |
| signature | a statement of the body ran |
| removed line | the lines around it in the same function ran |
| module and class level, decorators, removed functions | never shown |
"""

import ast
import difflib
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from upgraderun_runner.ecosystems.base import LineJudgement
from upgraderun_runner.ecosystems.python.source import FUNCTIONS, Function, Source

_SILENT = (ast.Global, ast.Nonlocal)


@dataclass(frozen=True, slots=True)
class FileCoverage:
    """What coverage.py says of one file; branches are (from line, to line)."""

    executed: frozenset[int]
    missing: frozenset[int]
    branches: frozenset[tuple[int, int]]
    missing_branches: frozenset[tuple[int, int]]

    def took_every_branch(self, line: int) -> bool:
        """Whether the line has branches out of it and each was taken."""
        taken = any(start == line for start, _ in self.branches)
        return taken and not any(start == line for start, _ in self.missing_branches)


@dataclass(frozen=True, slots=True)
class _Verdict:
    line: int
    exercised: bool
    reason: str


def judge_file(
    path: str, before: str, after: str, coverage: FileCoverage | None
) -> tuple[LineJudgement, ...]:
    """Judge every changed line of a file; `before` is empty for a new file."""
    try:
        old, new = Source(before), Source(after)
    except (SyntaxError, ValueError, tokenize.TokenError) as error:
        return (LineJudgement(path, 1, 1, False, f"it can't be parsed: {error}"),)
    verdicts = list(_verdicts(old, new, coverage))
    return tuple(_ranges(path, verdicts))


def _verdicts(old: Source, new: Source, coverage: FileCoverage | None) -> Iterator[_Verdict]:
    matcher = difflib.SequenceMatcher(None, old.lines, new.lines, autojunk=False)
    for tag, old_first, old_end, new_first, new_end in matcher.get_opcodes():
        if tag == "equal":
            continue
        lines = range(new_first + 1, new_end + 1)
        judged = [v for line in lines if (v := _changed_line(line, old, new, coverage))]
        yield from judged
        yield from _removed_lines(
            _Removal(range(old_first + 1, old_end + 1), max(1, new_end), bool(judged)),
            old,
            new,
            coverage,
        )


@dataclass(frozen=True, slots=True)
class _Removal:
    """Lines that went, the line where they were, and whether judged code stands there now."""

    lines: range
    anchor: int
    replaced: bool


def _changed_line(
    line: int, old: Source, new: Source, coverage: FileCoverage | None
) -> _Verdict | None:
    """Judge one line that is there now; None if nothing is needed."""
    statement = new.statement_at(line)
    if line not in new.code or statement is None or isinstance(statement, _SILENT):
        return None
    if coverage is None:
        return _Verdict(line, False, "coverage has no record of the file")
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return _ran(line, statement.lineno, coverage, "the import")
    if line in new.decorators:
        return _Verdict(line, False, "a decorator can't be shown to be exercised")
    if isinstance(statement, FUNCTIONS):
        return _signature(line, statement, coverage)
    function = new.function_at(line)
    if function is None or isinstance(statement, ast.ClassDef):
        return _Verdict(line, False, "a statement of module or class level")
    return _in_function(line, statement, function, old, new, coverage)


def _ran(line: int, first: int, coverage: FileCoverage, what: str) -> _Verdict:
    ran = first in coverage.executed
    return _Verdict(line, ran, "" if ran else f"no test ran {what}")


def _signature(line: int, function: Function, coverage: FileCoverage) -> _Verdict:
    body = range(function.body[0].lineno, (function.end_lineno or function.lineno) + 1)
    inside = any(number in coverage.executed for number in body)
    one_line = function.body[0].lineno == function.lineno
    if one_line:
        return _Verdict(line, False, "a function on one line can't be shown to be exercised")
    return _Verdict(line, inside, "" if inside else f"no test ran the body of {function.name}")


def _in_function(
    line: int,
    statement: ast.stmt,
    function: Function,
    old: Source,
    new: Source,
    coverage: FileCoverage,
) -> _Verdict:
    if statement.lineno == function.lineno:
        return _Verdict(line, False, "a function on one line can't be shown to be exercised")
    fresh = new.conditions_of(statement) - old.conditions_in(new.name_of(function))
    if fresh:
        return _Verdict(line, False, "a condition inside a line can't be shown to be exercised")
    branching = _branching_line(line, statement)
    if branching is not None and not coverage.took_every_branch(branching):
        return _Verdict(line, False, "no test took every branch of the condition")
    handler = _handler_line(line, statement)
    return _ran(line, handler or statement.lineno, coverage, "the statement")


def _branching_line(line: int, statement: ast.stmt) -> int | None:
    """The line whose branches a changed condition has: the header of if, while, or one case."""
    if isinstance(statement, ast.If | ast.While):
        end = statement.test.end_lineno or statement.lineno
        return statement.lineno if line <= end else None
    if isinstance(statement, ast.Match):
        for case in statement.cases:
            last = case.guard or case.pattern
            if case.pattern.lineno <= line <= (last.end_lineno or last.lineno):
                return case.pattern.lineno
    return None


def _handler_line(line: int, statement: ast.stmt) -> int | None:
    """The `except` clause that a changed line heads."""
    if isinstance(statement, ast.Try | ast.TryStar):
        for handler in statement.handlers:
            if handler.lineno <= line < handler.body[0].lineno:
                return handler.lineno
    return None


def _removed_lines(
    removal: _Removal, old: Source, new: Source, coverage: FileCoverage | None
) -> Iterator[_Verdict]:
    """Judge what went; the first line that speaks against it is enough."""
    gone = {old.name_of(f) for f in old.functions if f.lineno in removal.lines} - new.names
    if gone:
        reason = f"removed or renamed: {', '.join(sorted(gone))}"
        yield _Verdict(removal.anchor, False, reason)
        return
    for line in removal.lines:
        reason = _removed_line(line, removal, old, new, coverage)
        if reason:
            yield _Verdict(removal.anchor, False, reason)
            return


def _removed_line(
    line: int,
    removal: _Removal,
    old: Source,
    new: Source,
    coverage: FileCoverage | None,
) -> str:
    """Say why a removed line can't be shown to be exercised; empty if it can, or needs nothing."""
    statement = old.statement_at(line)
    if line not in old.code or statement is None:
        return ""
    if coverage is None or not coverage.executed:
        return "coverage has no record of the file"
    if isinstance(statement, ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal):
        return ""
    if line in old.decorators:
        return "a removed decorator"
    if isinstance(statement, FUNCTIONS):
        return ""
    function = old.function_at(line)
    if function is None:
        return "a removed statement of module or class level"
    if removal.replaced:
        return ""
    around = new.around(removal.anchor, old.name_of(function))
    if around and all(number in coverage.executed for number in around):
        return ""
    return "no test ran the code around what was removed"


def _ranges(path: str, verdicts: Iterable[_Verdict]) -> Iterator[LineJudgement]:
    """Join neighbours with the same verdict; of several on one line the one that says no wins."""
    by_line: dict[int, _Verdict] = {}
    for verdict in verdicts:
        known = by_line.setdefault(verdict.line, verdict)
        if known.exercised:
            by_line[verdict.line] = verdict
    unique = [(line, by_line[line].exercised, by_line[line].reason) for line in sorted(by_line)]
    start = end = 0
    kind: tuple[bool, str] | None = None
    for line, exercised, reason in unique:
        if kind == (exercised, reason) and line <= end + 1:
            end = line
            continue
        if kind is not None:
            yield LineJudgement(path, start, end, *kind)
        start = end = line
        kind = (exercised, reason)
    if kind is not None:
        yield LineJudgement(path, start, end, *kind)


def coverage_of(row: Mapping[str, object]) -> FileCoverage:
    """Read one file of coverage.py's JSON. Raises TypeError or ValueError for anything unexpected."""
    return FileCoverage(
        executed=frozenset(_numbers(row.get("executed_lines"))),
        missing=frozenset(_numbers(row.get("missing_lines"))),
        branches=frozenset(_pairs(row.get("executed_branches"))),
        missing_branches=frozenset(_pairs(row.get("missing_branches"))),
    )


def _numbers(value: object) -> list[int]:
    if not isinstance(value, list) or not all(type(item) is int for item in value):
        raise TypeError("coverage.py wrote no list of lines")
    return value


def _pairs(value: object) -> list[tuple[int, int]]:
    if not isinstance(value, list):
        raise TypeError("coverage.py wrote no list of branches")
    return [(start, end) for start, end in map(_numbers, value)]
