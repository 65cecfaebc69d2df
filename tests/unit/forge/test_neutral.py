"""Untrusted text that leaves links, closes, notifies and hides nothing (security.md §8, H33)."""

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upgraderun_runner.forge.neutral import code_span, cut, fenced, neutralise, one_line, quoted

HAZARDS = (
    re.compile(r"@\w"),
    re.compile(r"#\w"),
    re.compile(r"(?i)\bgh-\d"),
    re.compile(r"(?<![0-9A-Fa-f])[0-9a-fA-F]{7,40}(?![0-9A-Fa-f])"),
    re.compile(r"<"),
    re.compile(r"&[#A-Za-z]"),
    re.compile(r"\]\(|\]\[|\]:|!\["),
    re.compile(r"(?i)(https?|ftp|mailto|javascript):\S"),
    re.compile(r"://"),
    re.compile(r"(?i)\bwww\.\S"),
    re.compile(r"```|~~~"),
    re.compile(r"(?im)^\s*(co-authored-by|signed-off-by|upgraderun-[a-z]+)\s*:"),
    re.compile(
        r"(?i)(close[sd]?|fix(e[sd])?|resolve[sd]?):?\s+(#\d|gh-\d|[\w.-]+/[\w.-]+#\d|https?://)"
    ),
    re.compile(r"\\[!-/:-@\[-`{-~]"),
)


def hazards_in(text: str) -> list[str]:
    found = [f"{hazard.pattern}: {m[0]!r}" for hazard in HAZARDS if (m := hazard.search(text))]
    odd = {
        c for c in text if c != "\n" and unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
    }
    return found + sorted(map(repr, odd))


HOSTILE = [
    "ping @octocat please", "cc @org/team", "email a@b.example", "fixes #12", "Closes GH-7",
    "resolves owner/repo#3", "fix: #1", "see https://evil.example/x", "www.evil.example",
    "[click](https://evil.example)", "![pixel](https://evil.example/p.png)", "[a][b]",
    "[b]: https://evil.example", "[^1]: note", "<img src=x onerror=alert(1)>",
    "<!-- upgraderun:v1 run=x proposal=y target=z -->", "<details><summary>", "<https://evil.example>",
    "&#64;octocat", "&commat;octocat", "&lt;img&gt;", "\\@octocat", "GH\\-12", "#\\12",
    "deadbeefdeadbeefdeadbeefdeadbeefdeadbeef", "revert 1a2b3c4", "owner/repo@1a2b3c4d",
    "Co-authored-by: Eve <eve@evil.example>", "x\nSigned-off-by: Eve", "x\n  UpgradeRun-Id: other",
    "\u202efdp.exe", "zero\u200bwidth", "a\x1b[31mred", "a\x00b", "bell\x07", "\ufeffbom", "a\u2028b",
    "```\nunclosed", "~~~~ sh", "javascript:alert(1)", "HTTPS://EVIL.EXAMPLE", "mailto:a@b.c",
    "http\u200b://evil", "@\u200bocto", "1a2b\u200b3c4d", "Fixes\r#12", "@@a", "##1", "\\\\@x", "a@b@c",
    "GH-1GH-2", "]\u200b(", "`````", "<<a", "&&#1;", "gh-\u202d9",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_harmless(text: str) -> None:
    assert [] == hazards_in(neutralise(text, 1_000))
    assert [] == hazards_in(one_line(text, 1_000))
    assert "\n" not in one_line(text, 1_000)


PIECES = st.sampled_from(
    [*HOSTILE, "@", "#", "1", "<", "&", "\\", "[", "]", "(", ":", "/", "GH-", "www.", "`", "~", "\n",
     " ", "a", "\u200b", "\u202e", "deadbee", "fixes ", "Signed-off-by", "http"]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(PIECES, st.text(max_size=5)), max_size=12).map("".join))
def test_any_composition_is_harmless(text: str) -> None:
    for limit in (30, 1_000):
        assert [] == hazards_in(neutralise(text, limit))
        assert len(neutralise(text, limit)) <= limit
        assert [] == hazards_in(one_line(text, limit))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(PIECES, st.text(max_size=5)), max_size=12).map("".join))
def test_code_span_cannot_be_left(text: str) -> None:
    span = code_span(text, 100)

    assert ("`", "`") == (span[0], span[-1])
    assert "`" not in span[1:-1]
    assert "\n" not in span
    assert [] == hazards_in(span[1:-1])  # a backslash escapes nothing inside a span


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(PIECES, st.text(max_size=5)), max_size=12).map("".join))
def test_quotation_and_fence_cannot_be_left(text: str) -> None:
    assert all(line.startswith(">") for line in quoted(text, 500).split("\n"))
    lines = fenced(text, 500).split("\n")
    assert lines[0] == lines[-1]
    assert not any(lines[0] in line for line in lines[1:-1])


@pytest.mark.parametrize(
    "text",
    [
        "Upgrade httpx from 0.27.2 to 0.28.1", "Das Gerät läuft: 日本語 ✓", "x = y[0] * 2",
        "a < b", "50% faster, 3 files", "C:\\temp", "two\nlines", "version 2.32.0.2024",
    ],
)  # fmt: skip
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert text.replace("<", "\u2039") == neutralise(text, 1_000)


def test_cut_digest_does_not_become_a_commit_id() -> None:
    """A run of 41 hex digits is no commit id; cut to 40 it was one (found by the property)."""
    for limit in range(8, 60):
        assert [] == hazards_in(neutralise("a" + "deadbeef" * 5, limit))


def test_cut_is_visible() -> None:
    assert "abcd [cut]" == cut("abcdefghijklm", 10)
    assert "abc" == cut("abc", 3)
