"""The tree that `work/` would commit now (upgrade-run.md §6), and what lies between two trees."""

import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from upgraderun_protocol.ids import TreeId
from upgraderun_runner.workspace.candidate import candidate_tree, ignored_paths
from upgraderun_runner.workspace.diff import FileChange, diff_trees, patch_of
from upgraderun_runner.workspace.errors import TreeRefused
from upgraderun_runner.workspace.files import replace_file
from upgraderun_runner.workspace.git import Git
from upgraderun_runner.workspace.layout import Layout
from upgraderun_runner.workspace.snapshot import checkout
from upgraderun_runner.workspace.trees import list_tree

BASE: dict[str, Any] = {
    ".gitignore": "*.log\nbuild/\n!keep.log\n",
    ".gitattributes": "* text=auto eol=lf\n*.py filter=evil ident\n",
    "src/a.py": "x = 1\n",
    "src/.gitignore": "local.txt\n",
    "crlf.txt": b"one\r\ntwo\r\n",
    "tracked.log": "tracked though ignored\n",
    "run.sh": ("100755", b"#!/bin/sh\n"),
    "link": ("120000", b"src/a.py"),
}
Work = Callable[[], Awaitable[TreeId]]


@pytest.fixture
async def base(git: Git, layout: Layout, maker: Any) -> TreeId:
    tree: TreeId = maker.tree(BASE)
    await checkout(git, layout, tree)
    return tree


async def paths_of(git: Git, tree: TreeId) -> dict[str, str]:
    return {entry.path: entry.mode for entry in await list_tree(git, tree)}


class TestCandidate:
    async def test_untouched_work_is_the_base(self, git: Git, layout: Layout, base: TreeId) -> None:
        assert base == await candidate_tree(git, layout, base)
        assert [] == list(layout.scratch("x").parent.iterdir())
        assert not (layout.git / "index").exists()

    async def test_every_kind_of_change_is_seen(
        self, git: Git, layout: Layout, base: TreeId, maker: Any
    ) -> None:
        (layout.work / "src/a.py").write_bytes(b"x = 2\r\n$Id$\n")
        (layout.work / "new/deep").mkdir(parents=True)
        (layout.work / "new/deep/f").write_text("f")
        (layout.work / "crlf.txt").unlink()
        (layout.work / "run.sh").chmod(0o644)
        (layout.work / "link").unlink()
        (layout.work / "link").symlink_to("run.sh")

        tree = await candidate_tree(git, layout, base)

        expected = {
            **BASE, "src/a.py": b"x = 2\r\n$Id$\n", "new/deep/f": "f", "run.sh": b"#!/bin/sh\n",
            "link": ("120000", b"run.sh"),
        }  # fmt: skip
        del expected["crlf.txt"]
        assert maker.tree(expected) == tree

    async def test_tracked_stays_tracked_and_ignored_untracked_never_enters(
        self, git: Git, layout: Layout, base: TreeId
    ) -> None:
        (layout.work / "tracked.log").write_text("changed\n")
        (layout.work / "debug.log").write_text("ignored")
        (layout.work / "keep.log").write_text("kept")
        (layout.work / "build").mkdir()
        (layout.work / "build/out").write_text("ignored")
        (layout.work / "src/local.txt").write_text("ignored below src only")
        (layout.work / "local.txt").write_text("not ignored at the root")

        found = await paths_of(git, await candidate_tree(git, layout, base))

        assert {*BASE, "keep.log", "local.txt"} == set(found)

    async def test_no_other_exclude_file_counts(
        self, git: Git, layout: Layout, base: TreeId
    ) -> None:
        (layout.git / "info").mkdir(exist_ok=True)
        (layout.git / "info/exclude").write_text("*\n")
        (git.settings.home / ".gitignore").write_text("*\n")
        (layout.work / "new").write_text("x")

        assert "new" in await paths_of(git, await candidate_tree(git, layout, base))

    async def test_file_in_place_of_a_directory(
        self, git: Git, layout: Layout, base: TreeId, maker: Any
    ) -> None:
        (layout.work / "src/a.py").unlink()
        (layout.work / "src/.gitignore").unlink()
        (layout.work / "src").rmdir()
        (layout.work / "src").write_text("a file now")
        expected = {**BASE, "src": "a file now"}
        del expected["src/a.py"], expected["src/.gitignore"]

        assert maker.tree(expected) == await candidate_tree(git, layout, base)

    @pytest.mark.parametrize("name", [".git", "sub/.GIT", "a\nb"])
    async def test_names_that_no_tree_holds_are_refused(
        self, git: Git, layout: Layout, base: TreeId, name: str
    ) -> None:
        path = layout.work / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")

        with pytest.raises(TreeRefused):
            await candidate_tree(git, layout, base)

    async def test_fifo_is_refused(self, git: Git, layout: Layout, base: TreeId) -> None:
        os.mkfifo(layout.work / "pipe")

        with pytest.raises(TreeRefused):
            await candidate_tree(git, layout, base)

    async def test_ignored_paths_are_the_untracked_ignored_ones(
        self, git: Git, layout: Layout, base: TreeId
    ) -> None:
        wished = ("debug.log", "tracked.log", "keep.log", "build/x", "src/local.txt", "src/b.py")

        found = await ignored_paths(git, layout, base, wished)

        assert {"debug.log", "build/x", "src/local.txt"} == found
        assert frozenset() == await ignored_paths(git, layout, base, ("src/b.py",))


class TestDiff:
    async def test_changes_lines_and_modes(
        self, git: Git, layout: Layout, base: TreeId, maker: Any
    ) -> None:
        blob = maker.blob
        replace_file(layout.work, "src/a.py", b"x = 2\ny = 3\n")
        replace_file(layout.work, "new file.bin", b"a\0b\nc\n")
        (layout.work / "crlf.txt").unlink()
        (layout.work / "run.sh").chmod(0o644)
        tree = await candidate_tree(git, layout, base)

        diff = await diff_trees(git, base, tree)

        run = blob(b"#!/bin/sh\n")
        assert (
            FileChange("crlf.txt", "100644", None, blob(b"one\r\ntwo\r\n"), None, 0, 2, False),
            FileChange("new file.bin", None, "100644", None, blob(b"a\0b\nc\n"), 2, 0, True),
            FileChange("run.sh", "100755", "100644", run, run, 0, 0, False),
            FileChange(
                "src/a.py", "100644", "100644", blob(b"x = 1\n"), blob(b"x = 2\ny = 3\n"),
                2, 1, False,
            ),
        ) == diff.files  # fmt: skip
        assert 7 == diff.lines
        assert 4 == diff.without(["src/a.py"]).lines
        assert () == (await diff_trees(git, tree, tree)).files

    async def test_attributes_hide_no_line(self, git: Git, layout: Layout, maker: Any) -> None:
        """A repository can't shrink the scope by calling its sources binary."""
        files = {".gitattributes": "*.py -diff binary linguist-generated\n", "a.py": "x\n"}
        base = maker.tree(files)
        await checkout(git, layout, base)
        replace_file(layout.work, "a.py", b"y\n")
        tree = await candidate_tree(git, layout, base)

        diff = await diff_trees(git, base, tree)

        assert [("a.py", 1, 1, False)] == [
            (f.path, f.added, f.removed, f.binary) for f in diff.files
        ]
        assert "-x\n+y\n" in (await patch_of(git, base, tree, 10_000)).text

    async def test_patch_is_cut_at_a_line(self, git: Git, maker: Any) -> None:
        old, new = maker.tree({"a": "x\n"}), maker.tree({"a": "y\n" * 100, "b": "é\n"})
        whole = await patch_of(git, old, new, 10_000)
        cut = await patch_of(git, old, new, 150)

        assert not whole.truncated
        assert whole.text.startswith("diff --git a/a b/a\n")
        assert cut.truncated
        assert len(cut.text.encode()) <= 150
        assert whole.text.startswith(cut.text)
        assert cut.text.endswith("\n")
