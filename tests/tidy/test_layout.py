"""The tree: nothing shadows the standard library, every module says what it is for (house style §8, §10)."""

import ast
import re
import subprocess
import sys
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("protocol/src", "operator/src", "runner-image/src", "hack")
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root)/[a-z]")


@cache
def tracked() -> tuple[Path, ...]:
    """Files of the repository, new ones included."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return tuple(ROOT / line for line in listed.splitlines() if (ROOT / line).is_file())


def modules(*below: str) -> list[Path]:
    folders = [ROOT / folder for folder in below]
    return [
        path
        for path in tracked()
        if path.suffix == ".py" and any(path.is_relative_to(folder) for folder in folders)
    ]


def test_pytest_enters_every_folder_of_tests(pytestconfig: pytest.Config) -> None:
    """A folder that pytest leaves out by its name is green without having run."""
    skipped = pytestconfig.getini("norecursedirs")
    left_out = {
        str(path.parent.relative_to(ROOT))
        for path in tracked()
        if path.name.startswith("test_") and path.is_relative_to(ROOT / "tests")
        for folder in path.parent.relative_to(ROOT).parts
        if any(fnmatch(folder, pattern) for pattern in skipped)
    }

    assert set() == left_out


def test_the_operator_folder_is_no_package() -> None:
    """§8: `operator` is a module of the standard library."""
    assert not (ROOT / "operator" / "__init__.py").exists()


def test_no_importable_package_is_named_like_a_standard_one() -> None:
    folders = [ROOT / source for source in ("protocol/src", "operator/src", "runner-image/src")]
    tops = {path.name.removesuffix(".py") for folder in folders for path in folder.iterdir()}

    assert not tops & sys.stdlib_module_names


def test_no_test_folder_is_named_like_a_standard_module() -> None:
    """§8: a test folder `operator` with an `__init__.py` would replace the module."""
    folders = {path.parent.name for path in tracked() if path.is_relative_to(ROOT / "tests")}

    assert not (folders & sys.stdlib_module_names) - {"test"}


def test_no_test_folder_is_a_package_but_the_shared_code() -> None:
    packages = {
        path.parent.relative_to(ROOT).as_posix()
        for path in modules("tests")
        if path.name == "__init__.py"
    }

    assert [] == sorted(name for name in packages if not name.startswith("tests/support"))


@pytest.mark.parametrize("source", SOURCES)
def test_every_module_says_what_it_is_for(source: str) -> None:
    """§1, 18: the first screen of a module tells its purpose."""
    silent = [
        path.relative_to(ROOT).as_posix()
        for path in modules(source)
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]

    assert [] == silent


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    suffixes = {".py", ".md", ".yaml", ".yml", ".toml", ".json", ".tpl", ".txt", ".sh", ""}
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked()
        if path.suffix in suffixes and path.stat().st_size < 1_000_000
        for number, line in enumerate(
            path.read_text(encoding="utf-8", errors="replace").splitlines(), 1
        )
        if MACHINE_PATH.search(line) and path != Path(__file__).resolve()
    ]

    assert [] == found
