"""The closed list of entry kinds: who may write which id in which state with which keys.

`docs/journal.md` is the same table for people, generated from here. Operator and API check each
draft against it before it enters the journal; a reader may rely on required keys being there.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from upgraderun_protocol.ends import EndCause, MintPurpose, RequestDecision
from upgraderun_protocol.entries import Draft, EntryError, EntryState
from upgraderun_protocol.limits import MINTS_PER_POD_MAX
from upgraderun_protocol.outcomes import OUTCOMES, ConflictKind

INTENT, DONE, FAILED, INTERRUPTED, CONFLICT = EntryState


class Writer(StrEnum):
    """Who may append a kind. The API appends on behalf of a pod what only it may word."""

    OPERATOR = "operator"
    API = "api"
    RUNNER = "runner"
    PUBLISHER = "publisher"


@dataclass(frozen=True, slots=True)
class Shape:
    """Keys of one state of a kind: `required` and `optional` data keys, artifact roles."""

    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    artifacts: frozenset[str] = frozenset()
    optional_artifacts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class KindRow:
    """One kind: the pattern of its ids, its writers, the shape of each state, its meaning."""

    kind: str
    id_pattern: str
    writers: frozenset[Writer]
    shapes: MappingProxyType[EntryState, Shape]
    meaning: str


def _keys(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _shape(required: str = "", optional: str = "", artifacts: str = "", more: str = "") -> Shape:
    return Shape(_keys(required), _keys(optional), _keys(artifacts), _keys(more))


def _row(kind: str, pattern: str, writers: str, meaning: str, **shapes: Shape) -> KindRow:
    return KindRow(
        kind,
        pattern,
        frozenset(Writer(name) for name in writers.split()),
        MappingProxyType({EntryState(state): shape for state, shape in shapes.items()}),
        meaning,
    )


_N: Final = "[1-9][0-9]*"
_STEP: Final = "s(?:0|[1-9][0-9]*)"
_ENDED: Final = _shape("reason", "message host")
_CONFLICT: Final = _shape("conflict expected observed", "", "", "evidence")


def _prelude(kind: str, meaning: str, intent: Shape, done: Shape) -> KindRow:
    """Build the row of a phase before the loop: `<kind>/<k>`, repeated under a new k."""
    return _row(
        kind,
        rf"{kind}/{_N}",
        "runner",
        meaning,
        intent=intent,
        done=done,
        failed=_shape("outcome message", "", "", "detail"),
        interrupted=_ENDED,
        conflict=_CONFLICT,
    )


_ROWS: Final = (
    _row(
        "admit",
        "admit",
        "operator",
        "the policy is frozen, the repository allowed, the destination checked",
        done=_shape(
            "policy configHash",
            "policyHash repository branch baseCommit host generation",
            "policy",
            "earlier",
        ),
    ),
    _row(
        "attempt",
        rf"a{_N}",
        "operator",
        "one runner pod",
        intent=_shape("pod", "image", "bundle"),
        done=_shape("podUID"),
        conflict=_CONFLICT,
    ),
    _row(
        "delivery",
        rf"d{_N}",
        "operator",
        "one publisher pod",
        intent=_shape("pod", "image", "bundle"),
        done=_shape("podUID"),
        conflict=_CONFLICT,
    ),
    _row(
        "incarnation",
        rf"[ad]{_N}/i{_N}",
        "api",
        "one process of that pod took the run Lease under this epoch",
        done=_shape("podUID nonce protocol", "version"),
    ),
    _row(
        "mint",
        rf"[ad]{_N}/mint/[1-{MINTS_PER_POD_MAX}]",
        "api",
        "that pod is about to be given a token of the forge; counted before it is minted",
        done=_shape("purpose"),
    ),
    _row(
        "end",
        rf"[ad]{_N}/end",
        "operator api runner publisher",
        "the pod speaks no more: by verdict, by yielding, or judged lost",
        done=_shape(
            "cause",
            "podUID exitCode reason message outcome verdictId until python",
            "",
            "verdict report question",
        ),
    ),
    _row(
        "base",
        "base",
        "api",
        "the commit and tree the run starts from, fixed",
        done=_shape("commit tree"),
    ),
    _prelude(
        "workspace",
        "clone and detached checkout in ws-<generation>",
        _shape("generation nonce"),
        _shape("commit tree branch"),
    ),
    _prelude(
        "profile",
        "snapshot, ecosystem, refusals; done is the context: resumable from here",
        _shape(),
        _shape("configHash ecosystem", "python image isolation", "context"),
    ),
    _prelude(
        "acquire",
        "base dependencies and build kit are in the cache",
        _shape(),
        _shape("cache", "generation", "manifest"),
    ),
    _prelude(
        "baseline",
        "all checks of the untouched tree",
        _shape("tree"),
        _shape("tree configHash", "tests flaky note", "record"),
    ),
    _prelude(
        "candidates",
        "every newer version with all reasons",
        _shape("planTime"),
        _shape("total eligible", "name from to", "list"),
    ),
    _row(
        "decision",
        rf"{_STEP}/decision",
        "runner",
        "what the agent decided, verbatim",
        done=_shape("tool", "", "decision"),
    ),
    _row(
        "step",
        _STEP,
        "runner",
        "one tool call of the loop",
        intent=_shape("tool", "path before after tree name from to"),
        done=_shape(
            "tool",
            "changed recovered tree clean conclusive introduced proposal name from to",
            "observation",
            "record",
        ),
        failed=_shape("tool reason", "message", "", "observation"),
        interrupted=_shape("tool reason", "message", "", "observation"),
        conflict=_CONFLICT,
    ),
    _row(
        "commands",
        rf"sb/[a-z0-9]+(?:/{_N})?(?:/{_N})?",
        "runner",
        "the planned command list of a step, settled by the step's outcome",
        intent=_shape("step count", "", "commands"),
    ),
    _row(
        "promotion",
        rf"{_STEP}/promotion",
        "runner",
        "the gated pair moves from staging into the work tree",
        intent=_shape("promotes name from to", "", "plan", "manifest lock"),
        done=_shape("", "recovered"),
        interrupted=_ENDED,
        conflict=_CONFLICT,
    ),
    _row(
        "proposal",
        rf"proposal/{_STEP}",
        "runner",
        "the one commit: its intent says which, `record` is named by the proposal digest",
        intent=_shape("proposal commit tree ref", "", "recipe"),
        done=_shape("name from to files added removed", "recovered sources", "record report"),
        conflict=_CONFLICT,
    ),
    _row(
        "request",
        rf"req/{_N}",
        "operator",
        "what people are asked, and their answer",
        intent=_shape("ask digest nonce expiresAt", "files lines", "presentation", "question"),
        done=_shape("decision", "by approval at message"),
    ),
    _row(
        "push",
        rf"push/{_N}",
        "operator publisher",
        "our branch on the remote, create-only",
        intent=_shape("branch commit proposal", "grant"),
        done=_shape("commit", "found at"),
        failed=_shape("reason", "message status"),
        interrupted=_ENDED,
        conflict=_CONFLICT,
    ),
    _row(
        "pullRequest",
        rf"pr/{_N}",
        "operator publisher",
        "the one pull request",
        intent=_shape("branch commit"),
        done=_shape("number state commit url", "found warnings"),
        failed=_shape("reason", "message status"),
        interrupted=_ENDED,
        conflict=_CONFLICT,
    ),
    _row(
        "outcome",
        "outcome",
        "operator api",
        "how the run ended; written once",
        done=_shape(
            "outcome",
            "message cause conflict expected observed detail verdictId podUID exitCode",
            "",
            "verdict report evidence",
        ),
    ),
    _row("finalized", "finalized", "operator", "nothing of the run is left to do", done=_shape()),
)

KINDS: Final = MappingProxyType({row.kind: row for row in _ROWS})
"""Every kind by name."""


def _one_of(words: Iterable[str]) -> str:
    return "|".join(words)


_ANY: Final = "*"
_GIT_ID: Final = "[0-9a-f]{40}"
_SHA256: Final = "[0-9a-f]{64}"
_COUNT: Final = "0|[1-9][0-9]{0,8}"
_FORMS: Final = MappingProxyType(
    {
        (_ANY, "commit"): _GIT_ID,
        (_ANY, "baseCommit"): _GIT_ID,
        (_ANY, "tree"): _GIT_ID,
        (_ANY, "digest"): _SHA256,
        (_ANY, "exitCode"): _COUNT,
        (_ANY, "podUID"): ".{1,64}",
        (_ANY, "conflict"): _one_of(ConflictKind),
        (_ANY, "recovered"): "true|false",
        (_ANY, "found"): "true|false",
        (_ANY, "outcome"): _one_of(OUTCOMES),
        ("end", "cause"): _one_of(EndCause),
        ("end", "until"): r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z",
        ("end", "python"): r"3\.[0-9]{1,2}(\.[0-9]{1,2})?",
        ("mint", "purpose"): _one_of(MintPurpose),
        ("request", "decision"): _one_of(RequestDecision),
        ("request", "files"): _COUNT,
        ("request", "lines"): _COUNT,
        ("proposal", "files"): _COUNT,
        ("proposal", "added"): _COUNT,
        ("proposal", "removed"): _COUNT,
        ("pullRequest", "number"): "[1-9][0-9]{0,8}",
        ("step", "clean"): "true|false",
    }
)
"""Forms of data values that readers convert, by (kind, key); `*` is every kind."""


def check_draft(draft: Draft, writer: Writer) -> None:
    """Refuse a draft that its kind doesn't allow this writer. Raises EntryError, which says why."""
    check_shape(draft)
    if writer not in KINDS[draft.kind].writers:
        raise EntryError(
            f"entry {draft.id!r}: kind {draft.kind!r} isn't written by the {writer.value}"
        )


def check_shape(draft: Draft) -> None:
    """Refuse a draft that its kind doesn't know, whoever wrote it: id, state, keys, value forms.

    Readers of a stored journal call it too, so a fold may rely on required keys being there and on
    numbers, ids and words of closed lists being well-formed. Raises EntryError.
    """
    row = KINDS.get(draft.kind)
    where = f"entry {draft.id!r}"
    if row is None:
        raise EntryError(f"{where}: kind {draft.kind!r} is unknown to this version")
    if not re.fullmatch(row.id_pattern, draft.id):
        raise EntryError(f"{where}: ids of kind {draft.kind!r} match {row.id_pattern}")
    shape = row.shapes.get(draft.state)
    if shape is None:
        raise EntryError(f"{where}: kind {draft.kind!r} has no state {draft.state.value!r}")
    _check_keys(where, "data", draft.data.keys(), shape.required, shape.optional)
    _check_keys(
        where, "artifacts", draft.artifacts.keys(), shape.artifacts, shape.optional_artifacts
    )
    for key, value in draft.data.items():
        pattern = _FORMS.get((draft.kind, key)) or _FORMS.get((_ANY, key))
        if pattern is not None and not re.fullmatch(pattern, value):
            raise EntryError(f"{where}: data.{key} is {value[:64]!r}, expected {pattern[:200]}")


def _check_keys(
    where: str,
    part: str,
    found: Iterable[str],
    required: frozenset[str],
    optional: frozenset[str],
) -> None:
    keys = frozenset(found)
    if missing := required - keys:
        raise EntryError(f"{where}: {part} lacks {', '.join(sorted(missing))}")
    if unknown := keys - required - optional:
        raise EntryError(f"{where}: {part} has unknown {', '.join(sorted(unknown))[:64]}")
