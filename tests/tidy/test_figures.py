"""Figures of the house style §2: printed for a review, never a failure (run with `-s` to see them)."""

import ast
import statistics
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("protocol/src", "operator/src", "runner-image/src")
OUTLIERS = 10


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function, its docstring apart."""
    end = function.end_lineno or function.lineno
    first = function.body[0]
    docstring = 0
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        docstring = (first.end_lineno or first.lineno) - first.lineno + 1
    return end - function.lineno + 1 - docstring


def show(title: str, sizes: list[tuple[int, str]]) -> str:
    lengths = sorted(size for size, _ in sizes)
    median = statistics.median(lengths)
    most = lengths[int(len(lengths) * 0.95)]
    outliers = [f"  {size:4d}  {name}" for size, name in sorted(sizes, reverse=True)[:OUTLIERS]]
    return "\n".join([f"{title}: {len(lengths)}, median {median:.0f}, 95 % {most}", *outliers])


def test_figures_are_shown() -> None:
    """§10: prints, and never fails on, the figures of §2 with the ten outliers."""
    files: list[tuple[int, str]] = []
    functions: list[tuple[int, str]] = []
    for source in SOURCES:
        for path in (ROOT / source).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            name = path.relative_to(ROOT).as_posix()
            files.append((len(text.splitlines()), name))
            functions += [
                (body_lines(node), f"{name}:{node.name}")
                for node in ast.walk(ast.parse(text))
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            ]

    told = f"{show('files by lines', files)}\n{show('functions by lines', functions)}"
    print(f"\n{told}")  # noqa: T201  the figures are for reading

    assert 2 * (OUTLIERS + 1) == len(told.splitlines())
