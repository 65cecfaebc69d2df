"""Rules for paths (upgrade-run.md §6, §9.4; security.md H30). Pure.

Callers: trees, tools, policy, readiness, the publisher's verification: one set of rules for all.
"""

import posixpath
import re
import unicodedata
from collections.abc import Mapping

from upgraderun_runner.workspace import limits
from upgraderun_runner.workspace.errors import Violation

_SEGMENT_BYTES_MAX = 255
_SHOWN_MAX = 200
_GIT_NAMES = frozenset({".git", "git~1"})


def shown(path: str) -> str:
    """A path for messages: escaped where a terminal or a reader could be misled, and cut."""
    text = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in path)
    return text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 1] + "…"


def folded(path: str) -> str:
    """The form in which paths and globs are compared: NFC, case folded, NFC again."""
    once = unicodedata.normalize("NFC", path).casefold()
    return unicodedata.normalize("NFC", once)


def path_violation(path: str) -> Violation | None:
    """What §6 refuses in any tree; None if the path is fine.

    Refused: empty, `.`, `..`, absolute, NUL, CR, LF, a `.git` look-alike, more than 4,096 bytes,
    not UTF-8, a segment that no file system takes.
    """
    reason = _path_reason(path)
    return Violation("path", shown(path), reason) if reason else None


def _path_reason(path: str) -> str | None:
    try:
        data = path.encode("utf-8")
    except UnicodeEncodeError:
        return "not UTF-8"
    if not path:
        return "empty"
    if path.startswith("/"):
        return "absolute"
    if len(data) > limits.PATH_BYTES_MAX:
        return f"longer than {limits.PATH_BYTES_MAX} bytes"
    if re.search(r"[\x00\r\n]", path):
        return "NUL, CR or LF"
    for segment in path.split("/"):
        if segment in {"", ".", ".."}:
            return "an empty, '.' or '..' segment"
        if len(segment.encode("utf-8")) > _SEGMENT_BYTES_MAX:
            return f"a segment longer than {_SEGMENT_BYTES_MAX} bytes"
        if looks_like_git(segment):
            return "a segment that is or looks like .git"
    return None


def looks_like_git(segment: str) -> bool:
    """Whether some file system takes this segment for `.git` (case, HFS+, NTFS, wide forms)."""
    plain = unicodedata.normalize("NFKC", segment)
    plain = "".join(c for c in plain if unicodedata.category(c) != "Cf").casefold()
    parts = re.split(r"[\\/]", plain)
    return any(part.partition(":")[0].rstrip(" .") in _GIT_NAMES for part in parts)


def write_violation(path: str) -> Violation | None:
    """What a proposal may not name: beside §6's rules these, for the tools of those who read it.

    Control and invisible characters, spaces other than the ASCII one, backslash, a segment that ends in a dot or space, a form that
    is not NFC.
    """
    if refused := path_violation(path):
        return refused
    if not path.isprintable():
        return Violation("path", shown(path), "a control or invisible character, or an odd space")
    if "\\" in path:
        return Violation("path", shown(path), "a backslash")
    if any(segment.endswith((".", " ")) for segment in path.split("/")):
        return Violation("path", shown(path), "a segment that ends in a dot or space")
    if unicodedata.normalize("NFC", path) != path:
        return Violation("path", shown(path), "not in normal form NFC")
    return None


def link_violation(path: str, target: bytes, links: Mapping[str, bytes]) -> Violation | None:
    """Whether a link leaves the tree or enters `.git`.

    Judged by text from its place, and through the other links of the tree (`links` maps path to
    target), since a link on the way can turn an innocent `..` outwards.
    """
    reason = _link_text_reason(path, target) or _link_walk_reason(path, target, links)
    return Violation("link", shown(path), reason) if reason else None


def _link_text_reason(path: str, target: bytes) -> str | None:
    try:
        text = target.decode("utf-8")
    except UnicodeDecodeError:
        return "its target isn't UTF-8"
    if not text or len(target) > limits.LINK_TARGET_BYTES_MAX or re.search(r"[\x00\r\n]", text):
        return "its target is empty, too long, or holds NUL, CR or LF"
    if text.startswith("/"):
        return "its target is absolute"
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(path), text))
    if joined == ".." or joined.startswith("../"):
        return "its target leaves the tree"
    if any(looks_like_git(segment) for segment in (*text.split("/"), *joined.split("/"))):
        return "its target enters .git"
    return None


def _link_walk_reason(path: str, target: bytes, links: Mapping[str, bytes]) -> str | None:
    """Follow the target as a kernel would: a link on the way can turn an innocent `..` outwards."""
    pending = [*posixpath.dirname(path).split("/"), *target.decode("utf-8").split("/")]
    current: list[str] = []
    hops = 0
    while pending:
        segment = pending.pop(0)
        if segment == "..":
            if not current:
                return "its target leaves the tree through another link"
            current.pop()
        elif segment not in {"", "."}:
            current.append(segment)
            onward = links.get("/".join(current))
            if onward is not None:
                hops += 1
                if hops > limits.LINK_HOPS_MAX or onward.startswith(b"/"):
                    return "its target runs in circles or leaves through another link"
                current.pop()
                pending[:0] = onward.decode("utf-8", errors="replace").split("/")
    return None
