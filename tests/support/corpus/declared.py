"""What a case is: a sdist, the commands that make its base, the question, the right answer.

Callers: the families of cases, and what rebuilds, runs and prints them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, slots=True)
class Sdist:
    """A released source distribution, by hash."""

    name: str
    version: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Replace:
    """One edit of pyproject.toml; `old` is there exactly once."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Command:
    """One uv command in the project."""

    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tag:
    """A git tag on the commit of the sdist: one before the base, as after a release."""

    name: str


@dataclass(frozen=True, slots=True)
class Remove:
    """A file of the sdist that the repository doesn't have: `PKG-INFO` tells the version."""

    path: str


@dataclass(frozen=True, slots=True)
class Answer:
    """How the run must end.

    `outcome` is the outcome of a proposal that isn't published (`proposal_prepared`), or another
    end. `target` is name, before, after; `moved` names what moves with it: (before, after), before
    empty where it enters the lock. `findings` are the introduced keys, exactly. `reasons` are why
    newer versions are refused, by name and version, empty where one is eligible; `says` are
    patterns of report and proposal.
    """

    outcome: str
    target: tuple[str, str, str] | None = None
    moved: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    reasons: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    says: tuple[str, ...] = ()

    @property
    def moves(self) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
        """All that moves in the lock: versions before and after by name; nothing if refused."""
        if self.target is None or self.outcome == "admission_refused":
            return {}
        name, before, after = self.target
        moved = {name: (before, after), **self.moved}
        return {
            name: (frozenset({was} if was else ()), frozenset({now}))
            for name, (was, now) in moved.items()
        }


class Trait(StrEnum):
    """What many real projects have and small examples don't."""

    FORKED = "forked lock"
    GIT_VERSION = "version from git"
    OTHER_GROUP = "tests in an extra or another group"


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `upgrade` is the run's `spec.upgrade`, spelt as in the API.

    `backend` builds the project; `traits` are what makes the case hard beside its question.

    `baseline` is what pytest counts on the base; `sync` the flags that install its tests. `edits`
    is what a person changes in the manifest for the upgrade, beside an `==` of the target. `shows`
    is for the table of docs/real-cases.md.
    """

    name: str
    sdist: Sdist
    pin: tuple[Replace | Command | Tag | Remove, ...]
    upgrade: Mapping[str, Any]
    answer: Answer
    baseline: Mapping[str, int]
    backend: str
    shows: str
    traits: tuple[Trait, ...] = ()
    sync: tuple[str, ...] = ()
    edits: tuple[Replace, ...] = ()


def uv(line: str, *more: str) -> Command:
    """A uv command as one line; `more` are arguments with spaces."""
    return Command((*line.split(), *more))


DEV = ("add", "--no-sync", "--group", "dev")
"""Adds to the group that uv installs unasked."""
