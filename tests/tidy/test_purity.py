"""Time, chance and environment come in through constructors; ignores give a reason; tests don't sleep.

House style §1 (12, 13, 22) and §10, read from the syntax trees.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "protocol/src/upgraderun_protocol",
    "operator/src/upgraderun_operator",
    "runner-image/src/upgraderun_runner",
)
MAKERS = (
    "operator/src/upgraderun_operator/adapters/",
    "operator/src/upgraderun_operator/settings.py",
    "operator/src/upgraderun_operator/main.py",
    "runner-image/src/upgraderun_runner/main.py",
)
"""§1, 12: these alone make clocks, chance and environment."""

PROGRAMS = (
    "runner-image/src/upgraderun_runner/ecosystems/python/plugin/",
    "runner-image/src/upgraderun_runner/ecosystems/python/scripts/",
    "runner-image/src/upgraderun_runner/sandbox/netns_exec.py",
)
"""Started as processes of their own by a sandbox command; imported by nothing."""

NONDETERMINISTIC = frozenset({"time", "random", "secrets", "uuid"})
IMPURE_NAMES = frozenset(
    {
        *(f"os.{name}" for name in ("environ", "getenv", "urandom")),
        *(f"{kind}.{name}" for kind in ("datetime", "date") for name in ("now", "utcnow", "today")),
        *(f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")),
        *(f"{module}.sleep" for module in ("asyncio", "time")),
    }
)
NOQA = re.compile(r"#\s*noqa\b(?P<rest>.*)")
TYPE_IGNORE = re.compile(r"#\s*type:\s*ignore\b(?P<rest>.*)")
NO_COVER = re.compile(r"#\s*pragma:\s*no cover\b(?P<rest>.*)")
MYPY_LINE = re.compile(r"#\s*mypy:")


def sources(*below: str) -> list[Path]:
    return sorted(path for folder in below for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def impurities(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Uses of clock, sleep, chance, ids or environment, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for what in impure_imports(node):
                yield node.lineno, what
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in IMPURE_NAMES:
            yield node.lineno, ast.unparse(node)


def impure_imports(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """What an import brings that only the edges may have."""
    if isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    else:
        names = [alias.name for alias in node.names]
    for name in names:
        if name.partition(".")[0] in NONDETERMINISTIC or name in IMPURE_NAMES:
            yield name


def found_in(source: str) -> list[str]:
    return [what for _, what in impurities(ast.parse(source))]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import time", ["time"]),
        ("from uuid import uuid4", ["uuid.uuid4"]),
        ("import os\nos.environ['X']", ["os.environ"]),
        ("from os import getenv", ["os.getenv"]),
        ("datetime.now(UTC)", ["datetime.now"]),
        ("await asyncio.sleep(1)", ["asyncio.sleep"]),
        ("clock.now()", []),
        ("await self._sleep(1)", []),
        ("import os\nos.path.join('a')", []),
    ],
)
def test_the_search_finds_what_it_is_for(source: str, expected: list[str]) -> None:
    """Else an empty list below would prove nothing."""
    assert expected == found_in(source)


@pytest.mark.parametrize("package", PACKAGES)
def test_only_the_edges_make_clocks_chance_and_environment(package: str) -> None:
    """§1, 12."""
    found = [
        f"{name_of(path)}:{line}: {what}"
        for path in sources(package)
        if not name_of(path).startswith((*MAKERS, *PROGRAMS))
        for line, what in impurities(ast.parse(path.read_text(encoding="utf-8")))
    ]

    assert [] == found


def comments(path: Path) -> Iterator[tuple[int, str]]:
    text = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def gives_code_and_reason(comment: str) -> bool:
    """`# noqa: S105  why`, `# type: ignore[arg-type]  # why`, `# pragma: no cover  why`."""
    reason = r"\s*[-#:]*\s*\S.{3,}"
    rules: tuple[tuple[re.Pattern[str], str], ...] = (
        (NOQA, r":\s*[A-Z]+[0-9]+(?:\s*,\s*[A-Z]+[0-9]+)*" + reason),
        (TYPE_IGNORE, r"\[[a-z-]+(?:,\s*[a-z-]+)*\]" + reason),
        (NO_COVER, reason),
    )
    for pattern, shape in rules:
        match = pattern.search(comment)
        if match is not None and not re.match(shape, match["rest"].strip()):
            return False
    return not MYPY_LINE.search(comment)


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("# noqa", False),
        ("# noqa: S105", False),
        ("# noqa: S105  a verdict, not a password", True),
        ("# noqa: S105 - a verdict", True),
        ("# type: ignore", False),
        ("# type: ignore[arg-type]", False),
        ("# type: ignore[arg-type]  # rows are typed above", True),
        ("# mypy: ignore-errors", False),
        ("# an ordinary remark", True),
    ],
)
def test_an_ignore_is_recognised(comment: str, *, expected: bool) -> None:
    assert expected is gives_code_and_reason(comment)


def test_every_ignore_names_its_code_and_its_reason() -> None:
    """§1, 13."""
    silent = [
        f"{name_of(path)}:{line}: {comment}"
        for path in sources(*PACKAGES, "hack", "tests")
        if path != Path(__file__).resolve()
        for line, comment in comments(path)
        if not gives_code_and_reason(comment)
    ]

    assert [] == silent


def is_a_sleep(node: ast.AST) -> bool:
    """A call of a real sleep; `sleep(0)` only lets other tasks run."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
        return False
    if ast.unparse(node.func) not in {"asyncio.sleep", "time.sleep", "sleep"}:
        return False
    return ast.unparse(node.args[0]) != "0" if node.args else True


def test_no_test_sleeps() -> None:
    """§1, 22: waiting is for a state, with a deadline; shared code that polls stands in support."""
    found = [
        f"{name_of(path)}: {ast.unparse(node)}"
        for path in sources("tests")
        if not name_of(path).startswith("tests/support/")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if is_a_sleep(node)
    ]

    assert [] == found
