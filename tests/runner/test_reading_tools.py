"""Tools that look: bounded, no link followed, helpful when something isn't there (§9.2, §9.4)."""

from pathlib import Path

import pytest
import re2

from upgraderun_runner import limits
from upgraderun_runner.tools import dependency, reading
from upgraderun_runner.tools.step import ToolFailed


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A small tree with a link that leaves it."""
    (tmp_path / "outside").write_text("secret\n")
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / ".git").mkdir()
    (work / ".git" / "config").write_text("needle\n")
    (work / "src" / "app.py").write_text("import tinylib\n\nneedle = 1\n")
    (work / "src" / "blob").write_bytes(b"\xff\xfe needle")
    (work / "link").symlink_to("../outside")
    (work / "dirlink").symlink_to("src")
    return work


def test_window_is_numbered_and_names_its_next_start(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "READ_WINDOW_BYTES", 25)

    first = reading.window(work, "src/app.py", 1)

    assert (["1: import tinylib", "2: "], 3, 3) == (
        first["lines"],
        first["total_lines"],
        first["next_start_line"],
    )
    last = reading.window(work, "src/app.py", 3)
    assert (["3: needle = 1"], None) == (last["lines"], last["next_start_line"])


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("link", "path_refused"),
        ("dirlink/app.py", "path_refused"),
        ("src/blob", "not_text"),
        ("src/none.py", "not_found"),
    ],
)
def test_what_cannot_be_read_says_why(work: Path, path: str, reason: str) -> None:
    with pytest.raises(ToolFailed) as failed:
        reading.window(work, path, 1)
    assert reason == failed.value.reason


def test_missing_path_names_the_nearest_directory_and_its_entries(work: Path) -> None:
    with pytest.raises(ToolFailed) as failed:
        reading.window(work, "src/deep/none.py", 1)
    assert {"nearest": "src", "entries": ["app.py", "blob"]} == failed.value.details


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../b", ".git/config", "a\0b", ""])
def test_paths_that_no_tree_holds_are_refused(path: str) -> None:
    if path:
        with pytest.raises(ToolFailed):
            reading.clean(path)
    else:
        assert "." == reading.clean(path)


def test_listing_hides_git_and_shows_links_as_links(work: Path) -> None:
    assert [("dirlink", "link"), ("link", "link"), ("src", "directory")] == [
        (entry["name"], entry["type"]) for entry in reading.listing(work, ".")["entries"]
    ]
    with pytest.raises(ToolFailed):
        reading.listing(work, "dirlink")


def test_search_meets_text_files_beneath_only(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hits = reading.search(work, ".", re2.compile("needle|secret"))["hits"]
    assert [{"path": "src/app.py", "line": 3, "text": "needle = 1"}] == hits
    monkeypatch.setattr(limits, "SEARCH_HITS_MAX", 1)
    assert reading.search(work, "src/app.py", re2.compile("."))["truncated"]


def test_dependency_is_found_by_its_normalised_name(tmp_path: Path) -> None:
    info = tmp_path / "uv" / "archive-v0" / "abc" / "Flask_WTF-1.2.1.dist-info"
    info.mkdir(parents=True)

    assert info.parent == dependency.source_root(tmp_path, "flask-wtf", "1.2.1")
    with pytest.raises(ToolFailed):
        dependency.source_root(tmp_path, "flask-wtf", "1.2.2")
