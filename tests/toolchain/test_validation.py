"""Validations with the real uv and pytest: verdicts, isolation, repetitions (upgrade-run.md §7)."""

from pathlib import Path

import pytest

from support.fixtures.packages import Package
from support.pythonbench import TEST, VALUE, Bench, release
from upgraderun_runner.ecosystems.base import (
    AcquisitionFailed,
    AcquisitionRecord,
    CheckResult,
    CheckState,
    LostTest,
    Target,
    ValidationRecord,
)
from upgraderun_runner.sandbox.driver import Isolation

pytestmark = pytest.mark.slow

OTHER = {"aa/__init__.py": "def value():\n    return 2\n"}
MOVED = {"aa/__init__.py": "", "aa/new.py": "def value():\n    return 1\n"}
NOISY = {"aa/__init__.py": "import warnings\nwarnings.warn('gone soon', DeprecationWarning)\n"}


async def prepared(
    bench: Bench, files: dict[str, str], later: dict[str, str] | None = None, more: str = ""
) -> tuple[Path, AcquisitionRecord]:
    """A tree on aa 1.0.0, where 1.0.1 has other sources."""
    new = release("1.0.1", sources=later or VALUE)
    bench.publish(Package("aa", (release("1.0.0"), new)))
    tree = bench.snapshot(bench.manifest("aa>=1", more=more), files, "aa==1.0.0")
    return tree, await bench.acquire(tree)


async def upgraded(
    bench: Bench, tree: Path, acquired: AcquisitionRecord
) -> tuple[Path, AcquisitionRecord]:
    staged = await bench.apply(tree, acquired, Target("aa", "1.0.0", "1.0.1"))
    assert "" == staged.outcome
    after = bench.changed(tree, staged.after)
    return after, await bench.acquire(after, acquired)


async def both(
    bench: Bench, files: dict[str, str], later: dict[str, str], more: str = ""
) -> tuple[ValidationRecord, ValidationRecord]:
    """The baseline and the validation after the upgrade."""
    tree, acquired = await prepared(bench, files, later, more)
    baseline = await bench.validate(tree, acquired)
    after, again = await upgraded(bench, tree, acquired)
    return baseline, await bench.validate(after, again, baseline, tree)


def pytest_check(record: ValidationRecord) -> CheckResult:
    return next(check for check in record.checks if check.name == "test")


async def baseline_tests(bench: Bench, source: str, more: str = "") -> CheckResult:
    tree, acquired = await prepared(bench, {"test_a.py": source}, more=more)
    return pytest_check(await bench.validate(tree, acquired))


async def test_an_upgrade_that_breaks_nothing(bench: Bench) -> None:
    baseline, post = await both(bench, {"test_a.py": TEST}, VALUE)

    for record in (baseline, post):
        assert (True, True, ()) == (record.conclusive, record.clean, record.introduced)
        assert ["passed"] == [test.outcome for test in pytest_check(record).tests]
    assert not post.regressed


async def test_a_changed_value_is_introduced_after_two_repetitions_on_both_trees(
    bench: Bench,
) -> None:
    _, post = await both(bench, {"test_a.py": TEST}, OTHER)

    assert (True, False, ("test:test_a.py:test_value",)) == (
        post.conclusive,
        post.clean,
        tuple(finding.key for finding in post.introduced),
    )
    pytest_runs = [c for c in bench.steps[-1].executed if "pytest" in c.argv]
    assert 5 == len(pytest_runs)


async def test_a_moved_import_is_a_collection_finding_and_the_rest_runs(bench: Bench) -> None:
    files = {
        "test_a.py": TEST.replace("import aa", "from aa import value").replace("aa.value", "value"),
        "test_b.py": "def test_other():\n    pass\n",
    }

    _, post = await both(bench, files, MOVED)

    assert ["test:test_a.py:collection"] == [finding.key for finding in post.introduced]
    assert [LostTest("test_a.py::test_value", "gone")] == list(post.lost_tests)


async def test_a_warning_that_breaks_the_root_conftest_is_introduced(bench: Bench) -> None:
    """Corpus A2m: pytest exits 4 and reports no test."""
    files = {"conftest.py": "import aa\n", "test_a.py": "def test_it():\n    pass\n"}
    more = '[tool.pytest.ini_options]\nfilterwarnings = ["error"]\n'

    _, post = await both(bench, files, NOISY, more)

    assert (True, ["test:conftest.py:collection"]) == (
        post.conclusive,
        [finding.key for finding in post.introduced],
    )


async def test_a_baseline_that_fails_each_time_is_not_clean(bench: Bench) -> None:
    tree, acquired = await prepared(bench, {"test_a.py": TEST.replace("== 1", "== 7")})

    record = await bench.validate(tree, acquired)

    assert (True, False, ()) == (record.conclusive, record.clean, record.flaky)


ONCE = """\
import pathlib
SEEN = pathlib.Path({seen!r})
def test_it():
    count = len(SEEN.read_text()) if SEEN.exists() else 0
    SEEN.write_text("x" * (count + 1))
    assert count + 1 not in {failing!r}
"""


class TestRepetitions:
    """The counter lies outside of every room, as a shared resource of flaky tests does."""

    async def test_a_baseline_failure_that_passes_once_is_flaky(self, bench: Bench) -> None:
        source = ONCE.format(seen=str(bench.root / "seen"), failing=[1, 2])
        tree, acquired = await prepared(bench, {"test_a.py": source})

        record = await bench.validate(tree, acquired)

        assert (True, ("test:test_a.py:test_it",)) == (record.clean, record.flaky)

    async def test_a_failure_that_the_base_shows_too_is_flaky(self, bench: Bench) -> None:
        source = ONCE.format(seen=str(bench.root / "seen"), failing=[2, 3])

        _, post = await both(bench, {"test_a.py": source}, VALUE)

        assert (True, True, (), ("test:test_a.py:test_it",)) == (
            post.conclusive,
            post.clean,
            post.introduced,
            post.flaky,
        )

    async def test_a_failure_of_the_candidate_only_sometimes_is_inconclusive(
        self, bench: Bench
    ) -> None:
        source = ONCE.format(seen=str(bench.root / "seen"), failing=[2, 5])

        _, post = await both(bench, {"test_a.py": source}, VALUE)

        assert (False, False, (), ("test:test_a.py:test_it",)) == (
            post.conclusive,
            post.clean,
            post.introduced,
            post.unstable,
        )
        assert "sometimes fails after the upgrade: test:test_a.py:test_it" in post.reasons


class TestNoVerdict:
    async def test_a_process_that_leaves_early(self, bench: Bench) -> None:
        check = await baseline_tests(bench, "import os\ndef test_it():\n    os._exit(0)\n")

        assert (CheckState.ERROR, False) == (check.state, check.conclusive)

    async def test_a_process_that_is_killed(self, bench: Bench) -> None:
        check = await baseline_tests(
            bench, "import os\ndef test_it():\n    os.kill(os.getpid(), 9)\n"
        )

        assert (CheckState.ERROR, 137) == (check.state, check.exit_code)

    async def test_a_time_limit(self, bench: Bench) -> None:
        source = "import threading\ndef test_it():\n    threading.Event().wait()\n"
        tree, acquired = await prepared(bench, {"test_a.py": source})

        record = await bench.validate(tree, acquired, check_timeout_seconds=12)

        assert (CheckState.TIMEOUT, False) == (pytest_check(record).state, record.conclusive)


async def test_options_of_the_repository_that_hide_ids_are_neutralised(bench: Bench) -> None:
    more = '[tool.pytest.ini_options]\naddopts = "-x --lf --strict-config --junitxml=report.xml"\n'
    source = "def test_a():\n    assert 0\ndef test_b():\n    assert 0\ndef test_c():\n    pass\n"

    check = await baseline_tests(bench, source, more)

    assert (CheckState.FAIL, 3) == (check.state, len(check.tests))


class TestNoTests:
    async def test_nothing_collected(self, bench: Bench) -> None:
        tree, acquired = await prepared(bench, {"demo.py": "x = 1\n"})

        record = await bench.validate(tree, acquired)

        assert (CheckState.ABSENT, True, False) == (
            pytest_check(record).state,
            record.clean,
            record.tests_exist,
        )

    async def test_no_runner_is_locked(self, bench: Bench) -> None:
        bench.publish(Package("aa", (release("1.0.0"),)))
        manifest = bench.manifest("aa").replace('dev = ["pytest"]', "dev = []")
        tree = bench.snapshot(manifest, {"test_a.py": TEST})

        record = await bench.validate(tree, await bench.acquire(tree))

        assert (CheckState.ABSENT, True) == (pytest_check(record).state, record.tests_exist)
        assert "no runner is locked" in pytest_check(record).reason


SURROUNDINGS = """\
import importlib.util, json.decoder, os, pathlib, socket, subprocess, pytest

def git(*arguments):
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout

def test_the_tree_is_one_clean_commit_with_the_bases_tag():
    assert git("describe", "--tags") == "v1.2.3\\n"
    assert git("status", "--porcelain", "--ignored=no") == ""
    assert git("ls-files", "ignored.txt") == "ignored.txt\\n"
    assert len(git("log", "--format=%H").split()) == 1

def test_the_registry_is_out_of_reach():
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", {port}), timeout=5)

def test_home_and_temporary_files_are_private(tmp_path):
    assert pathlib.Path.home().name == "home"
    assert list(pathlib.Path.home().iterdir()) == []
    assert tmp_path.is_relative_to(os.environ["TMPDIR"])

def test_nothing_of_the_runner_is_inherited():
    assert "CANARY" not in os.environ

def test_the_interpreters_own_bytecode_is_lent_and_was_used():
    compiled = pathlib.Path(importlib.util.cache_from_source(json.decoder.__file__))
    assert compiled.is_relative_to(os.environ["PYTHONPYCACHEPREFIX"])
    assert compiled.is_symlink()

def test_the_source_is_writable():
    pathlib.Path("written.txt").write_text("x")
"""


async def test_the_surroundings_of_tests(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    if bench.sandbox.isolation is Isolation.NONE:
        pytest.skip("this kernel refuses user namespaces")
    monkeypatch.setenv("CANARY", "secret")
    port = bench.registry.url.rpartition(":")[2]
    files = {
        "test_a.py": SURROUNDINGS.replace("{port}", port),
        ".gitignore": "ignored.txt\n__pycache__/\n",
        "ignored.txt": "tracked in the base although ignored",
    }
    tree, acquired = await prepared(bench, files)
    before = sorted(str(path) for path in tree.rglob("*"))

    check = pytest_check(await bench.validate(tree, acquired))

    assert [] == [(finding.key, finding.detail) for finding in check.findings]
    assert 6 == len(check.tests)
    assert before == sorted(str(path) for path in tree.rglob("*"))


async def test_a_cache_that_changed_since_is_refused(bench: Bench) -> None:
    tree, acquired = await prepared(bench, {"test_a.py": TEST})
    (bench.cache / "uv" / "planted").write_text("x")

    with pytest.raises(AcquisitionFailed) as caught:
        await bench.validate(tree, acquired)

    assert "cache_changed" == caught.value.reason


async def test_rooms_are_removed(bench: Bench) -> None:
    tree, acquired = await prepared(bench, {"test_a.py": TEST})

    await bench.validate(tree, acquired)

    assert [] == list(bench.root.glob("scratch-*/run-*"))


PACKAGE = '[build-system]\nrequires = ["uv_build"]\nbuild-backend = "uv_build"\n'


class TestBuild:
    """The project itself is built and each of its packages imported (§7.1)."""

    async def build(self, bench: Bench, source: str) -> CheckResult:
        files = {"src/demo/__init__.py": source, "src/demo/broken.txt": ""}
        tree, acquired = await prepared(bench, files, more=PACKAGE)
        return (await bench.validate(tree, acquired)).checks[0]

    async def test_a_package_that_imports(self, bench: Bench) -> None:
        assert CheckState.PASS is (await self.build(bench, "import aa\n")).state

    async def test_an_import_that_fails(self, bench: Bench) -> None:
        check = await self.build(bench, "from aa import gone\n")

        assert ["import:demo:ImportError"] == [finding.key for finding in check.findings]

    async def test_a_source_that_does_not_compile(self, bench: Bench) -> None:
        check = await self.build(bench, "def f(:\n")

        assert {
            "build:src/demo/__init__.py:invalid syntax",
            "build:demo/__init__.py:invalid syntax",
            "import:demo:SyntaxError",
        } > {finding.key for finding in check.findings}
        assert CheckState.FAIL is check.state
