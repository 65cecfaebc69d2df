"""`hack/guards`: the list of guards, and whether the removal of each is noticed."""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from guardlib.removal import Guard
from guardlib.table import GUARDS
from guardlib.trial import Seen, Trials

ROOT: Final = Path(__file__).resolve().parents[3]
HEAD: Final = ("guard", "section", "removed", "test", "seen")
LIST_HEAD: Final = ("guard", "section", "place", "without it", "tests that fail then")
_ABOUT: Final = """\
Take each guard out of a copy of the tree, one at a time, and run the tests that must notice. Each of
them must pass on the unedited copy and fail by an assertion of its own on the edited one. Exit code 1
if a removal goes unnoticed.
"""
_WORDS_MAX: Final = 90

Say = Callable[[str], None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the guards that were named, or all."""
    names = [guard.name for guard in GUARDS]
    parser = argparse.ArgumentParser(prog="hack/guards", description=_ABOUT)
    parser.add_argument("--list", action="store_true", help="print guards, places and tests only")
    parser.add_argument("name", nargs="*", help="names of guards, as --list prints them")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.name) - set(names)):
        parser.error(f"no guard {unknown[0]!r}; there are: {', '.join(names)}")
    chosen = [guard for guard in GUARDS if not options.name or guard.name in options.name]
    if options.list:
        for line in listed(chosen):
            _say(line)
        return 0
    with tempfile.TemporaryDirectory(prefix="guards-") as folder:
        return check(chosen, ROOT, Path(folder), _say)


def check(guards: Iterable[Guard], root: Path, scratch: Path, say: Say) -> int:
    """Try every removal of these guards in a tree, and print a row for each. 1: one goes unnoticed."""
    started = time.monotonic()
    chosen, trials = tuple(guards), Trials(root, scratch)
    failing = trials.untouched(one for guard in chosen for one in guard.removals)
    for test, found in failing.items():
        say(f"{test} must pass on the unedited tree: {found}")
    if failing:
        return 1
    for line in _head(HEAD):
        say(line)
    noticed = tried = 0
    for guard in chosen:
        for removal in guard.removals:
            seen = trials.seen(removal)
            tried += 1
            noticed += seen.noticed
            for line in _rows(guard, seen):
                say(line)
    took = time.monotonic() - started
    say(f"\n{noticed} of {tried} removals of {len(chosen)} guards were noticed, in {took:.0f} s")
    return 0 if noticed == tried else 1


def _rows(guard: Guard, seen: Seen) -> Iterable[str]:
    """A row per test that told of it, and per test that should have."""
    removal = seen.removal
    head = f"| {guard.name} | {guard.section} | {removal.edit.file}: {removal.without} |"
    for notice in seen.notices:
        yield f"{head} {notice.test} | {_cell(notice.words)} |"
    for test, words in seen.problems:
        yield f"{head} {test} | UNNOTICED: {_cell(words)} |"


def _cell(words: str) -> str:
    """One line of a table's cell."""
    line = " ".join(words.split()).replace("|", "/")
    return line if len(line) <= _WORDS_MAX else line[: _WORDS_MAX - 1] + "…"


def listed(guards: Iterable[Guard]) -> Iterator[str]:
    """The table of docs/reliability.md: guards, places and tests."""
    yield from _head(LIST_HEAD)
    for guard in guards:
        for removal in guard.removals:
            tests = "<br>".join(f"`{test}`" for test in removal.tests)
            cells = (guard.name, guard.section, f"`{removal.edit.file}`", removal.without, tests)
            yield f"| {' | '.join(cells)} |"


def _head(cells: Sequence[str]) -> tuple[str, str]:
    return f"| {' | '.join(cells)} |", "|" + "---|" * len(cells)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
