"""Journal drafts that fit: an entry is at most 512 bytes, whatever people and clusters wrote.

Callers: `decide`. Free text gives way first, identities never.
"""

from collections.abc import Mapping
from typing import Final

from upgraderun_protocol.entries import Draft, Entry, EntryState
from upgraderun_protocol.ids import EntryId, Epoch, Sha256
from upgraderun_protocol.limits import ENTRY_BYTES_MAX, ENTRY_DATA_VALUE_MAX

_GIVES_WAY: Final = ("message", "observed", "expected", "approval", "by")
_LEFT_OUT: Final = ("repository", "generation", "branch")
"""Names that another place knows too: half of one would be a wrong one, so none is cut."""

_MORE: Final = " ..."

_WORST_SEQ: Final = 99_999
_WORST_TIME: Final = "2026-01-01T00:00:00.000000Z"


def brief(text: str, longest: int) -> str:
    """Cut a sentence to its room in an entry: between words, with a mark that tells of the rest."""
    if len(text) <= longest:
        return text
    kept = text[: longest - len(_MORE)]
    return (kept.rpartition(" ")[0] or kept).rstrip(" ;:,") + _MORE


def fitted(
    entry_id: str,
    kind: str,
    state: EntryState,
    data: Mapping[str, str | None],
    artifacts: Mapping[str, Sha256] | None = None,
) -> Draft:
    """Make a draft; values that are None are left out, free texts are cut until it fits.

    What is too long even then loses names that are known elsewhere. Raises EntryError if identities
    alone are too long: that is a bug of the caller.
    """
    kept = {key: value for key, value in data.items() if value is not None}
    for key, value in tuple(kept.items()):
        if len(value) > ENTRY_DATA_VALUE_MAX and key in _LEFT_OUT:
            del kept[key]
        elif key in _GIVES_WAY:
            kept[key] = value[:ENTRY_DATA_VALUE_MAX]
    over = _size(entry_id, kind, state, kept, artifacts or {}) - ENTRY_BYTES_MAX
    for key in [key for key in (*_GIVES_WAY, *_LEFT_OUT) if key in kept]:
        if over <= 0:
            break
        if key in _GIVES_WAY:
            kept[key] = _shorter(kept[key], over)
        else:
            del kept[key]
        over = _size(entry_id, kind, state, kept, artifacts or {}) - ENTRY_BYTES_MAX
    return Draft(EntryId(entry_id), kind, state, kept, artifacts or {})


def _shorter(text: str, over: int) -> str:
    """Cut so many bytes of UTF-8 (escapes counted as six) from the end, leaving whole characters."""
    removed = 0
    while text and removed < over:
        removed += _width(text[-1])
        text = text[:-1]
    return text


def _width(character: str) -> int:
    """Bytes of a character in canonical JSON."""
    if character in '"\\\n\t\r':
        return 2
    return 6 if character < " " else len(character.encode("utf-8"))


def _size(
    entry_id: str,
    kind: str,
    state: EntryState,
    data: Mapping[str, str],
    artifacts: Mapping[str, Sha256],
) -> int:
    entry = Entry(
        _WORST_SEQ,
        EntryId(entry_id),
        kind,
        state,
        _WORST_TIME,
        "a9999",
        Epoch(_WORST_SEQ),
        data,
        artifacts,
    )
    return entry.size
