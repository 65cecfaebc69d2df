"""`make crash-matrix`: strike at every fault point of the table, and print what came of each.

Callers: `hack/crash-matrix`. The list is computed from the table of effects; a point that no test
reached, or whose test failed, makes the command fail.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from support.crash import KILLS, MINTED, RESULTS_VARIABLE
from upgraderun_protocol.effects import Program, points_of

ROOT: Final = Path(__file__).resolve().parents[2]
TESTS: Final[Mapping[Program, tuple[str, ...]]] = {
    Program.RUNNER: ("tests/crash/test_runner.py",),
    Program.PUBLISHER: ("tests/crash/test_publisher.py",),
    Program.OPERATOR: (
        "tests/crash/test_operator.py",
        "tests/api/runner_api/test_tokens.py::TestCrash",
    ),
}
HEAD: Final = ("program", "point", "scenario", "what recovery found and did", "end", "retries")


def test_of(program: Program, point: str) -> str:
    """The test that strikes at a point, as pytest names it."""
    effect, _, position = point.rpartition(".")
    if effect in MINTED:
        name = "test_the_next_call_mints_under_the_next_count"
        return f"{TESTS[program][1]}::{name}[{effect.removesuffix('_token')}-{position}]"
    article = "an" if program is Program.OPERATOR else "a"
    return f"{TESTS[program][0]}::test_{article}_{program}_struck_at[{point}]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests, then print the matrix; with `--list` only the list."""
    parser = argparse.ArgumentParser(prog="hack/crash-matrix", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the points and their tests only")
    parser.add_argument("--results", type=Path, help="print what an earlier run kept there")
    parser.add_argument(
        "--only", action="append", choices=[str(one) for one in Program], help="may be repeated"
    )
    options = parser.parse_args(arguments)
    programs = tuple(Program(one) for one in options.only or Program)
    if options.list:
        for program in programs:
            for point in points_of(program):
                _say(
                    f"{program:<10} {KILLS[program][point].spelt(point):<32} {test_of(program, point)}"
                )
        return 0
    with tempfile.TemporaryDirectory() as folder:
        results = options.results or Path(folder) / "results.jsonl"
        code = 0 if options.results else _run(programs, results)
        return max(code, _print(programs, results))


def _run(programs: tuple[Program, ...], results: Path) -> int:
    """One session per program, one after the other, each on two workers with worlds of their own."""
    code = 0
    for program in programs:
        started = time.monotonic()
        argv = (sys.executable, "-m", "pytest", "-q", "-n", "2", *TESTS[program])
        done = subprocess.run(
            argv, cwd=ROOT, env={**os.environ, RESULTS_VARIABLE: str(results)}, check=False
        )
        code = max(code, done.returncode)
        _say(f"{program}: {time.monotonic() - started:.0f} s")
    return code


def _print(programs: tuple[Program, ...], results: Path) -> int:
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    kept: dict[tuple[str, str], dict[str, Any]] = {}
    for line in lines:
        row = json.loads(line)
        kept[row["program"], row["point"].partition("@")[0]] = row
    _say("| " + " | ".join(HEAD) + " |")
    _say("|" + "---|" * len(HEAD))
    reached = wanted = 0
    for program in programs:
        for point in points_of(program):
            wanted += 1
            found = kept.get((str(program), point))
            reached += found is not None
            _say(_line(program, KILLS[program][point].spelt(point), found))
    _say(f"\n{reached} of {wanted} points were reached, each with the undisturbed run's end")
    return 0 if reached == wanted else 1


def _line(program: Program, point: str, row: Mapping[str, Any] | None) -> str:
    if row is None:
        return f"| {program} | `{point}` | - | NOT REACHED | - | - |"
    retries = ", ".join(f"{kind} {count}" for kind, count in row["retries"].items()) or "none"
    return (
        f"| {program} | `{point}` | {row['scenario']} | {row['found']} | {row['ended']} "
        f"| {retries} |"
    )


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
