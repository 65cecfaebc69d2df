"""Reading and replacing beneath a root, without following links (H29); identity, lock, sweep."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.ids import RunUid
from upgraderun_runner.workspace.errors import PathRefused, StorageUnavailable, WorkspaceBusy
from upgraderun_runner.workspace.files import (
    hash_file,
    read_entry,
    read_file,
    replace_file,
    temporary_name,
)
from upgraderun_runner.workspace.identity import (
    IdentityMatch,
    WorkspaceIdentity,
    compare_identity,
    create_workspace,
    next_generation,
)
from upgraderun_runner.workspace.layout import Layout
from upgraderun_runner.workspace.lock import WorkspaceLock, probe_volume
from upgraderun_runner.workspace.sweep import Keep, remove_generation, sweep


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "root"
    made.mkdir()
    (tmp_path / "secret").write_text("canary")
    return made


class TestReading:
    def test_regular_files_are_read_and_hashed(self, root: Path) -> None:
        (root / "d").mkdir()
        (root / "d/f").write_bytes(b"abc")

        assert b"abc" == read_file(root, "d/f", 3)
        assert sha256_of(b"abc") == hash_file(root, "d/f")

    def test_absent_is_none(self, root: Path) -> None:
        (root / "d").mkdir()
        assert read_file(root, "f", 3) is None
        assert read_file(root, "d/f", 3) is None
        assert read_file(root, "x/y/f", 3) is None

    def test_too_large_is_refused(self, root: Path) -> None:
        (root / "f").write_bytes(b"abcd")

        with pytest.raises(PathRefused, match="more than 3 bytes"):
            read_file(root, "f", 3)

    def test_link_to_a_secret_is_refused(self, root: Path) -> None:
        (root / "f").symlink_to("../secret")
        (root / "d").symlink_to("..")

        for path in ("f", "d/secret"):
            with pytest.raises(PathRefused) as caught:
                read_file(root, path, 100)
            assert "link" == caught.value.violation.code

    def test_hard_link_is_refused(self, root: Path) -> None:
        (root / "f").hardlink_to(root.parent / "secret")

        with pytest.raises(PathRefused, match="second name"):
            read_file(root, "f", 100)

    def test_fifo_and_directory_are_refused_at_once(self, root: Path) -> None:
        os.mkfifo(root / "pipe")
        (root / "d").mkdir()

        for path in ("pipe", "d"):
            with pytest.raises(PathRefused, match="regular"):
                read_file(root, path, 100)

    @pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "", "a/../../secret", ".git/x"])
    def test_paths_outside_are_refused(self, root: Path, path: str) -> None:
        with pytest.raises(PathRefused):
            read_file(root, path, 100)
        with pytest.raises(PathRefused):
            replace_file(root, path, b"x")

    def test_entry_of_a_link_is_its_target(self, root: Path) -> None:
        (root / "l").symlink_to("../secret")
        (root / "f").write_text("x")

        assert b"../secret" == read_entry(root, "l")
        assert b"x" == read_entry(root, "f")
        with pytest.raises(PathRefused, match="vanished"):
            read_entry(root, "gone")


class TestReplacing:
    def test_mode_is_kept(self, root: Path) -> None:
        (root / "f").write_text("old")
        (root / "f").chmod(0o755)

        replace_file(root, "f", b"new")

        assert (b"new", 0o755) == (
            (root / "f").read_bytes(), stat.S_IMODE((root / "f").stat().st_mode)
        )  # fmt: skip
        assert ["f"] == [path.name for path in root.iterdir()]

    def test_new_file_gets_0644_and_directories(self, root: Path) -> None:
        before = os.umask(0o077)
        try:
            replace_file(root, "a/b/c", b"x")
        finally:
            os.umask(before)

        assert 0o644 == stat.S_IMODE((root / "a/b/c").stat().st_mode)

    def test_leftover_sibling_is_replaced(self, root: Path) -> None:
        (root / temporary_name("f")).symlink_to("../secret")

        replace_file(root, "f", b"x")

        assert "canary" == (root.parent / "secret").read_text()
        assert ["f"] == [path.name for path in root.iterdir()]

    def test_links_are_never_written_through(self, root: Path) -> None:
        (root / "f").symlink_to("../secret")
        (root / "d").symlink_to("..")

        for path in ("f", "d/secret", "d/new"):
            with pytest.raises(PathRefused):
                replace_file(root, path, b"x")

        assert "canary" == (root.parent / "secret").read_text()
        assert not (root.parent / "new").exists()

    def test_directory_is_no_target(self, root: Path) -> None:
        (root / "d").mkdir()

        with pytest.raises(PathRefused):
            replace_file(root, "d", b"x")


IDENTITY = WorkspaceIdentity(RunUid("run-1"), 2, "nonce-1")


class TestIdentity:
    def test_ours_absent_foreign(self, tmp_path: Path) -> None:
        layout = Layout(tmp_path, 2)
        assert IdentityMatch.ABSENT is compare_identity(layout, IDENTITY)

        create_workspace(layout, IDENTITY)
        assert IdentityMatch.OURS is compare_identity(layout, IDENTITY)
        assert IdentityMatch.FOREIGN is compare_identity(
            layout, WorkspaceIdentity(RunUid("run-1"), 2, "nonce-2")
        )

        layout.identity.write_text("{")
        assert IdentityMatch.FOREIGN is compare_identity(layout, IDENTITY)
        layout.identity.unlink()
        assert IdentityMatch.ABSENT is compare_identity(layout, IDENTITY)

    def test_generation_is_never_reused(self, tmp_path: Path) -> None:
        assert 1 == next_generation(tmp_path)
        create_workspace(Layout(tmp_path, 2), IDENTITY)
        (tmp_path / "ws-x").mkdir()

        assert 3 == next_generation(tmp_path)
        with pytest.raises(FileExistsError):
            create_workspace(Layout(tmp_path, 2), IDENTITY)


class TestLock:
    def test_second_holder_is_refused_at_once(self, tmp_path: Path) -> None:
        path = tmp_path / "lock"
        with WorkspaceLock(path), pytest.raises(WorkspaceBusy), WorkspaceLock(path):
            pass
        with WorkspaceLock(path):
            pass

    def test_death_of_the_holder_frees_it(self, tmp_path: Path) -> None:
        path = tmp_path / "lock"
        code = (
            "import sys, pathlib\n"
            "from upgraderun_runner.workspace.lock import WorkspaceLock\n"
            f"WorkspaceLock(pathlib.Path({str(path)!r})).__enter__()\n"
            "print('held', flush=True); sys.stdin.read()\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as holder:
            assert holder.stdout is not None
            assert b"held\n" == holder.stdout.readline()
            with pytest.raises(WorkspaceBusy), WorkspaceLock(path):
                pass
            holder.kill()
            holder.wait()
        with WorkspaceLock(path):
            pass

    def test_probe_leaves_nothing(self, tmp_path: Path) -> None:
        probe_volume(tmp_path, "t1")

        assert [] == list(tmp_path.iterdir())

    def test_probe_names_what_is_missing(self, tmp_path: Path) -> None:
        with pytest.raises(StorageUnavailable, match="No such file"):
            probe_volume(tmp_path / "absent", "t1")


class TestSweep:
    def test_removes_what_nobody_names_and_is_idempotent(self, layout: Layout) -> None:
        (layout.work / "src").mkdir()
        kept = (
            layout.staging("s3") / "after/lock", layout.cache_root / "c1/wheel",
            layout.work / "src/a.py", layout.snapshots / "tree/f", layout.spool / "x",
            layout.git / "HEAD", layout.root / "ws-9/staging/s1/x",
        )  # fmt: skip
        doomed = (
            layout.staging("s4") / "f", layout.cache_root / "c2/ro/f", layout.scratch("i.index"),
            layout.work / "src" / temporary_name("src/a.py"), layout.snapshots / "t.partial/f",
            layout.git / "refs/heads/x.lock",
        )  # fmt: skip
        for path in (*kept, *doomed):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
        (layout.cache_root / "c2/ro").chmod(0o500)
        outside = layout.root / "outside"
        outside.mkdir()
        (outside / "f").write_text("x")
        (layout.staging_root / "s5").symlink_to(outside)

        keep = Keep(frozenset({"s3"}), frozenset({"c1"}))
        removed = sweep(layout, keep)

        assert 7 == len(removed)
        assert all(path.exists() for path in kept)
        assert not any(path.exists() for path in doomed)
        assert (outside / "f").exists()
        assert () == sweep(layout, keep)

    def test_abandoned_generation_goes_whole(self, layout: Layout) -> None:
        remove_generation(layout)
        remove_generation(layout)

        assert not layout.directory.exists()
