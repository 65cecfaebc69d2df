"""Making untrusted text harmless where it leaves (security.md §8). Pure.

Callers: `forge.texts`. What comes out links, closes, notifies and hides nothing, in GitHub's
Markdown and in a commit message alike. Every change is visible: nothing is broken by invisible
characters, which a later reader might strip.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import Final

_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_CUT: Final = " [cut]"
_HEX_PIECE: Final = 6

_COMMIT: Final = re.compile(r"(?i)(?<![0-9a-f])[0-9a-f]{7,40}(?![0-9a-f])")

_RULES: Final[tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]] = (
    # Escapes and entities first: they could spell any of the characters below.
    (re.compile(r"\\(?=[!-/:-@\[-`{-~])"), r"\\ "),
    (re.compile(r"&(?=[#A-Za-z])"), "& "),
    # Raw HTML, autolinks and comments: one typographic bracket for the ASCII one.
    (re.compile(r"<"), "‹"),  # noqa: RUF001 - alike for people, nothing to a parser
    # Links, images, references, footnotes.
    (re.compile(r"\](?=[(\[:])"), "] "),
    (re.compile(r"!(?=\[)"), "! "),
    (re.compile(r"(?i)(https?|ftp|ssh|git|file|mailto|xmpp|javascript|data):(?=\S)"), r"\1: "),
    (re.compile(r":(?=//)"), ": "),
    (re.compile(r"(?i)\bwww\.(?=\S)"), "www. "),
    # Mentions and references to issues, pull requests and commits.
    (re.compile(r"@(?=\S)"), "@ "),
    (re.compile(r"#(?=\w)"), "# "),
    (re.compile(r"(?i)\b(GH)-(?=\d)"), r"\1- "),
    (_COMMIT, lambda m: _pieces(m[0])),
    # Fences would swallow what follows; trailers would speak for somebody.
    (re.compile(r"`{3,}|~{3,}"), lambda m: " ".join(m[0])),
    (re.compile(r"(?m)^(\s*)((?:[A-Za-z0-9]+-)+[A-Za-z0-9]+\s*:)"), r"\1» \2"),
)


def _pieces(text: str) -> str:
    return " ".join(text[i : i + _HEX_PIECE] for i in range(0, len(text), _HEX_PIECE))


def visible(text: str) -> str:
    """Drop control, bidi, zero-width and unassigned characters; line ends become newlines."""
    lines = re.split(r"\r\n|[\n\r\v\f\x85\u2028\u2029]", text)
    return "\n".join(
        "".join(" " if c == "\t" else c for c in line if c == "\t" or _is_visible(c))
        for line in lines
    )


def _is_visible(character: str) -> bool:
    return unicodedata.category(character) not in _INVISIBLE


def cut(text: str, characters_max: int) -> str:
    """At most so many characters, with a visible mark where something is missing."""
    if len(text) <= characters_max:
        return text
    return text[: max(0, characters_max - len(_CUT))].rstrip() + _CUT


def neutralise(text: str, characters_max: int) -> str:
    """Make untrusted text harmless in Markdown and commit messages; several lines stay several."""
    harmless = visible(cut(text, characters_max))
    for pattern, replacement in _RULES:
        harmless = pattern.sub(replacement, harmless)
    if len(harmless) <= characters_max:
        return harmless
    kept = max(0, characters_max - len(_CUT))
    # Cutting a digest can leave what reads as a commit id: look once more, then cut the pieces.
    return _COMMIT.sub(lambda m: _pieces(m[0]), harmless[:kept])[:kept].rstrip() + _CUT


def one_line(text: str, characters_max: int) -> str:
    """The same on one line."""
    return neutralise(" ".join(visible(text).split()), characters_max)


def code_span(text: str, characters_max: int) -> str:
    """Untrusted text as a code span that it can't leave."""
    inner = one_line(text, characters_max).replace("`", "'")
    return f"`{inner or ' '}`"


def fenced(text: str, characters_max: int) -> str:
    """Untrusted text in a fence longer than any run of backticks in it."""
    inner = neutralise(text, characters_max)
    longest = max((len(run) for run in re.findall(r"`+", inner)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{inner}\n{fence}"


def quoted(text: str, characters_max: int) -> str:
    """Untrusted text as one marked block: a quotation, which no construct of it can leave."""
    lines = neutralise(text, characters_max).split("\n")
    return "\n".join(f"> {line}".rstrip() for line in lines)
