"""Rules for paths (upgrade-run.md §6, §9.4; security.md H30). Pure.

Callers: trees, tools, policy, readiness, the publisher's verification: one set of rules for all.
"""

from upgraderun_runner.workspace.errors import Violation


def path_violation(path: str) -> Violation | None:
    """What §6 refuses in any tree: empty, `.`, `..`, absolute, NUL, CR, LF, a `.git` look-alike,
    more than 4,096 bytes. None if the path is fine.
    """
    raise NotImplementedError


def write_violation(path: str) -> Violation | None:
    """What a proposal may not name besides: control and invisible characters, backslash, a segment
    that ends in a dot or space, a form that is not NFC.
    """
    raise NotImplementedError


def link_violation(path: str, target: bytes, links: dict[str, bytes]) -> Violation | None:
    """Whether a link leaves the tree or enters `.git`, by text from its place and through other
    links of the tree (`links` maps path to target).
    """
    raise NotImplementedError


def folded(path: str) -> str:
    """The form in which paths and globs are compared: NFC, case folded, NFC again."""
    raise NotImplementedError
