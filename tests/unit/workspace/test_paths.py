"""Paths that no tree and no proposal may hold (H30): upgrade-run.md §6 in runner and publisher."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upgraderun_runner.workspace.paths import (
    folded,
    link_violation,
    path_violation,
    shown,
    write_violation,
)

REFUSED_IN_ANY_TREE = [
    "", "/", "/etc/passwd", "//a", "a//b", "a/", ".", "..", "./a", "a/./b", "../a", "a/../b", "a/..",
    "a\0b", "a\rb", "a\nb", "x/a\n", "\n", "a" * 256, "d/" * 2100 + "f", "a\udc80",
    ".git", ".GIT", ".Git/config", "a/.git", "a/.gIt/hooks/x", ".git/", "sub/.git/HEAD",
    ".git.", ".git ", ".git. .", ".git::$INDEX_ALLOCATION", ".git:x", "git~1", "GIT~1", "a/git~1/x",
    ".git\\config", "a\\.git\\x", ".g\u200cit", ".git\u200d", "\ufeff.git", ".\u202egit", ".g\u00adit",
    "\uff0egit", ".\uff47\uff49\uff54", ".G\u200bIT",
]  # fmt: skip
REFUSED_IN_PROPOSALS = [
    "a\tb", "a\x1b[31mb", "a\x7f", "a\x85b", "a\u200bb", "a\u202eb", "a\u2028b", "a\ufeff", "a\\b",
    "src\\a.py", "a.", "a ", "dir./x", "dir /x", "a/b. ", "caf" + "e\u0301" + ".py", "a\ue000",
    "a\u00a0b", "a\u3000b", "a\u2009b",
]  # fmt: skip
ALLOWED = [
    "a", "src/a.py", ".gitignore", ".github/x", "git", "gitx/.gitx", "a b/c d", "...", "..a",
    "café.py", "日本/語.txt", "-rf", "a:b", "x" * 255, "git~2", ".git~1", "~", "$(x)", "a;b", "'q'",
]  # fmt: skip


@pytest.mark.parametrize("path", REFUSED_IN_ANY_TREE)
def test_no_tree_may_hold(path: str) -> None:
    refused = path_violation(path)

    assert refused is not None
    assert "path" == refused.code
    assert refused.path.isprintable()
    assert write_violation(path) is not None


@pytest.mark.parametrize("path", REFUSED_IN_PROPOSALS)
def test_no_proposal_may_write_though_a_base_may_hold(path: str) -> None:
    assert path_violation(path) is None
    assert write_violation(path) is not None


@pytest.mark.parametrize("path", ALLOWED[1:])
def test_ordinary_paths_pass(path: str) -> None:
    assert path_violation(path) is None
    assert write_violation(path) is None or path.endswith(".")


@given(st.text(max_size=30))
def test_what_passes_is_relative_and_normal(path: str) -> None:
    if write_violation(path) is None:
        segments = path.split("/")
        assert all(segment not in {"", ".", ".."} for segment in segments)
        assert not any("git" == s.strip(" .").casefold() and s[0] == "." for s in segments)
        assert path.isprintable()
        assert unicodedata.normalize("NFC", path) == path


def test_shown_is_escaped_and_short() -> None:
    assert "a\\u001b\\u202eb" == shown("a\x1b\u202eb")
    assert 200 == len(shown("x" * 500))


def test_folding_makes_variants_equal() -> None:
    variants = ["CAFÉ", "cafe\u0301", "Cafe\u0301", "café"]

    assert {folded("café")} == {folded(text) for text in variants}
    assert folded("STRASSE") == folded("straße")


class TestLinks:
    """A link's target, by text from its place, stays inside the tree and outside `.git` (§6)."""

    @pytest.mark.parametrize(
        ("path", "target"),
        [
            ("a", "b"), ("d/a", "../b"), ("d/e/a", "../../x/y"), ("a", "."), ("d/a", ".."),
            ("a", "missing/file"), ("d/a", "./x"),
        ],
    )  # fmt: skip
    def test_inside_is_fine(self, path: str, target: str) -> None:
        assert link_violation(path, target.encode(), {path: target.encode()}) is None

    @pytest.mark.parametrize(
        ("path", "target"),
        [
            ("a", b".."), ("a", b"../x"), ("d/a", b"../../x"), ("a", b"/etc/passwd"), ("a", b""),
            ("a", b"x\0y"), ("a", b"x\ny"), ("a", b".git/config"), ("d/a", b"../.GIT/hooks"),
            ("a", b"\xff"), ("a", b"d/../../x"), ("a", b"x" * 5000), ("a", b"b/../.git"),
        ],
    )  # fmt: skip
    def test_outside_is_refused(self, path: str, target: bytes) -> None:
        refused = link_violation(path, target, {path: target})

        assert refused is not None
        assert "link" == refused.code

    def test_link_on_the_way_cannot_turn_outwards(self) -> None:
        """`p/q/d` is the root, so `d/../x` leaves though its text stays inside."""
        links = {"p/q/d": b"../..", "p/q/e": b"d/../x"}

        assert link_violation("p/q/d", links["p/q/d"], links) is None
        assert link_violation("p/q/e", links["p/q/e"], links) is not None

    def test_circle_is_refused(self) -> None:
        links = {"a": b"b", "b": b"a"}

        assert link_violation("a", b"b", links) is not None

    def test_links_through_links_inside_are_fine(self) -> None:
        links = {"a": b"b/c", "b": b"d", "d/c": b"../e"}

        assert [None] * 3 == [link_violation(p, t, links) for p, t in links.items()]
