"""Errors of the workspace; the class says how each is handled (style.md §3).

    WorkspaceError
    |- GitFailed         git said no: a bug or a broken repository; carries argv word and text
    |  |- OutputTooLong  it said more than allowed
    |  `- TimedOut       it took longer than allowed (a remote command: `RemoteFailed`)
    |- RemoteFailed      the git host didn't answer, or not as hoped: unknown, never a verdict
    |- TreeRefused       the tree breaks a rule of upgrade-run.md §6: outcome `unsupported`, all listed
    |- PathRefused       one path breaks a rule of §6 or §9.4: an observation for the agent
    |- BaseMissing       branch or commit isn't there (answered by the host): definite
    |- WorkspaceBusy     another process holds the workspace lock
    |- StorageUnavailable  the volume lacks working locks or atomic rename
    `- WorkspaceContradicts  the files contradict the journal: outcome `workspace_conflict`

Callers: everything that imports `workspace`. Nothing here is raised for an unreadable world but
`RemoteFailed`.
"""

from dataclasses import dataclass
from typing import Literal

RemoteFailure = Literal["unreachable", "denied", "not_found", "moved", "unknown"]
"""What git's text suggests, for messages only; no decision may rest on it."""


class WorkspaceError(Exception):
    """Parent of all errors of the workspace."""


class GitFailed(WorkspaceError):  # noqa: N818 - names how it is handled, style.md §3
    """A git command ended with an unexpected status."""

    def __init__(self, command: str, exit_code: int, text: str) -> None:
        super().__init__(f"git {command} ended with {exit_code}: {text}")
        self.command = command
        self.exit_code = exit_code
        self.text = text


class OutputTooLong(GitFailed):
    """A git command said more than its caller allows."""


class TimedOut(GitFailed):
    """A git command outlasted its time; it was killed."""


class RemoteFailed(WorkspaceError):  # noqa: N818 - names how it is handled, style.md §3
    """The git host couldn't be read or written. `kind` is a hint for people."""

    def __init__(self, command: str, kind: RemoteFailure, text: str) -> None:
        super().__init__(f"git {command}: remote {kind}: {text}")
        self.command = command
        self.kind: RemoteFailure = kind
        self.text = text


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: a code of a closed list, the path it concerns, a short explanation."""

    code: str
    path: str
    detail: str


class TreeRefused(WorkspaceError):  # noqa: N818 - names how it is handled, style.md §3
    """A tree breaks rules of upgrade-run.md §6; `violations` lists them (at most 50)."""

    def __init__(self, violations: tuple[Violation, ...]) -> None:
        super().__init__("; ".join(f"{v.code} {v.path}: {v.detail}" for v in violations[:5]))
        self.violations = violations


class PathRefused(WorkspaceError):  # noqa: N818 - names how it is handled, style.md §3
    """A path that a tool was asked for breaks a rule of upgrade-run.md §6 or §9.4."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(f"{violation.code} {violation.path}: {violation.detail}")
        self.violation = violation


class BaseMissing(WorkspaceError):  # noqa: N818 - names how it is handled, style.md §3
    """The host answered that the branch or the commit isn't there."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class WorkspaceBusy(WorkspaceError):  # noqa: N818 - names how it is handled, style.md §3
    """Another process holds the lock of this workspace (upgrade-run.md §13.1 step 2)."""


class StorageUnavailable(WorkspaceError):  # noqa: N818 - names how it is handled, style.md §3
    """The volume doesn't give working locks, atomic rename or fsync."""


class WorkspaceContradicts(WorkspaceError):  # noqa: N818 - names how it is handled, style.md §3
    """Files contradict the journal; `kind`, expected and observed are the conflict's evidence."""

    def __init__(self, kind: str, expected: str, observed: str) -> None:
        super().__init__(f"{kind}: expected {expected}, found {observed}")
        self.kind = kind
        self.expected = expected
        self.observed = observed
