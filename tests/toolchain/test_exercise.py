"""Coverage of repairs with the real coverage.py (upgrade-run.md §7.4, uv-facts §6)."""

from pathlib import Path

import pytest

from support.fixtures.packages import Package
from support.pythonbench import Bench, release
from upgraderun_runner.ecosystems.base import AcquisitionRecord

pytestmark = pytest.mark.slow

SOURCE = """\
import aa


def used(x):
    if x > 1:
        return aa.value()
    return 0


def helper(x):  # pragma: no cover
    return x


def unused(x):
    return x
"""
TESTS = """\
import subprocess
import sys
import lib


def test_used():
    assert lib.used(2) == 1
    assert lib.used(0) == 0


def test_helper_in_a_subprocess():
    subprocess.run([sys.executable, "-c", "import lib; lib.helper(1)"], check=True)
"""
FILES = {"lib.py": SOURCE, "test_lib.py": TESTS, "data.txt": "a"}


async def judged(
    bench: Bench, *changes: tuple[str, str], paths: tuple[str, ...] = ("lib.py",)
) -> tuple[str, list[tuple[int, int, bool]]]:
    tree, acquired = await prepared(bench)
    text = SOURCE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    after = bench.changed(tree, bench.ecosystem.read_pair(tree, "."), {"lib.py": text})
    record = await bench.coverage(after, tree, acquired, *paths)
    rows = [(j.first_line, j.last_line, j.exercised) for j in record.judgements]
    return record.problem, rows


async def prepared(bench: Bench) -> tuple[Path, AcquisitionRecord]:
    bench.publish(Package("aa", (release("1.0.0"),)))
    tree = bench.snapshot(bench.manifest("aa"), FILES)
    return tree, await bench.acquire(tree)


async def test_each_changed_line_is_judged(bench: Bench) -> None:
    found = await judged(
        bench,
        ("x > 1", "x > 1.5"),
        ("return 0", "return 0 * x"),
        ("def unused(x):\n    return x", "def unused(x):\n    return x + 1"),
    )

    assert ("", [(5, 5, True), (7, 7, True), (15, 15, False)]) == found


async def test_a_pragma_hides_nothing_and_subprocesses_are_seen(bench: Bench) -> None:
    found = await judged(bench, ("cover\n    return x", "cover\n    return +x"))

    assert ("", [(11, 11, True)]) == found


async def test_tests_that_fail_under_coverage_show_nothing(bench: Bench) -> None:
    problem, rows = await judged(bench, ("return 0", "return 5"))

    assert "tests fail under coverage: test:test_lib.py:test_used" == problem
    assert [(1, 1, False)] == rows


async def test_what_is_no_source_is_never_shown_and_tests_and_pair_are_not_judged(
    bench: Bench,
) -> None:
    paths = ("data.txt", "test_lib.py", "uv.lock", "pyproject.toml")

    assert ("", [(1, 1, False)]) == await judged(bench, paths=paths)
