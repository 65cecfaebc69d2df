"""The closed table of effects: what is begun, how it is found again, what records it (reliability.md §5).

Callers: the doors of operator and pods, which pass the fault points that the rows yield, and the pages
and tests made from them. Each program binds a row to the functions that perform and look; a row without
a binding, a binding without a row, and a point without a kill test fail the tidy test.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Protocol


class Program(StrEnum):
    """Who performs an effect."""

    OPERATOR = "operator"
    RUNNER = "runner"
    PUBLISHER = "publisher"


class Position(StrEnum):
    """Where a process may die around an effect, or hear nothing of it."""

    BEFORE = "before"
    """What must stand before it stands; nothing is done."""
    APPLIED = "applied"
    """Done, and not recorded."""
    RECORDED = "recorded"
    """Its outcome is recorded; nothing after it has begun."""
    REPLY_LOST = "reply_lost"
    """Done, but the answer never came: the process lives and doesn't know."""


class FaultPoint(Protocol):
    """Called at each point. May never return; True at `reply_lost` says that the answer is lost."""

    def __call__(self, effect: str, position: Position, /) -> bool | None:
        """Pass the point."""


def no_fault(_effect: str, _position: Position, /) -> None:
    """Pass: the hook of release images."""


@dataclass(frozen=True, slots=True)
class EffectRow:
    """One effect. `intent` and `record` are kinds of journal entries, with blanks between; `any` is all.

    Without an intent a computed name or the digest of the content identifies it. Without a record the
    world itself is one. `answered`: a reply comes from elsewhere and may be lost. `look` says what a
    later process reads, `applied` and `not_applied` what it does then; what can't be read is unknown,
    and it looks again later.
    """

    name: str
    programs: tuple[Program, ...]
    intent: str
    record: str
    answered: bool
    look: str
    applied: str
    not_applied: str

    @property
    def positions(self) -> tuple[Position, ...]:
        """Its fault points. What records nothing has no instant after its record."""
        return (
            Position.BEFORE,
            Position.APPLIED,
            *((Position.RECORDED,) if self.record else ()),
            *((Position.REPLY_LOST,) if self.answered else ()),
        )

    @property
    def points(self) -> tuple[str, ...]:
        """Their names, as `UPGRADERUN_FAULT` spells them."""
        return tuple(f"{self.name}.{position}" for position in self.positions)


_OPERATOR: Final = (Program.OPERATOR,)
_RUNNER: Final = (Program.RUNNER,)
_PUBLISHER: Final = (Program.PUBLISHER,)
_PODS: Final = (Program.RUNNER, Program.PUBLISHER)
_LOOKS_AGAIN: Final = "the next pass decides again from what stands"


def _object(name: str, what: str, intent: str = "", record: str = "") -> EffectRow:
    """An object of the API server under a computed name."""
    return EffectRow(
        name=name,
        programs=_OPERATOR,
        intent=intent,
        record=record,
        answered=True,
        look=f"{what} of that name, by a live GET",
        applied="it is ours if its owner's UID is the run's: taken; else a conflict",
        not_applied="made under the same name",
    )


def _append(name: str, record: str, what: str) -> EffectRow:
    """One guarded write of status."""
    return EffectRow(
        name=name,
        programs=_OPERATOR,
        intent="",
        record=record,
        answered=True,
        look="the journal, by a live GET",
        applied=f"{what} stands once; its Event is told again, under a computed name",
        not_applied=_LOOKS_AGAIN,
    )


def _deletion(name: str, what: str) -> EffectRow:
    """The end of an object of ours, by name and UID."""
    return EffectRow(
        name=name,
        programs=_OPERATOR,
        intent="outcome",
        record="",
        answered=True,
        look=f"{what} of that UID, by a live GET",
        applied="absent is done",
        not_applied="deleted again, by name and UID",
    )


_ROWS: Final = (
    EffectRow(
        "repository_lease", _OPERATOR, "", "", True,
        look="the repository's Lease and its holder, by a live GET",
        applied="the holder is this run: go on",
        not_applied="taken by compare-and-set, or the run waits for its holder",
    ),
    EffectRow(
        "lease_release", _OPERATOR, "outcome", "", True,
        look="the repository's Lease and its holder, by a live GET",
        applied="another holder or none: nothing to do",
        not_applied="released by compare-and-set",
    ),
    _object("pvc", "the volume"),
    _object("run_lease", "the run's Lease"),
    _object("runner_pod", "the pod", "attempt", "attempt"),
    _object("publisher_pod", "the pod", "delivery", "delivery"),
    EffectRow(
        "report", _OPERATOR, "", "", True,
        look="the UpgradeReport, by a live GET",
        applied="equal content isn't written again",
        not_applied="created, or replaced against the version that was seen",
    ),
    _append("request", "request", "the question"),
    _append("grant", "push", "the grant with the push intent"),
    _append("outcome", "outcome", "the outcome"),
    _append("finalized", "finalized", "the last entry"),
    _append("append", "any", "what was appended"),
    EffectRow(
        "event", _OPERATOR, "", "", True,
        look="the create itself: an Event of that name is there already",
        applied="AlreadyExists is done",
        not_applied="created; after five tries the run goes on without it",
    ),
    EffectRow(
        "finalizer_add", _OPERATOR, "", "", True,
        look="the run object",
        applied="it stands there: go on to the push intent",
        not_applied="put against the version that was seen",
    ),
    EffectRow(
        "finalizer_remove", _OPERATOR, "outcome", "", True,
        look="the run object",
        applied="absent is done",
        not_applied="put against the version that was seen",
    ),
    _deletion("cleanup_pod", "the pod"),
    _deletion("cleanup_pvc", "the volume"),
    _deletion("cleanup_run_lease", "the run's Lease"),
    EffectRow(
        "clone_token", _OPERATOR, "mint", "", True,
        look="nothing: a token can't be had twice",
        applied="it ends by itself, at most 1 h later; the pod asks again under the next number",
        not_applied="the pod asks again under the next number; five are the end of a pod",
    ),
    EffectRow(
        "push_token", _OPERATOR, "mint", "", True,
        look="nothing: a token can't be had twice",
        applied="it ends by itself, at most 1 h later; the pod asks again under the next number",
        not_applied="the pod asks again under the next number; five are the end of a pod",
    ),
    EffectRow(
        "lease_acquire", _PODS, "attempt", "", True,
        look="the same call again: the same nonce gets the same epoch",
        applied="the next process waits until the Lease has expired, or its holder is proved gone",
        not_applied="claimed",
    ),
    EffectRow(
        "append_entries", _PODS, "", "", True,
        look="the journal, as the operator reads it live",
        applied="equal entries are a replay",
        not_applied="what they say is found again by looking, or done again",
    ),
    EffectRow(
        "artifact", _RUNNER, "", "", True,
        look="the store, under the digest of the content",
        applied="there already is fine",
        not_applied="stored before an entry names it",
    ),
    EffectRow(
        "clone", _RUNNER, "workspace", "workspace", False,
        look="`identity.json` of the generation, and the journal's `context`",
        applied="without a context it is never resumed: a new generation from the same base",
        not_applied="a new generation",
    ),
    EffectRow(
        "base", _RUNNER, "workspace", "", True,
        look="the entry `base`",
        applied="the same commit and tree again is a replay; others are refused",
        not_applied="told again by the next clone, of the recorded commit if there is one",
    ),
    EffectRow(
        "context", _RUNNER, "profile", "profile", False,
        look="the entry `profile` done",
        applied="an artifact that no entry names is nothing: cloned and profiled again",
        not_applied="cloned and profiled again",
    ),
    EffectRow(
        "acquire", _RUNNER, "acquire", "acquire", False,
        look="the cache that the entry names",
        applied="a cache that no entry names is swept; acquired again",
        not_applied="acquired again",
    ),
    EffectRow(
        "validation", _RUNNER, "baseline step", "baseline step", False,
        look="nothing: a record that no entry names is never accepted",
        applied="interrupted, and validated again",
        not_applied="interrupted, and validated again",
    ),
    EffectRow(
        "decision", _RUNNER, "", "decision", False,
        look="the entry of the decision",
        applied="a decision that no entry names is made again, equal",
        not_applied="decided again from the same journal",
    ),
    EffectRow(
        "staging", _RUNNER, "step", "", False,
        look="`staging/` of the step",
        applied="swept; the step is interrupted and decided again",
        not_applied="the step is interrupted and decided again",
    ),
    EffectRow(
        "promotion_first", _RUNNER, "promotion", "", False,
        look="both hashes in the work tree against before and after",
        applied="the second file is written from its retained copy or its artifact",
        not_applied="aborted, staging deleted; the agent decides again",
    ),
    EffectRow(
        "promotion_second", _RUNNER, "promotion", "promotion", False,
        look="both hashes in the work tree against before and after",
        applied="recorded, `done recovered`",
        not_applied="the second file is written from its retained copy or its artifact",
    ),
    EffectRow(
        "staging_delete", _RUNNER, "step promotion", "", False,
        look="`staging/` of the step",
        applied="absent is done",
        not_applied="deleted",
    ),
    EffectRow(
        "file_write", _RUNNER, "step", "step", False,
        look="the file's hash against the old and the new one",
        applied="interrupted; the agent is told that the new content is there, and decides",
        not_applied="interrupted; the agent is told that the old content is there, and decides",
    ),
    EffectRow(
        "proposal_objects", _RUNNER, "step", "", False,
        look="the tree's objects in the run's git",
        applied="git finds them there; the step is decided again",
        not_applied="the step is decided again",
    ),
    EffectRow(
        "proposal_commit", _RUNNER, "proposal", "", False,
        look="the ref, the tree's objects, and the id that the recipe gives",
        applied="the recipe gives the same id again",
        not_applied="made from the recipe: the same id",
    ),
    EffectRow(
        "proposal_ref", _RUNNER, "proposal", "", False,
        look="the ref",
        applied="at the expected id: go on",
        not_applied="set, where it is absent; at another id it is a conflict",
    ),
    EffectRow(
        "proposal_upload", _RUNNER, "proposal", "proposal", False,
        look="the store, under the digests",
        applied="recorded, `done recovered`",
        not_applied="what is missing is stored; then as above",
    ),
    EffectRow(
        "verdict_spool", _RUNNER, "", "", False,
        look="`verdict.json` on the volume",
        applied="posted by the next process, first thing; no second verdict is built",
        not_applied="built from the journal",
    ),
    EffectRow(
        "verdict", _PODS, "", "", True,
        look="the answer to the same verdict id, and the entry `end`",
        applied="a replay is answered 200",
        not_applied="posted again; or taken from the pod's termination message",
    ),
    EffectRow(
        "push", _PUBLISHER, "push", "push", True,
        look="our branch on the git host",
        applied="at our commit: recorded as found; elsewhere: a conflict",
        not_applied="absent: pushed, create only",
    ),
    EffectRow(
        "pull_request", _PUBLISHER, "pullRequest", "pullRequest", True,
        look="pull requests from our branch, in any state",
        applied="ours at our commit: recorded as found; a stranger's: a conflict",
        not_applied="none: created, then looked at",
    ),
    EffectRow(
        "decoration", _PUBLISHER, "pullRequest", "", True,
        look="labels and reviewers of the pull request",
        applied="what is there isn't added again",
        not_applied="the missing ones, once; what fails is a warning beside the address",
    ),
)  # fmt: skip

EFFECTS: Final[Mapping[str, EffectRow]] = MappingProxyType({row.name: row for row in _ROWS})
"""Every effect by name."""


def effects_of(program: Program) -> tuple[EffectRow, ...]:
    """Rows of one program, in the order of a run."""
    return tuple(row for row in _ROWS if program in row.programs)


def points_of(program: Program) -> tuple[str, ...]:
    """Every name that `UPGRADERUN_FAULT` may carry for a program."""
    return _points(effects_of(program))


def _points(rows: Iterable[EffectRow]) -> tuple[str, ...]:
    return tuple(point for row in rows for point in row.points)
