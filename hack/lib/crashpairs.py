"""`hack/crash-pairs`: strike at every ordered pair of fault points of `patch-safe`, on virtual time.

Callers: `hack/crash-pairs`. The pairs are found by playing (support.sim.pairs). Prints totals per first
program, each failure with the pair that plays it again, and what has no pair; fails if one history did.
"""

import argparse
import gc
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from support.sim.pairs import Undisturbed, seconds_of, undisturbed
from support.sim.strikes import Strike
from support.sim.world import History, play
from upgraderun_protocol.effects import Program

COLLECT_EVERY: Final = 20
"""Histories between two collections of garbage: each is a world of small cycles."""


@dataclass(slots=True)
class Row:
    """What one first strike came to: its pairs, histories played, points never passed after it, failures."""

    first: str
    pairs: int = 0
    played: int = 0
    without: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, then print."""
    options = _parser().parse_args(arguments)
    if options.play:
        return _one(tuple(map(read_strike, options.play)))
    known = undisturbed()
    if options.list:
        for strike in known.points:
            _say(str(strike))
        return 0
    done = _kept(options.results)
    part, parts = map(int, options.part.split("/"))
    firsts = [
        strike
        for number, strike in enumerate(known.points)
        if number % parts == part - 1
        and (not options.only or str(strike.program) in options.only)
        and str(strike) not in done
    ]
    started = time.monotonic()
    rows = list(done.values())
    for row in _rows([(strike, options.every) for strike in firsts], options.jobs):
        rows.append(row)
        if options.results:
            with options.results.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(asdict(row)) + "\n")
        _say(
            f"{row.first}: {row.played} histories, {len(row.failures)} failed, {row.seconds:.0f} s"
        )
    _summary(known, rows, time.monotonic() - started)
    return 1 if any(row.failures for row in rows) else 0


def read_strike(text: str) -> Strike:
    """Read `program:effect.position@occurrence`."""
    program, _, rest = text.partition(":")
    point, _, occurrence = rest.partition("@")
    return Strike(Program(program), point, int(occurrence or 1))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hack/crash-pairs", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the first strikes only")
    parser.add_argument(
        "--only", action="append", choices=[str(one) for one in Program], help="first strikes of it"
    )
    parser.add_argument("--part", default="1/1", help="every n-th first strike, as `2/8`")
    parser.add_argument(
        "--every", type=int, default=1, help="only each n-th second strike, other ones per first"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--results", type=Path, help="keep rows there, and go on from them")
    parser.add_argument("--play", nargs="+", metavar="STRIKE", help="play one history and tell it")
    return parser


def _rows(firsts: Sequence[tuple[Strike, int]], jobs: int) -> Iterator[Row]:
    if not firsts:
        return
    with multiprocessing.Pool(max(1, jobs), initializer=_begin) as pool:
        yield from pool.imap_unordered(_row, firsts)


_KNOWN: list[Undisturbed] = []


def _begin() -> None:
    """Each process plays the undisturbed history once, and collects its garbage by itself."""
    gc.disable()
    _KNOWN.append(undisturbed())


def _row(wanted: tuple[Strike, int]) -> Row:
    """All histories that begin with one strike, or those of each n-th second one."""
    first, every = wanted
    started = time.monotonic()
    row = Row(str(first))
    single = _played(row, (first,))
    followed = seconds_of(single) if single is not None else ()
    row.without = len(_KNOWN[0].points) - len(followed)
    row.pairs = len(followed)
    start = _KNOWN[0].points.index(first) % every
    for number, second in enumerate(followed[start::every]):
        _played(row, (first, second))
        if number % COLLECT_EVERY == 0:
            gc.collect()
    row.seconds = time.monotonic() - started
    return row


def _played(row: Row, strikes: tuple[Strike, ...]) -> History | None:
    """Play one history and compare it; whatever it raises is its failure."""
    row.played += 1
    name = " ".join(map(str, strikes))
    try:
        history = play(strikes)
    except (Exception, AssertionError) as error:  # noqa: BLE001 - a history's failure, told by name
        row.failures.append(f"{name}: {type(error).__name__}: {error}"[:2000])
        return None
    problems = _KNOWN[0].problems(history, strikes)
    if problems:
        row.failures.append(f"{name}: {'; '.join(problems)}"[:2000])
    return history


def _kept(results: Path | None) -> dict[str, Row]:
    """Rows of an earlier call."""
    if results is None or not results.exists():
        return {}
    lines = results.read_text(encoding="utf-8").splitlines()
    rows = [Row(**json.loads(line)) for line in lines]
    return {row.first: row for row in rows}


def _summary(known: Undisturbed, rows: Sequence[Row], seconds: float) -> None:
    head = (
        "first strike by",
        "first strikes",
        "pairs",
        "histories",
        "not passed after it",
        "failed",
    )
    _say(f"\n| {' | '.join(head)} |")
    _say("|---" * len(head) + "|")
    for program in Program:
        mine = [row for row in rows if row.first.startswith(f"{program}:")]
        wanted = sum(strike.program is program for strike in known.points)
        _say(
            f"| {program} | {len(mine)} of {wanted} | {sum(row.pairs for row in mine)} "
            f"| {sum(row.played for row in mine)} "
            f"| {sum(row.without for row in mine)} | {sum(len(row.failures) for row in mine)} |"
        )
    for (program, point), why in known.not_passed.items():
        _say(f"not passed: {program}:{point}: {why}")
    for row in rows:
        for failure in row.failures:
            _say(f"FAILED {failure}\n  again: hack/crash-pairs --play {failure.partition(': ')[0]}")
    _say(f"{sum(row.played for row in rows)} histories, {seconds:.0f} s")


def _one(strikes: tuple[Strike, ...]) -> int:
    """Play one history and print its journal."""
    known = undisturbed()
    history = play(strikes)
    for entry in history.entries:
        _say(f"{entry.at} {entry.attempt} {entry.epoch} {entry.id} {entry.state.value}")
    problems = known.problems(history, strikes)
    for problem in problems:
        _say(f"FAILED {problem}")
    _say(f"{history.end.outcome} after {history.seconds:.0f} virtual seconds")
    return 1 if problems else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
