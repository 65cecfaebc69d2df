"""The plain commands that a person would type: uv and pytest on a checkout, nothing of ours.

They show what a fixture or a corpus case is by itself, so that a wrong expectation is found in the
fixture and not in the product. Used by their own tests only.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support.toolchain import Done, Uv, run

VERDICT = re.compile(r"^(?:FAILED|ERROR) (?P<id>.+?)(?: - .*)?$", re.MULTILINE)
CONFTEST = re.compile(r"^ImportError while loading conftest '(?P<file>.+)'\.$", re.MULTILINE)
COUNTS = re.compile(r"(?P<count>\d+) (?P<what>passed|failed|skipped|xfailed|xpassed|errors?)\b")
PYTEST = (
    *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfE", "--tb=no"),
    *("--continue-on-collection-errors", "--color=no"),
)


@dataclass(frozen=True, slots=True)
class TestRun:
    """One run of a project's tests. `failing` holds finding keys (upgrade-run.md §7.3), sorted."""

    __test__ = False

    code: int
    failing: tuple[str, ...]
    counts: dict[str, int]
    output: str


@dataclass(frozen=True, slots=True)
class PlainProject:
    """A checkout and the uv that works on it."""

    path: Path
    uv: Uv
    sync_flags: tuple[str, ...] = ()

    def sync(self) -> None:
        """Install what the lock says into the checkout's own environment."""
        self.uv(self.path, "sync", "--frozen", *self.sync_flags)

    def test(self, prefix: tuple[str, ...] = (), **environment: str) -> TestRun:
        """Run the tests; `prefix` is a command that runs another, as another user, say."""
        programs = self.path / ".venv" / "bin"
        variables = self.uv.environment(environment)
        # As in an activated environment: some tests start a program by its name.
        variables["PATH"] = f"{programs}:{variables['PATH']}"
        done = run([*prefix, str(programs / "python"), *PYTEST], self.path, variables)
        return _test_run(done, self.path)

    def constrain(self, old: str, new: str) -> None:
        """Edit one requirement of the manifest; it must be there exactly once."""
        manifest = self.path / "pyproject.toml"
        text = manifest.read_text()
        if text.count(old) != 1:
            raise ValueError(f"{old!r} occurs {text.count(old)} times in the manifest")
        manifest.write_text(text.replace(old, new))

    def upgrade(self, *pins: str) -> Done:
        """Lock again with these packages unlocked, as `name==version`; the caller looks."""
        flags = [flag for pin in pins for flag in ("--upgrade-package", pin)]
        return self.uv.attempt(self.path, "lock", *flags)

    def locked(self) -> dict[str, set[str]]:
        """Every name in the lock with its versions."""
        found: dict[str, set[str]] = {}
        for name, version in _entries((self.path / "uv.lock").read_text()):
            found.setdefault(name, set()).add(version)
        return found


def moved(
    before: dict[str, set[str]], after: dict[str, set[str]]
) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Names whose versions differ, with those before and after."""
    return {
        name: (frozenset(before.get(name, ())), frozenset(after.get(name, ())))
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    }


def _entries(lock: str) -> Iterator[tuple[str, str]]:
    pattern = r'^\[\[package\]\]\nname = "(.+)"\nversion = "(.+)"$'
    for match in re.finditer(pattern, lock, re.MULTILINE):
        yield match[1], match[2]


def _test_run(done: Done, project: Path) -> TestRun:
    keys = {_key(match["id"]) for match in VERDICT.finditer(done.out)}
    broken = [Path(match["file"]) for match in CONFTEST.finditer(done.err)]
    keys |= {_key(str(file.relative_to(project))) for file in broken}
    last = done.out.rstrip().rpartition("\n")[2]
    counts = {
        m["what"].rstrip("s") if m["what"].startswith("error") else m["what"]: int(m["count"])
        for m in COUNTS.finditer(last)
    }
    return TestRun(done.code, tuple(sorted(keys)), counts, done.out + done.err)


def _key(node: str) -> str:
    file, separator, name = node.partition("::")
    return f"test:{file}:{name if separator else 'collection'}"
