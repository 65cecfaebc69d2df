"""What untrusted code left behind is read with care and removed as far as it goes."""

import os
from pathlib import Path

from upgraderun_runner.ecosystems.python import checkrun
from upgraderun_runner.ecosystems.python.checkrun import read_report, remove_tree


def test_a_regular_file_within_the_bound_is_read(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_bytes(b"x" * 10)

    assert b"x" * 10 == read_report(path, 10)
    assert read_report(path, 9) is None


def test_links_pipes_and_directories_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("canary")
    (tmp_path / "link").symlink_to("secret")
    os.mkfifo(tmp_path / "pipe")

    assert read_report(tmp_path / "link", 100) is None
    assert read_report(tmp_path / "pipe", 100) is None
    assert read_report(tmp_path, 100) is None
    assert read_report(tmp_path / "absent", 100) is None


def test_a_room_with_closed_directories_is_removed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("")
    room = tmp_path / "room"
    (room / "a" / "b").mkdir(parents=True)
    (room / "a" / "b" / "file").write_text("")
    (room / "link").symlink_to(outside)
    (room / "a" / "b").chmod(0)
    (room / "a").chmod(0o500)

    remove_tree(room)

    assert not room.exists()
    assert (outside / "kept").exists()


def test_files_that_look_like_tests_are_found(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    assert not checkrun.tests_exist(tmp_path)

    (tmp_path / "deep" / "er" / "test_x.py").write_text("")

    assert checkrun.tests_exist(tmp_path)
