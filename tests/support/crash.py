"""The crash matrix: for each fault point the scenario in which it is reached, and what came of it.

Callers: the tests of `tests/crash`, the tidy test, `hack/crash-matrix`. Every point of the table of effects
stands here by name: one that is missing, or one too many, fails the tidy test.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from upgraderun_protocol.effects import EFFECTS, Position, Program
from upgraderun_protocol.entries import Entry, EntryState

RESULTS_VARIABLE: Final = "UPGRADERUN_CRASH_RESULTS"
"""A file to which each test of a point appends its line."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A row of the scenario table in one mode."""

    row: str
    mode: str


PATCH: Final = Scenario("patch-safe", "Rules")
EDIT: Final = Scenario("breaking-minor", "Scripted")
REFUSED: Final = Scenario("another's repository", "Rules")
"""The leader claims this end itself: the policy doesn't list the repository."""


@dataclass(frozen=True, slots=True)
class Kill:
    """Where a point is struck: the scenario, and the how-manieth pass."""

    scenario: Scenario = PATCH
    occurrence: int = 1

    def spelt(self, point: str) -> str:
        """The point as `UPGRADERUN_FAULT` has it."""
        return f"{point}@{self.occurrence}"


def _at(names: str, kill: Kill) -> dict[str, Kill]:
    return dict.fromkeys(names.split(), kill)


FIRST: Final = Kill()
PLAYED: Final = Kill(Scenario("the whole life, pods played", "Rules"))
RUNNER_KILLS: Final[Mapping[str, Kill]] = {
    **_at("lease_acquire.before lease_acquire.applied lease_acquire.reply_lost", FIRST),
    **_at("append_entries.before append_entries.applied append_entries.reply_lost", Kill(PATCH, 3)),
    **_at("artifact.before artifact.applied artifact.reply_lost", Kill(PATCH, 3)),
    **_at("clone.before clone.applied clone.recorded", FIRST),
    **_at("base.before base.applied base.reply_lost", FIRST),
    **_at("context.before context.applied context.recorded", FIRST),
    **_at("acquire.before acquire.applied acquire.recorded", FIRST),
    **_at("validation.before validation.applied validation.recorded", FIRST),
    **_at("decision.before decision.applied decision.recorded", Kill(PATCH, 2)),
    **_at("staging.before staging.applied", FIRST),
    **_at("promotion_first.before promotion_first.applied", FIRST),
    **_at("promotion_second.before promotion_second.applied promotion_second.recorded", FIRST),
    **_at("staging_delete.before staging_delete.applied", FIRST),
    **_at("file_write.before file_write.applied file_write.recorded", Kill(EDIT)),
    **_at("proposal_objects.before proposal_objects.applied", FIRST),
    **_at("proposal_commit.before proposal_commit.applied", FIRST),
    **_at("proposal_ref.before proposal_ref.applied", FIRST),
    **_at("proposal_upload.before proposal_upload.applied proposal_upload.recorded", FIRST),
    **_at("verdict_spool.before verdict_spool.applied", FIRST),
    **_at("verdict.before verdict.applied verdict.reply_lost", FIRST),
}
"""Struck in runner processes on real git, files, uv and pytest."""

PUBLISHER_KILLS: Final[Mapping[str, Kill]] = {
    **_at("lease_acquire.before lease_acquire.applied lease_acquire.reply_lost", FIRST),
    **_at("append_entries.before append_entries.applied append_entries.reply_lost", FIRST),
    **_at("push.before push.applied push.recorded push.reply_lost", FIRST),
    **_at("pull_request.before pull_request.applied pull_request.recorded", FIRST),
    **_at("pull_request.reply_lost", FIRST),
    **_at("decoration.before decoration.applied decoration.reply_lost", FIRST),
    **_at("verdict.before verdict.applied verdict.reply_lost", FIRST),
}
"""Struck in publisher processes against a git host and a forge. It stores no artifact."""

MINTED: Final = ("clone_token", "push_token")
"""Effects of the operator's API, struck where it is served: tests/api/runner_api/test_tokens.py."""

OPERATOR_KILLS: Final[Mapping[str, Kill]] = {
    **_at("repository_lease.before repository_lease.applied repository_lease.reply_lost", PLAYED),
    **_at("lease_release.before lease_release.applied lease_release.reply_lost", PLAYED),
    **_at("pvc.before pvc.applied pvc.reply_lost", PLAYED),
    **_at("run_lease.before run_lease.applied run_lease.reply_lost", PLAYED),
    **_at("runner_pod.before runner_pod.applied runner_pod.recorded runner_pod.reply_lost", PLAYED),
    **_at("publisher_pod.before publisher_pod.applied publisher_pod.recorded", PLAYED),
    **_at("publisher_pod.reply_lost", PLAYED),
    **_at("report.before report.applied report.reply_lost", PLAYED),
    **_at("request.before request.applied request.recorded request.reply_lost", PLAYED),
    **_at("grant.before grant.applied grant.recorded grant.reply_lost", PLAYED),
    **_at("outcome.before outcome.applied outcome.recorded outcome.reply_lost", Kill(REFUSED)),
    **_at("finalized.before finalized.applied finalized.recorded finalized.reply_lost", PLAYED),
    **_at("append.before append.applied append.recorded append.reply_lost", PLAYED),
    **_at("event.before event.applied event.reply_lost", PLAYED),
    **_at("finalizer_add.before finalizer_add.applied finalizer_add.reply_lost", PLAYED),
    **_at("finalizer_remove.before finalizer_remove.applied finalizer_remove.reply_lost", PLAYED),
    **_at("cleanup_pod.before cleanup_pod.applied cleanup_pod.reply_lost", PLAYED),
    **_at("cleanup_pvc.before cleanup_pvc.applied cleanup_pvc.reply_lost", PLAYED),
    **_at("cleanup_run_lease.before cleanup_run_lease.applied", PLAYED),
    **_at("cleanup_run_lease.reply_lost", PLAYED),
    **_at("clone_token.before clone_token.applied clone_token.reply_lost", PLAYED),
    **_at("push_token.before push_token.applied push_token.reply_lost", PLAYED),
}
"""Struck in operator processes against a real API server; the test plays pods and people."""

KILLS: Final[Mapping[Program, Mapping[str, Kill]]] = {
    Program.OPERATOR: OPERATOR_KILLS,
    Program.RUNNER: RUNNER_KILLS,
    Program.PUBLISHER: PUBLISHER_KILLS,
}


def loses_reply(point: str) -> bool:
    """Whether the process lives on at this point, without an answer."""
    return point.endswith(f".{Position.REPLY_LOST}")


def proof(point: str, kill: Kill) -> str:
    """The line of the hook without which a test proves nothing."""
    word = "reply lost" if loses_reply(point) else "SIGKILL"
    return f"upgraderun_fault: {word} at {kill.spelt(point)}"


@dataclass(frozen=True, slots=True)
class Struck:
    """One line of the matrix."""

    program: str
    point: str
    scenario: str
    found: str
    ended: str
    retries: Mapping[str, int] = field(default_factory=dict)


def note(struck: Struck) -> None:
    """Keep a line for whoever prints the matrix."""
    target = os.environ.get(RESULTS_VARIABLE)
    if target:
        with Path(target).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(asdict(struck)) + "\n")


def counted(entries: Iterable[Entry]) -> Counter[str]:
    """Entries by kind and state: the write summary of a journal."""
    return Counter(f"{entry.kind} {entry.state.value}" for entry in entries)


ALWAYS: Final = frozenset({"incarnation", "end"})
"""What one more process of a run writes by all means."""
_PRELUDE: Final = frozenset(
    {"workspace", "profile", "acquire", "baseline", "candidates", "commands"}
)
_STEP: Final = frozenset({"decision", "step", "commands", "promotion", "proposal"})


def may_repeat(effect: str) -> frozenset[str]:
    """Kinds of entries that a strike at this effect may add: what its row calls begun again."""
    row = EFFECTS[effect]
    if row.name in {"clone", "base", "context", "acquire", "append_entries", "artifact"}:
        return ALWAYS | _PRELUDE
    kinds = set((row.intent + " " + row.record).split())
    if kinds & _PRELUDE or row.name == "lease_acquire":
        return ALWAYS | _PRELUDE | (_STEP if kinds & _STEP else frozenset())
    if kinds & _STEP or row.name == "decision":
        return ALWAYS | _STEP
    return ALWAYS | kinds


def declared_retries(
    effect: str, disturbed: Iterable[Entry], undisturbed: Iterable[Entry]
) -> Mapping[str, int]:
    """What a disturbed journal has more, checked: nothing is missing, nothing done twice for no reason.

    A thing that was interrupted may be begun again, or stand already; what is done more often must
    be declared by its effect's row.
    """
    here, there = counted(disturbed), counted(undisturbed)
    for name, count in (there - here).items():
        cut = here[f"{name.split()[0]} {EntryState.INTERRUPTED}"]
        assert count <= cut, f"missing: {dict(there - here)}"
    more = here - there
    undeclared = {name.split()[0] for name in more} - may_repeat(effect)
    assert not undeclared, f"repeated without a declaration: {undeclared} in {dict(more)}"
    return dict(sorted(more.items()))


def one_outcome_each(entries: Iterable[Entry]) -> bool:
    """Whether every id has at most one outcome."""
    ids = Counter(entry.id for entry in entries if entry.state is not EntryState.INTENT)
    return all(count == 1 for count in ids.values())
