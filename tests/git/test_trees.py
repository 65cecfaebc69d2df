"""Tree rules before a byte is written, exact snapshots (upgrade-run.md §6, H30)."""

import os
import stat
from typing import Any, ClassVar

import pytest

from upgraderun_runner.workspace import limits
from upgraderun_runner.workspace.errors import TreeRefused, WorkspaceContradicts
from upgraderun_runner.workspace.git import Bounds, Git
from upgraderun_runner.workspace.layout import Layout
from upgraderun_runner.workspace.snapshot import checkout, make_snapshot, verify_snapshot
from upgraderun_runner.workspace.trees import TreeEntry, list_tree, tree_violations


async def codes(git: Git, tree: Any) -> set[str]:
    with pytest.raises(TreeRefused) as caught:
        await list_tree(git, tree)
    return {violation.code for violation in caught.value.violations}


class TestRules:
    """What §6 refuses, on real tree objects."""

    async def test_modes_paths_and_links_are_listed(self, git: Git, maker: Any) -> None:
        tree = maker.tree(
            {"a.py": "x", "bin/run": ("100755", b"#!"), "l": ("120000", b"a.py"), "é/ü": "y"}
        )

        listing = await list_tree(git, tree)

        assert [
            ("a.py", "100644", 1), ("bin/run", "100755", 2), ("l", "120000", 4), ("é/ü", "100644", 1)
        ] == [(e.path, e.mode, e.size) for e in listing]  # fmt: skip

    @pytest.mark.parametrize(
        "name",
        [
            b".git",
            b".GIT",
            b"..",
            b".",
            b"a\nb",
            b"\xff\xfe",
            b"git~1",
            b".g\xe2\x80\x8cit",
            b".git ",
        ],
    )
    async def test_odd_names_are_refused(self, git: Git, maker: Any, name: bytes) -> None:
        tree = maker.raw_tree([("100644", name, maker.blob(b"x"))])

        assert {"path"} == await codes(git, tree)

    async def test_submodule_is_refused(self, git: Git, maker: Any) -> None:
        assert {"submodule"} == await codes(git, maker.raw_tree([("160000", b"sub", "1" * 40)]))

    async def test_other_modes_are_refused(self, git: Git, maker: Any) -> None:
        tree = maker.raw_tree([("100664", b"a", maker.blob(b"x"))])

        assert {"mode"} == await codes(git, tree)

    async def test_duplicates_are_refused(self, git: Git, maker: Any) -> None:
        blob = maker.blob(b"x")
        inner = maker.tree({"f": "1"})

        assert {"duplicate"} == await codes(
            git, maker.raw_tree([("100644", b"a", blob), ("100644", b"a", blob)])
        )
        assert {"duplicate"} == await codes(
            git, maker.raw_tree([("100644", b"a", blob), ("40000", b"a", inner)])
        )

    @pytest.mark.parametrize("target", [b"../x", b"/etc/passwd", b".git/config", b"d/../../x"])
    async def test_links_that_leave_are_refused(self, git: Git, maker: Any, target: bytes) -> None:
        assert {"link"} == await codes(git, maker.tree({"l": ("120000", target), "d/f": "x"}))

    async def test_all_violations_are_listed(self, git: Git, maker: Any) -> None:
        rows = [
            ("160000", b"sub", "1" * 40), ("100644", b".git", maker.blob(b"x")),
            ("100664", b"m", maker.blob(b"x")),
        ]  # fmt: skip

        assert {"submodule", "path", "mode"} == await codes(git, maker.raw_tree(rows))

    async def test_20001_files_are_too_many(self, git: Git, maker: Any) -> None:
        blob = maker.blob(b"")
        rows = [("100644", f"{i:05}".encode(), blob) for i in range(20_001)]

        assert 20_000 == len(await list_tree(git, maker.raw_tree(rows[:-1])))
        assert {"too_many_files"} == await codes(git, maker.raw_tree(rows))

    async def test_tree_too_long_to_list_is_too_many_files(self, git: Git, maker: Any) -> None:
        tree = maker.tree({"a": "x"})
        terse = Bounds(stdout_max=10)

        with pytest.raises(TreeRefused) as caught:
            await list_tree(git, tree, terse)

        assert ["too_many_files"] == [v.code for v in caught.value.violations]

    def test_sizes_are_bounded_per_file_and_in_all(self) -> None:
        large = TreeEntry("a", "100644", "1" * 40, limits.TREE_FILE_BYTES_MAX)
        rows = tuple(TreeEntry(f"f{i}", "100644", "1" * 40, large.size) for i in range(8))

        assert () == tree_violations(rows)
        assert ["too_large"] == [
            v.code for v in tree_violations((*rows, TreeEntry("z", "100644", "1" * 40, 1)))
        ]
        too_large = TreeEntry("a", "100644", "1" * 40, limits.TREE_FILE_BYTES_MAX + 1)
        assert ["too_large"] == [v.code for v in tree_violations((too_large,))]


class TestSnapshot:
    """Exact: raw blobs, no filter, no attribute; then verified."""

    FILES: ClassVar[dict[str, Any]] = {
        ".gitattributes": "* text=auto eol=crlf\n*.z filter=evil\nident.txt ident\n",
        "crlf.txt": b"one\r\ntwo\r\n",
        "lf.txt": b"one\ntwo\n",
        "ident.txt": b"$Id$\n",
        "x.z": b"\x00\x01",
        "bin/tool": ("100755", b"#!/bin/sh\n"),
        "deep/er/l": ("120000", b"../../lf.txt"),
        "empty": b"",
    }

    async def test_bytes_modes_and_links_are_exact(
        self, git: Git, layout: Layout, maker: Any
    ) -> None:
        tree = maker.tree(self.FILES)

        directory = await make_snapshot(git, layout, tree)

        for path, value in self.FILES.items():
            mode, content = value if isinstance(value, tuple) else ("100644", value)
            data = content.encode() if isinstance(content, str) else content
            if mode == "120000":
                assert data == os.fsencode((directory / path).readlink())
            else:
                assert data == (directory / path).read_bytes()
                expected = 0o755 if mode == "100755" else 0o644
                assert expected == stat.S_IMODE((directory / path).stat().st_mode)
        assert layout.snapshot(tree) == directory
        assert [tree] == [path.name for path in layout.snapshots.iterdir()]

    async def test_second_call_verifies_and_keeps(
        self, git: Git, layout: Layout, maker: Any
    ) -> None:
        tree = maker.tree(self.FILES)
        first = await make_snapshot(git, layout, tree)
        inode = first.stat().st_ino

        assert inode == (await make_snapshot(git, layout, tree)).stat().st_ino

        (first / "lf.txt").write_text("changed")
        with pytest.raises(WorkspaceContradicts, match=r"lf\.txt"):
            await make_snapshot(git, layout, tree)

    async def test_half_made_copy_is_made_anew(self, git: Git, layout: Layout, maker: Any) -> None:
        tree = maker.tree({"a": "x"})
        partial = layout.snapshots / f"{tree}.partial"
        partial.mkdir()
        (partial / "a").write_text("half")

        directory = await make_snapshot(git, layout, tree)

        assert "x" == (directory / "a").read_text()
        assert not partial.exists()

    async def test_nothing_is_written_for_a_refused_tree(
        self, git: Git, layout: Layout, maker: Any
    ) -> None:
        tree = maker.tree({"a": "x", "l": ("120000", b"../../x")})

        with pytest.raises(TreeRefused):
            await make_snapshot(git, layout, tree)

        assert [] == list(layout.snapshots.iterdir())

    async def test_every_difference_is_found(self, git: Git, layout: Layout, maker: Any) -> None:
        tree = maker.tree(self.FILES)
        entries = await list_tree(git, tree)
        directory = await make_snapshot(git, layout, tree)
        assert () == await verify_snapshot(entries, directory)

        (directory / "crlf.txt").write_bytes(b"one\ntwo\n")
        (directory / "lf.txt").chmod(0o755)
        (directory / "empty").unlink()
        (directory / "new.txt").write_text("x")
        (directory / "extra").mkdir()
        link = directory / "deep/er/l"
        link.unlink()
        link.symlink_to("../../crlf.txt")

        assert {
            "missing: empty", "foreign: new.txt", "foreign directory: extra",
            "differs: crlf.txt", "differs: lf.txt", "differs: deep/er/l",
        } == set(await verify_snapshot(entries, directory))  # fmt: skip

    async def test_fifo_is_refused_without_opening_it(
        self, git: Git, layout: Layout, maker: Any
    ) -> None:
        tree = maker.tree({"a": "x"})
        entries = await list_tree(git, tree)
        directory = await make_snapshot(git, layout, tree)
        os.mkfifo(directory / "pipe")

        with pytest.raises(TreeRefused, match="pipe"):
            await verify_snapshot(entries, directory)

    async def test_link_in_place_of_a_directory_is_not_followed(
        self, git: Git, layout: Layout, maker: Any
    ) -> None:
        tree = maker.tree({"d/a": "x"})
        entries = await list_tree(git, tree)
        directory = await make_snapshot(git, layout, tree)
        (directory / "d").rename(layout.directory / "moved")
        (directory / "d").symlink_to(layout.directory / "moved")

        assert ("missing: d/a", "foreign: d") == await verify_snapshot(entries, directory)

    async def test_many_blobs_are_read_in_batches(
        self, git: Git, layout: Layout, maker: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("upgraderun_runner.workspace.trees._BATCH_BYTES", 10)
        files = {f"f{i}": f"content {i}" for i in range(7)}

        await checkout(git, layout, maker.tree(files))

        assert files == {p.name: p.read_text() for p in layout.work.iterdir()}

    async def test_sandbox_made_depth_and_number_are_bounded(
        self, git: Git, layout: Layout, maker: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """H29: a deep tree and a million names cost no more than their bound."""
        entries = await list_tree(git, maker.tree({"a": "x"}))
        directory = layout.directory / "made"
        directory.mkdir()
        here = os.open(directory, os.O_RDONLY)
        for _ in range(40):
            os.mkdir("d" * 120, dir_fd=here)
            below = os.open("d" * 120, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        os.close(here)

        with pytest.raises(TreeRefused, match="too deep"):
            await verify_snapshot(entries, directory)

        monkeypatch.setattr(limits, "TREE_FILES_MAX", 10)
        for number in range(30):
            (layout.work / str(number)).touch()
        with pytest.raises(TreeRefused, match="more than a tree may hold"):
            await verify_snapshot(entries, layout.work)

    async def test_path_that_cannot_be_opened_is_refused_before_anything_is_written(
        self, git: Git, layout: Layout, maker: Any
    ) -> None:
        path = "/".join(["d" * 200] * 20)

        with pytest.raises(TreeRefused, match="too long to be opened"):
            await checkout(git, layout, maker.tree({path: "x"}))

        assert [] == list(layout.work.iterdir())
