"""The report plug-in in real pytest processes, with and without xdist (uv-facts §5)."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from upgraderun_runner.ecosystems.python.toolchain import PLUGIN_DIR

pytestmark = pytest.mark.slow

SUITE = """\
import pytest

def test_passes(): pass
def test_fails(): assert 0, "because\\nof this"
@pytest.mark.skip
def test_skipped(): pass
@pytest.mark.xfail
def test_xfailed(): assert 0
@pytest.mark.xfail
def test_xpassed(): pass
@pytest.mark.xfail(strict=True)
def test_strict(): pass
@pytest.fixture
def bad_setup(): raise ValueError("in setup")
@pytest.fixture
def bad_teardown():
    yield
    raise ValueError("in teardown")
def test_setup(bad_setup): pass
def test_teardown(bad_teardown): pass
def test_fails_and_errs(bad_teardown): assert 0
@pytest.mark.parametrize("x", ["a::b/c d", "\\u00e9\\ud800", "n\\nl"])
def test_ids(x): pass
"""
EXPECTED = {
    "test_a.py::test_passes": "passed",
    "test_a.py::test_fails": "failed",
    "test_a.py::test_skipped": "skipped",
    "test_a.py::test_xfailed": "xfailed",
    "test_a.py::test_xpassed": "xpassed",
    "test_a.py::test_strict": "failed",
    "test_a.py::test_setup": "error",
    "test_a.py::test_teardown": "error",
    "test_a.py::test_fails_and_errs": "error",
    "test_a.py::test_ids[a::b/c d]": "passed",
    "test_a.py::test_ids[\\xe9\\ud800]": "passed",
    "test_a.py::test_ids[n\\nl]": "passed",
}


def run(
    folder: Path, files: dict[str, str], *flags: str, only: tuple[str, ...] = ()
) -> tuple[int, list[dict[str, Any]]]:
    for name, text in files.items():
        (folder / name).write_text(text)
    report = folder / "report.ndjson"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(PLUGIN_DIR),
        "UR_REPORT": str(report),
    }
    if only:
        (folder / "only.json").write_text(json.dumps(only))
        environment["UR_ONLY"] = str(folder / "only.json")
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "ur_report",
        "-p",
        "no:randomly",
        "-p",
        "no:asyncio",
        *flags,
    ]
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, check=False)
    lines = report.read_text().splitlines() if report.exists() else []
    return done.returncode, [json.loads(line) for line in lines]


def outcomes(rows: list[dict[str, Any]]) -> dict[str, str]:
    return {row["id"]: row["outcome"] for row in rows if row["kind"] == "outcome"}


@pytest.mark.parametrize("flags", [(), ("-n", "2"), ("-W", "error", "--strict-config")])
def test_one_final_outcome_per_collected_id(tmp_path: Path, flags: tuple[str, ...]) -> None:
    code, rows = run(tmp_path, {"test_a.py": SUITE}, *flags)

    assert EXPECTED == outcomes(rows)
    assert set(EXPECTED) == {row["id"] for row in rows if row["kind"] == "collected"}
    assert {"kind": "trailer", "exit": code, "collected": 12, "outcomes": 12} == rows[-1]
    assert 1 == code


@pytest.mark.parametrize("flags", [(), ("-n", "2")])
def test_a_module_that_cannot_be_imported(tmp_path: Path, flags: tuple[str, ...]) -> None:
    files = {"test_a.py": "import gone\n", "test_b.py": "def test_b(): pass\n"}

    code, rows = run(tmp_path, files, "--continue-on-collection-errors", *flags)

    broken = [row for row in rows if row["kind"] == "collect_error"]
    assert 1 == code
    assert ["test_a.py"] == [row["id"] for row in broken]
    assert "No module named 'gone'" in broken[0]["detail"]
    assert {"test_b.py::test_b": "passed"} == outcomes(rows)


def test_a_root_conftest_that_cannot_be_imported(tmp_path: Path) -> None:
    code, rows = run(tmp_path, {"conftest.py": "import gone\n", "test_a.py": ""})

    assert 4 == code
    assert [
        {
            "kind": "conftest_error",
            "id": "conftest.py",
            "detail": "ModuleNotFoundError: No module named 'gone'",
        }
    ] == rows


def test_a_usage_error_leaves_no_record(tmp_path: Path) -> None:
    assert (4, []) == run(tmp_path, {"test_a.py": ""}, "--no-such-option")


@pytest.mark.parametrize("code", [0, 1])
def test_a_process_that_leaves_early_writes_no_trailer(tmp_path: Path, code: int) -> None:
    source = f"import os\ndef test_a(): os._exit({code})\n"

    assert (code, []) == run(tmp_path, {"test_a.py": source})


@pytest.mark.parametrize("flags", [(), ("-n", "2")])
def test_only_the_listed_ids_run(tmp_path: Path, flags: tuple[str, ...]) -> None:
    wanted = ("test_a.py::test_passes", "test_a.py::test_ids[a::b/c d]", "test_a.py::gone")

    _, rows = run(tmp_path, {"test_a.py": SUITE}, *flags, only=wanted)

    assert dict.fromkeys(wanted[:2], "passed") == outcomes(rows)


def test_a_worker_that_crashes_is_a_failure(tmp_path: Path) -> None:
    source = "import os\ndef test_a(): os._exit(3)\ndef test_b(): pass\n"

    _, rows = run(tmp_path, {"test_a.py": source}, "-n", "1")

    assert {"test_a.py::test_a": "failed", "test_a.py::test_b": "passed"} == outcomes(rows)


def test_nothing_collected(tmp_path: Path) -> None:
    code, rows = run(tmp_path, {"a.py": ""})

    assert (5, [{"kind": "trailer", "exit": 5, "collected": 0, "outcomes": 0}]) == (code, rows)
