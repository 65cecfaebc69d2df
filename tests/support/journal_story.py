"""Runs in memory: a journal grows by the operator's own planning, without an API server.

`Story` holds one run object and its segments. Each `add` is one guarded write that must succeed.
The drafts below are complete and valid; a test names what matters to it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from upgraderun_operator.journal.planning import Bounds, Planned, plan
from upgraderun_operator.journal.run import RunView, view_of
from upgraderun_operator.journal.writes import Change
from upgraderun_protocol.entries import Draft, EntryState
from upgraderun_protocol.ids import EntryId, Epoch, Sha256

RUN_UID = "0f8fad5b-d9cb-469f-a165-70867728950e"
POD_UID = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
NOW = "2026-11-30T08:00:00Z"


def sha(character: str) -> Sha256:
    """A digest that is easy to tell from others."""
    return Sha256(character * 64)


def git_id(character: str) -> str:
    """A commit or tree id that is easy to tell from others."""
    return character * 40


def draft(
    entry_id: str,
    kind: str,
    state: str = "done",
    artifacts: Mapping[str, Sha256] | None = None,
    /,
    **data: str,
) -> Draft:
    """A draft with its data as keywords; `from_` is `from`."""
    named = {key.rstrip("_"): value for key, value in data.items()}
    return Draft(EntryId(entry_id), kind, EntryState(state), named, artifacts or {})


def admit(**data: str) -> Draft:
    """Phase 0."""
    known = {"policy": "default", "configHash": "c" * 64, "branch": "main"}
    return draft("admit", "admit", "done", {"policy": sha("1")}, **{**known, **data})


def pod(tag: str, state: str = "intent") -> Draft:
    """`a<n>` or `d<n>`: intent, done (UID recorded) or conflict."""
    kind = "delivery" if tag.startswith("d") else "attempt"
    if state == "intent":
        return draft(tag, kind, state, {"bundle": sha("b")}, pod=f"run-{tag}")
    if state == "done":
        return draft(tag, kind, state, podUID=f"{POD_UID}-{tag}")
    return draft(
        tag, kind, state, conflict="foreign_pod", expected="our owner", observed="another owner"
    )


def incarnation(tag: str, epoch: int) -> Draft:
    """One process took the Lease."""
    return draft(
        f"{tag}/i{epoch}", "incarnation", podUID=f"{POD_UID}-{tag}", nonce="n" * 64, protocol="1"
    )


def end(tag: str, cause: str, **data: str) -> Draft:
    """A pod speaks no more."""
    return draft(f"{tag}/end", "end", cause=cause, **data)


BASE = draft("base", "base", commit=git_id("a"), tree=git_id("b"))
PROFILE = (
    draft("profile/1", "profile", "intent"),
    draft(
        "profile/1",
        "profile",
        "done",
        {"context": sha("c")},
        configHash="d" * 64,
        ecosystem="Python",
        isolation="network-namespace",
    ),
)
BASELINE = (
    draft("baseline/1", "baseline", "intent", tree=git_id("b")),
    draft(
        "baseline/1",
        "baseline",
        "done",
        {"record": sha("d")},
        tree=git_id("b"),
        configHash="d" * 64,
        tests="12",
    ),
)
TARGET = {"name": "requests", "from_": "2.31.0", "to": "2.32.0"}
CANDIDATES = (
    draft("candidates/1", "candidates", "intent", planTime=NOW),
    draft(
        "candidates/1", "candidates", "done", {"list": sha("e")}, total="3", eligible="1", **TARGET
    ),
)
APPLY = (
    draft("s0/decision", "decision", "done", {"decision": sha("2")}, tool="apply_upgrade"),
    draft("s0", "step", "intent", tool="apply_upgrade"),
    draft("sb/s0", "commands", "intent", {"commands": sha("3")}, step="s0", count="2"),
    draft("s0/promotion", "promotion", "intent", {"plan": sha("4")}, promotes="pair", **TARGET),
    draft("s0/promotion", "promotion", "done"),
    draft("s0", "step", "done", {"observation": sha("5")}, tool="apply_upgrade"),
)
VALIDATE = (
    draft("s1", "step", "intent", tool="run_validation"),
    draft(
        "s1",
        "step",
        "done",
        {"observation": sha("6"), "record": sha("7")},
        tool="run_validation",
        clean="true",
        tree=git_id("c"),
    ),
)
FREEZE = (
    draft(
        "proposal/s2",
        "proposal",
        "intent",
        {"recipe": sha("8")},
        proposal="0f8fad5b-s2",
        commit=git_id("d"),
        tree=git_id("c"),
        ref="refs/upgraderun/proposals/0f8fad5b-s2",
    ),
    draft(
        "proposal/s2",
        "proposal",
        "done",
        {"record": sha("9"), "report": sha("0")},
        files="2",
        added="4",
        removed="3",
        **TARGET,
    ),
)


def ask(number: int = 1) -> Draft:
    """A question to people."""
    return draft(
        f"req/{number}",
        "request",
        "intent",
        {"presentation": sha("f")},
        ask="publication",
        digest=sha("a"),
        nonce="1234",
        expiresAt="2026-12-07T08:00:00Z",
    )


def answer(decision: str, number: int = 1, /, **data: str) -> Draft:
    """Their answer."""
    return draft(f"req/{number}", "request", "done", decision=decision, **data)


def push(state: str = "intent", number: int = 1, **data: str) -> Draft:
    """Our branch on the remote."""
    known = {"commit": git_id("d")} if state in {"intent", "done"} else {}
    if state == "intent":
        known |= {"branch": "upgraderun/requests-2.32.0", "proposal": sha("9")}
    return draft(f"push/{number}", "push", state, **{**known, **data})


def pull_request(state: str = "intent", number: int = 1, **data: str) -> Draft:
    """The pull request."""
    known = {"commit": git_id("d")} if state in {"intent", "done"} else {}
    if state == "intent":
        known["branch"] = "upgraderun/requests-2.32.0"
    if state == "done":
        known |= {"number": "7", "state": "open", "url": "https://git.example/team/app/pull/7"}
    return draft(f"pr/{number}", "pullRequest", state, **{**known, **data})


def outcome(name: str, **data: str) -> Draft:
    """The end."""
    return draft("outcome", "outcome", outcome=name, **data)


FINALIZED = draft("finalized", "finalized")

TO_FROZEN = (BASE, *PROFILE, *BASELINE, *CANDIDATES, *APPLY, *VALIDATE, *FREEZE)
"""What a runner appends from the first clone to the frozen commit."""


def run_object(spec: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A new run as the API server stores it."""
    return {
        "apiVersion": "upgraderun.dev/v1alpha1",
        "kind": "UpgradeRun",
        "metadata": {
            "namespace": "team",
            "name": "app",
            "uid": RUN_UID,
            "resourceVersion": "1",
            "generation": 1,
        },
        "spec": {
            "mode": "Rules",
            "publication": {"enabled": True},
            "suspend": False,
            "cancel": False,
            **(spec or {}),
        },
    }


class Story:
    """One run that grows write by write; `epoch` None appends as the operator does."""

    def __init__(self, spec: Mapping[str, Any] | None = None, bounds: Bounds | None = None) -> None:
        self.raw: dict[str, Any] = run_object(spec)
        self.segments: dict[Sha256, bytes] = {}
        self.bounds = bounds or Bounds()
        self.writes = 0

    @property
    def view(self) -> RunView:
        """The run as stored, folded from scratch."""
        return view_of(self.raw, self.segments)

    def add(
        self, *drafts: Draft, epoch: int | None = None, now: str = NOW, change: Change | None = None
    ) -> RunView:
        """One write; AssertionError if it is refused."""
        wanted = replace(
            change or Change(), drafts=drafts, epoch=None if epoch is None else Epoch(epoch)
        )
        view = self.view
        write = {"id": f"{self.writes:032x}", "by": "test"}
        planned = plan(view, wanted, now=now, write=write, bounds=self.bounds)
        if isinstance(planned, Planned) and planned.segment is not None:
            self.segments[planned.segment.name] = planned.segment.data
            planned = plan(
                view, wanted, now=now, write=write, bounds=self.bounds, moved=planned.segment
            )
        assert isinstance(planned, Planned), planned
        if planned.body is not None:
            self.writes += 1
            self.raw = planned.body
        return self.view

    def run_to_frozen(self) -> RunView:
        """Admitted, one runner pod, a frozen commit."""
        self.add(admit(), pod("a1"))
        self.add(pod("a1", "done"))
        self.add(incarnation("a1", 1), epoch=1)
        return self.add(*TO_FROZEN, epoch=1)
