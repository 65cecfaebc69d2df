"""Redaction: the pure part, the same for both sides (security.md §5).

Every secret is registered when it enters the process. Redact first, cut to length second: the
other order leaves half a secret. People read `SafeText` only, and only `Redactor` makes it.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote

MASK: Final = "[redacted]"
SECRET_LENGTH_MIN: Final = 8
_CUT: Final = " [cut]"

_PATTERNS: Final = (
    # Installation tokens may be long and carry dots: their newer form holds a signed statement.
    re.compile(r"\bghs_[A-Za-z0-9_.-]{4,}"),
    re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-|xox[abpors]-|npm_|pypi-|sk-)[A-Za-z0-9_-]{4,}"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    re.compile(r"(?i)(?<=authorization:)\s*\S+(?:\s+\S+)?"),
    re.compile(r"(?i)\b(?:bearer|basic|token)\s+[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"(?<=://)[^/\s@]+(?=@)"),
    re.compile(r"(?<=[?&])[A-Za-z0-9_.-]+=[^\s&#\"']+"),
    re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
    ),
)
_CONTROL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


class SecretText:
    """A secret that shows itself to nobody by accident: whatever prints it, prints a mask."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Give the value to the one call that needs it."""
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretText) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return MASK

    def __reduce__(self) -> str:
        raise TypeError("a secret isn't stored")


class SafeText(str):
    """A text that people may read: redacted, bounded, without control or bidi characters."""

    __slots__ = ()


def _spellings(secret: str) -> Iterable[str]:
    """Spell a secret in every form in which it may leak: base64 has three alignments."""
    yield secret
    yield quote(secret, safe="")
    yield json.dumps(secret)[1:-1]
    data = secret.encode("utf-8")
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + data).decode("ascii")
        # The first and last group may mix with neighbours: only the inner part is certain.
        inner = encoded[4 if shift else 0 : len(encoded) // 4 * 4 - 4]
        if len(inner) >= SECRET_LENGTH_MIN:
            yield inner
            yield inner.replace("+", "-").replace("/", "_")


def _kept(text: str) -> list[int]:
    """Find the places that stay when line breaks go, real ones and escaped ones, also nested."""
    places: list[int] = []
    for place, character in enumerate(text):
        if character == "n" and places and text[places[-1]] == "\\":
            places.pop()
        elif character not in "\r\n":
            places.append(place)
    return places


def _unbroken(text: str) -> str:
    """Take out every line break; most texts have none that are escaped, which is fast."""
    joined = text.replace("\r", "").replace("\n", "")
    return "".join(text[place] for place in _kept(text)) if "\\n" in joined else joined


def _occurrences(text: str, part: str) -> Iterator[tuple[int, int]]:
    start = text.find(part)
    while start >= 0:
        yield start, start + len(part)
        start = text.find(part, start + len(part))


class Redactor:
    """Holds the secrets of one process. Registering twice does nothing; nothing is forgotten.

    Plain searches, no patterns: a token of a thousand characters would make one of many thousand.
    """

    def __init__(self) -> None:
        self._secrets: set[str] = set()
        self._spellings: dict[str, None] = {}
        self._unbroken: dict[str, None] = {}

    def register(self, secret: str) -> None:
        """Add a secret. Shorter than 8 characters is ignored: it would blank ordinary words."""
        bare = secret.strip()
        if len(bare) >= SECRET_LENGTH_MIN and bare not in self._secrets:
            self._secrets.add(bare)
            self._spellings |= dict.fromkeys(_spellings(bare))
            unbroken = map(_unbroken, _spellings(bare))
            self._unbroken |= dict.fromkeys(p for p in unbroken if len(p) >= SECRET_LENGTH_MIN)

    def redact(self, text: str, longest: int = 1024) -> SafeText:
        """Make a text safe to show, at most `longest` characters with a visible mark if cut."""
        text = self._without_secrets(text)
        for pattern in _PATTERNS:
            text = pattern.sub(MASK, text)
        text = _CONTROL.sub("\ufffd", text)
        if len(text) > longest:
            text = text[: max(0, longest - len(_CUT))] + _CUT
        return SafeText(text)

    def _without_secrets(self, text: str) -> str:
        """Mask every spelling, then those that line breaks were put into."""
        for spelling in self._spellings:
            text = text.replace(spelling, MASK)
        unbroken = _unbroken(text)
        spans = sorted(s for part in self._unbroken for s in _occurrences(unbroken, part))
        if not spans:
            return text
        places = _kept(text)
        shown, end = "", 0
        for first, behind in spans:
            start = places[first]
            if start >= end:
                shown += text[end:start] + MASK
            end = max(end, places[behind - 1] + 1)
        return shown + text[end:]
