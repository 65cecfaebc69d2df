"""Try removals on copies of the tree: the named tests pass before the edit, and fail after it.

Callers: `guardlib.cli`, the tidy test. A copy holds the whole tree, so that a test which reads or builds the
checkout has the edited one; its sources stand before the installed packages, and a session that ran
a module of the product from elsewhere, or never loaded the edited file, proves nothing and is refused.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from guardlib.removal import Edit, Removal
from guardlib.witness import ASSERTED, PASSED

SOURCES: Final = ("protocol/src", "operator/src", "runner-image/src")
_HELPERS: Final = ("hack/lib", "tests")
_MADE: Final = frozenset({"__pycache__", "dist", "build"})
_PLUGINS: Final = (
    "guardlib.witness",
    "no:cacheprovider",
    "pytest_asyncio.plugin",
    "pytest_timeout",
)
"""Those that the named tests need: loading all others takes longer than a unit test."""
TEST_SECONDS: Final = 120
SESSION_SECONDS: Final = 1200


class BrokenTrialError(RuntimeError):
    """A session that says nothing about the guard: what ran wasn't what should have run."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How one case of a test ended."""

    test: str
    kind: str
    words: str


@dataclass(frozen=True, slots=True)
class Session:
    """How the tests of one run of pytest ended, by their names without cases."""

    endings: Mapping[str, tuple[Ending, ...]]
    loaded: tuple[Path, ...]
    output: str

    def passed(self, test: str) -> bool:
        """Whether it ran, and all its cases passed."""
        found = self.endings.get(test, ())
        return bool(found) and all(one.kind == PASSED for one in found)

    def ran(self, file: Path) -> bool:
        """Whether this file of the product was loaded."""
        return file.resolve() in self.loaded

    def told(self, test: str) -> Ending | None:
        """The first case that failed by an assertion of the test."""
        return next((one for one in self.endings.get(test, ()) if one.kind == ASSERTED), None)

    def otherwise(self, test: str) -> str:
        """What came of a test that neither passed nor told anything."""
        other = [one for one in self.endings.get(test, ()) if one.kind != PASSED]
        if other:
            return f"{other[0].kind}: {other[0].words}"
        return "passed" if self.passed(test) else f"didn't run: {self.output[-400:].strip()}"


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of one removal: the first assertion of each test, and tests that told nothing."""

    removal: Removal
    notices: tuple[Ending, ...]
    problems: tuple[tuple[str, str], ...]

    @property
    def noticed(self) -> bool:
        """Whether each named test told of it."""
        return not self.problems


def copy_of(root: Path, target: Path) -> Path:
    """The tree without what tools keep in it."""

    def left_out(folder: str, names: list[str]) -> set[str]:
        if Path(folder) == root:
            return {name for name in names if name.startswith(".")} | _MADE
        return {name for name in names if name == "__pycache__" or name.endswith(".egg-info")}

    shutil.copytree(root, target, ignore=left_out, symlinks=True)
    return target


def run_tests(tree: Path, tests: Iterable[str], notes: Path) -> Session:
    """Run tests of a copy against the sources of that copy. Raises BrokenTrialError."""
    paths = [str(tree / folder) for folder in (*SOURCES, *_HELPERS)]
    wanted = tuple(dict.fromkeys(tests))
    argv = [sys.executable, "-m", "pytest", "-q", f"--timeout={TEST_SECONDS}"]
    argv += [word for plugin in _PLUGINS for word in ("-p", plugin)]
    done = subprocess.run(
        [*argv, f"--guard-notes={notes}", *wanted],
        cwd=tree,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_ADDOPTS": "",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=SESSION_SECONDS,
    )
    endings: dict[str, list[Ending]] = defaultdict(list)
    loaded: tuple[Path, ...] = ()
    for line in notes.read_text(encoding="utf-8").splitlines() if notes.exists() else ():
        note: dict[str, Any] = json.loads(line)
        if "loaded" in note:
            loaded = tuple(Path(file) for file in note["loaded"])
            continue
        name = note["test"].partition("[")[0]
        endings[name].append(Ending(note["test"], note["kind"], note["words"]))
    foreign = [str(file) for file in loaded if not file.is_relative_to(tree.resolve())]
    if foreign:
        raise BrokenTrialError(f"ran modules of another tree: {', '.join(foreign[:3])}")
    found = {name: tuple(each) for name, each in endings.items()}
    return Session(found, loaded, done.stdout + done.stderr)


class Trials:
    """Removals of one tree, each on a copy of its own below `scratch`."""

    def __init__(self, root: Path, scratch: Path) -> None:
        self._root = root
        self._scratch = scratch
        self._count = 0

    def untouched(self, removals: Iterable[Removal]) -> Mapping[str, str]:
        """Named tests that don't pass on an unedited copy, with what came of them."""
        tests = tuple(dict.fromkeys(test for one in removals for test in one.tests))
        session = self._session(tests, None)
        return {test: session.otherwise(test) for test in tests if not session.passed(test)}

    def seen(self, removal: Removal) -> Seen:
        """Take one guard away, and say which tests told of it."""
        session = self._session(removal.tests, removal.edit)
        told = {test: session.told(test) for test in removal.tests}
        return Seen(
            removal,
            tuple(ending for ending in told.values() if ending is not None),
            tuple((test, session.otherwise(test)) for test, each in told.items() if each is None),
        )

    def _session(self, tests: tuple[str, ...], edit: Edit | None) -> Session:
        self._count += 1
        tree = copy_of(self._root, self._scratch / f"tree-{self._count}")
        if edit is not None:
            edit.apply(tree)
        session = run_tests(tree, tests, self._scratch / f"notes-{self._count}.jsonl")
        # A file that can't be compiled is no module: then no test ran, and its own line says so.
        if edit is not None and session.endings and not session.ran(tree / edit.file):
            raise BrokenTrialError(f"the edited {edit.file} was never loaded")
        shutil.rmtree(tree)
        return session
