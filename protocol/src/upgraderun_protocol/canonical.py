"""Canonical JSON and digests: one spelling for everything that is hashed.

Callers: entries, approvals, records of runner and operator. Never used for what people read.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence

from upgraderun_protocol.ids import Sha256

_HINT = "canonical JSON holds strings, integers, booleans, null, lists and maps of strings"


class NotCanonicalError(ValueError):
    """The value can't be written as canonical JSON: a float, a key that is no string, a lone surrogate."""


def _check(value: object, where: str) -> None:
    if value is None or isinstance(value, bool | int):
        return
    if isinstance(value, str):
        # Nearly every text is ASCII, which is known without looking at each character.
        if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
            raise NotCanonicalError(f"{where}: lone surrogate; {_HINT}")
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise NotCanonicalError(f"{where}: key {key!r} is no string; {_HINT}")
            _check(key, where)
            _check(item, f"{where}.{key}")
        return
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        for index, item in enumerate(value):
            _check(item, f"{where}[{index}]")
        return
    raise NotCanonicalError(f"{where}: {type(value).__name__}; {_HINT}")


def _is_plain(value: object) -> bool:
    """Whether a value is surely canonical: the everyday types, told by identity, no path kept.

    False says nothing: `_check` looks again and names what is wrong.
    """
    if type(value) is str:
        return value.isascii()
    if type(value) is dict:
        return all(
            type(key) is str and key.isascii() and _is_plain(item) for key, item in value.items()
        )
    if type(value) is list or type(value) is tuple:
        return all(map(_is_plain, value))
    return value is None or type(value) is int or type(value) is bool


def canonical_json(value: object) -> bytes:
    """Write UTF-8 JSON with sorted keys, no spaces, no floats (upgrade-run.md §1).

    Equal values give equal bytes. Raises NotCanonicalError for anything that JSON would blur.
    """
    if not _is_plain(value):
        _check(value, "$")
    text = json.dumps(
        value,
        ensure_ascii=False,
        sort_keys=True,
        separators=(",", ":"),
        allow_nan=False,
        default=_plain,
    )
    return text.encode("utf-8")


def _plain(value: object) -> object:
    """Turn the mappings and sequences that `json` doesn't know into those it knows."""
    if isinstance(value, Mapping):
        return dict(value)
    assert isinstance(value, Sequence), "everything else was refused before"
    return list(value)


def sha256_of(data: bytes) -> Sha256:
    """Name bytes: 64 lower-case hex digits."""
    return Sha256(hashlib.sha256(data).hexdigest())


def digest_of(value: object) -> Sha256:
    """SHA-256 of the canonical JSON of a value."""
    return sha256_of(canonical_json(value))


def is_sha256(text: str) -> bool:
    """Whether a text is spelled as a digest: 64 lower-case hex digits."""
    return len(text) == 64 and all(character in "0123456789abcdef" for character in text)


def is_git_id(text: str) -> bool:
    """Whether a text is spelled as a SHA-1 object id: 40 lower-case hex digits."""
    return len(text) == 40 and all(character in "0123456789abcdef" for character in text)
