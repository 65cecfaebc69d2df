"""Redaction: the pure part, the same for both sides (security.md §5).

Every secret is registered when it enters the process. Redact first, cut to length second: the
other order leaves half a secret. People read `SafeText` only, and only `Redactor` makes it.
"""

import base64
import json
import re
from collections.abc import Iterable
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


def _anywhere(text: str) -> "re.Pattern[str]":
    """Match a text also when line breaks were put between its characters."""
    return re.compile(r"(?:\\n|[\r\n])*".join(re.escape(character) for character in text))


class Redactor:
    """Holds the secrets of one process. Registering twice does nothing; nothing is forgotten."""

    def __init__(self) -> None:
        self._secrets: dict[str, tuple[re.Pattern[str], ...]] = {}

    def register(self, secret: str) -> None:
        """Add a secret. Shorter than 8 characters is ignored: it would blank ordinary words."""
        bare = secret.strip()
        if len(bare) >= SECRET_LENGTH_MIN and bare not in self._secrets:
            self._secrets[bare] = tuple(_anywhere(text) for text in dict.fromkeys(_spellings(bare)))

    def redact(self, text: str, longest: int = 1024) -> SafeText:
        """Make a text safe to show, at most `longest` characters with a visible mark if cut."""
        for patterns in self._secrets.values():
            for pattern in patterns:
                text = pattern.sub(MASK, text)
        for pattern in _PATTERNS:
            text = pattern.sub(MASK, text)
        text = _CONTROL.sub("\ufffd", text)
        if len(text) > longest:
            text = text[: max(0, longest - len(_CUT))] + _CUT
        return SafeText(text)
