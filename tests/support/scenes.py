"""Builds observations for tests of `decide`: a run, its journal entry by entry, and its world.

    scene = Scene().admitted().started().alive()
    decide(scene.seen(pod=a_pod("a1")))

Entries go through the real codec checks, so a scene that no journal could hold fails here.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from upgraderun_operator.build.context import BuildOptions
from upgraderun_operator.build.frozen import FrozenAdmission
from upgraderun_operator.decide.effects import Append
from upgraderun_operator.decide.observation import Observation
from upgraderun_operator.decide.run import decide
from upgraderun_operator.decide.views import (
    ApprovalView,
    DestinationView,
    Holder,
    PodView,
    ReportView,
    RepositoryLeaseView,
    Terminated,
    Waiting,
)
from upgraderun_operator.journal.codec import EMPTY
from upgraderun_operator.journal.facts import Facts
from upgraderun_operator.journal.folding import run_state
from upgraderun_operator.journal.run import RunView
from upgraderun_operator.model.objects import UpgradePolicy, parse_policy, parse_run
from upgraderun_operator.model.policy import ResolvedPolicy, resolve
from upgraderun_protocol.bundle import EarlierProposals, RunRef
from upgraderun_protocol.entries import Draft, EntryState, entry_from_draft
from upgraderun_protocol.fold import Fold
from upgraderun_protocol.ids import (
    CommitId,
    EntryId,
    Epoch,
    PodUid,
    ResourceVersion,
    RunUid,
    Sha256,
)
from upgraderun_protocol.kinds import check_shape
from upgraderun_protocol.report import ReportRecord, ReportTarget

UID = RunUid("3f1c9a2b-0000-4000-8000-000000000001")
NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
COMMIT = CommitId("a" * 40)
TREE = "b" * 40
FROZEN_COMMIT = CommitId("c" * 40)
DIGEST = "d" * 64
ARTIFACT = Sha256("e" * 64)
REPORT = Sha256("f" * 64)
LEADER = Epoch(7)
NONCE = "0123456789abcdef" * 2
OPTIONS = BuildOptions(
    operator_namespace="upgraderun",
    operator_url="https://upgraderun-operator.upgraderun.svc:8443",
    authority="-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    runner_account="upgraderun-runner",
    publisher_account="upgraderun-publisher",
    allow_inline=True,
)
POLICY: Mapping[str, Any] = {
    "metadata": {"name": "default", "namespace": "team", "uid": "p", "generation": 3},
    "spec": {
        "repositories": ["https://git.example/team/*"],
        "forge": {"type": "GitHub", "apiURL": "https://git.example/api/v3"},
        "credentials": {
            "clone": {"secretRef": {"name": "clone", "key": "token"}},
            "push": {"secretRef": {"name": "push", "key": "token"}},
        },
        "images": {
            "runner": "registry.example/runner@sha256:" + "1" * 64,
            "python": [{"version": "3.11.7", "image": "registry.example/py@sha256:" + "2" * 64}],
        },
        "sandbox": {"type": "Inline"},
    },
}


FREE = RepositoryLeaseView("repo-1", Holder.FREE)
OURS = RepositoryLeaseView("repo-1", Holder.OURS)
FINE = DestinationView(True, branch="main", head=COMMIT, commit_on_branch=True, may_push=True)


def at(seconds: float = 0) -> str:
    """A stored time, so many seconds after NOW."""
    return (NOW + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def a_policy(**spec: Any) -> UpgradePolicy:
    """The policy of these tests with other fields in its spec."""
    return parse_policy({**POLICY, "spec": {**POLICY["spec"], **spec}})


def a_record(outcome: str = "proposal_prepared", **fields: Any) -> ReportRecord:
    """A report record as a runner leaves it."""
    known: dict[str, Any] = {
        "version": 1,
        "outcome": outcome,
        "message": "one commit is frozen",
        "target": ReportTarget("lib", "1.0", "1.1"),
        "patch": "--- a\n+++ b\n",
    }
    return ReportRecord(**{**known, **fields})


def a_pod(tag: str = "a1", uid: str = "", **fields: Any) -> PodView:
    """Our pod of that tag, running since a minute."""
    known: dict[str, Any] = {
        "name": f"run-3f1c9a2b-{tag}",
        "uid": PodUid(uid or f"pod-{tag}"),
        "owner_uid": UID,
        "created_at": at(-60),
        "phase": "Running",
        "container": "running",
    }
    return PodView(**{**known, **fields})


def ended(code: int, reason: str = "Error", message: str = "") -> dict[str, Any]:
    """Fields of a pod whose container ended."""
    return {"phase": "Failed", "container": Terminated(code, reason, message)}


def pending(reason: str = "ContainerCreating", message: str = "") -> dict[str, Any]:
    """Fields of a pod whose container waits."""
    return {"phase": "Pending", "container": Waiting(reason, message)}


class Scene:
    """A run and its journal. Methods append entries and return the scene."""

    def __init__(self, *, name: str = "run", **spec: Any) -> None:
        repository = {"url": "https://git.example/team/lib.git", "branch": "main"}
        self.spec: dict[str, Any] = {
            "repository": repository,
            "mode": "Rules",
            "publication": {"enabled": True},
            **spec,
        }
        self.metadata: dict[str, Any] = {
            "name": name,
            "namespace": "team",
            "uid": UID,
            "resourceVersion": "1",
            "generation": 1,
            "annotations": {"upgraderun.dev/requested-by": "rita"},
        }
        self.fold = Fold()
        self.facts = Facts(leader_epoch=LEADER)
        self.policy = a_policy()
        self.clock = -600.0

    def entry(
        self,
        entry_id: str,
        kind: str,
        state: EntryState = EntryState.DONE,
        data: Mapping[str, str] | None = None,
        artifacts: Mapping[str, Sha256] | None = None,
        *,
        epoch: int | None = None,
    ) -> Self:
        """Append one entry, ten seconds after the one before."""
        draft = Draft(EntryId(entry_id), kind, state, data or {}, artifacts or {})
        check_shape(draft)
        self.clock += 10
        tag = (run_state(self.fold).tag) if len(self.fold) else "a0"
        self.fold = self.fold.extended(
            [
                entry_from_draft(
                    draft,
                    seq=self.fold.seq + 1,
                    at=at(self.clock),
                    attempt=tag,
                    epoch=Epoch(self.fold.epoch if epoch is None else epoch),
                )
            ]
        )
        return self

    def admitted(self, **more: str) -> Self:
        """Phase 0 is done."""
        data = {"policy": "default", "configHash": DIGEST, "baseCommit": COMMIT, **more}
        return self.entry("admit", "admit", data=data, artifacts={"policy": ARTIFACT})

    def planned(self, tag: str = "a1") -> Self:
        """The intent of a pod."""
        kind = "delivery" if tag.startswith("d") else "attempt"
        data = {"pod": f"run-3f1c9a2b-{tag}", "image": "runner"}
        return self.entry(tag, kind, EntryState.INTENT, data, {"bundle": ARTIFACT})

    def recorded(self, tag: str = "a1") -> Self:
        """The pod's UID."""
        kind = "delivery" if tag.startswith("d") else "attempt"
        return self.entry(tag, kind, data={"podUID": f"pod-{tag}"})

    def hello(self, tag: str = "a1") -> Self:
        """An incarnation took the run Lease."""
        epoch = self.fold.epoch + 1
        data = {"podUID": f"pod-{tag}", "nonce": DIGEST, "protocol": "1"}
        return self.entry(f"{tag}/i{epoch}", "incarnation", data=data, epoch=epoch)

    def working(self, tag: str = "a1") -> Self:
        """Admitted if need be, planned, recorded, and speaking."""
        if not len(self.fold):
            self.admitted()
        return self.planned(tag).recorded(tag).hello(tag)

    def end(self, tag: str = "a1", cause: str = "verdict", **data: str) -> Self:
        """The pod speaks no more."""
        artifacts = {"report": REPORT} if cause == "verdict" and tag.startswith("a") else {}
        fields = {"cause": cause, "podUID": f"pod-{tag}", **data}
        return self.entry(f"{tag}/end", "end", data=fields, artifacts=artifacts)

    def base(self) -> Self:
        """The base is fixed."""
        return self.entry("base", "base", data={"commit": COMMIT, "tree": TREE})

    def proposal(self) -> Self:
        """A proposal is frozen."""
        self.base()
        intent = {"proposal": "3f1c9a2b-s3", "commit": FROZEN_COMMIT, "tree": TREE, "ref": "r"}
        self.entry("proposal/s3", "proposal", EntryState.INTENT, intent, {"recipe": ARTIFACT})
        shape = {
            "name": "lib",
            "from": "1.0",
            "to": "1.1",
            "files": "2",
            "added": "3",
            "removed": "1",
        }
        artifacts = {"record": Sha256(DIGEST), "report": REPORT}
        return self.entry("proposal/s3", "proposal", data=shape, artifacts=artifacts)

    def frozen(self) -> Self:
        """One attempt that ended with a frozen proposal, publication wanted."""
        return self.working().proposal().end(outcome="proposal_prepared")

    def asked(self, number: int = 1, expires: float = 3600) -> Self:
        """An open request."""
        data = {"ask": "Publication", "digest": DIGEST, "nonce": NONCE, "expiresAt": at(expires)}
        artifacts = {"presentation": ARTIFACT}
        return self.entry(f"req/{number}", "request", EntryState.INTENT, data, artifacts)

    def granted(self) -> Self:
        """The request is approved and the push intent stands."""
        data = {"decision": "approved", "by": "anna", "approval": "yes", "at": at(-60)}
        self.entry("req/1", "request", data=data)
        return self.pushing()

    def pushing(self, number: int = 1) -> Self:
        """A push intent."""
        data = {
            "branch": "upgraderun/lib-1.1-3f1c9a2b",
            "commit": FROZEN_COMMIT,
            "proposal": DIGEST,
            "grant": "req/1",
        }
        return self.entry(f"push/{number}", "push", EntryState.INTENT, data)

    def publishing(self) -> Self:
        """A publisher speaks."""
        return self.frozen().asked().granted().planned("d1").recorded("d1").hello("d1")

    def outcome(self, name: str, **data: str) -> Self:
        """The end."""
        return self.entry("outcome", "outcome", data={"outcome": name, **data})

    @property
    def view(self) -> RunView:
        """The run as it stands."""
        raw = {"metadata": self.metadata, "spec": self.spec}
        ref = RunRef("team", str(self.metadata["name"]), UID)
        journal = replace(EMPTY, fold=self.fold)
        return RunView(ref, ResourceVersion("1"), raw, journal, run_state(self.fold), self.facts)

    def resolved(self) -> ResolvedPolicy:
        """The policy as it holds for this run."""
        verdict = resolve(parse_run(self.view.raw).spec, self.policy, allow_inline=True)
        assert isinstance(verdict, ResolvedPolicy)
        return verdict

    def seen(self, **parts: Any) -> Observation:
        """Look at it: parts of the world, or other fields, by name."""
        view = self.view
        known: dict[str, Any] = {
            "view": view,
            "run": parse_run(view.raw),
            "leader": LEADER,
            "now": NOW,
            "nonce": NONCE,
            "options": OPTIONS,
        }
        if view.state.admission is not None:
            known["frozen"] = FrozenAdmission(self.resolved(), "main", EarlierProposals((), ()))
        return Observation(**{**known, **parts})


def report(
    outcome: str, digest: str | None = None, owner: str | None = UID, message: str = ""
) -> ReportView:
    return ReportView("r", owner, outcome, digest, ResourceVersion("1"), message)


def an_approval(**fields: Any) -> ApprovalView:
    known: dict[str, Any] = {
        "name": "yes",
        "uid": "approval-1",
        "run_uid": UID,
        "kind": "Publication",
        "digest": DIGEST,
        "approves": True,
        "approver": "anna",
        "requester": "rita",
        "comment": "",
        "created_at": at(-60),
    }
    return ApprovalView(**{**known, **fields})


def outcome_of(scene: Scene, reason: str, **parts: Any) -> dict[str, dict[str, str]]:
    """Entries of the claim, once the report says the end."""
    seen = scene.seen(
        **{"policy": scene.policy, "record": a_record(), "report": report(reason), **parts}
    )
    decision = decide(seen)
    assert isinstance(decision.what, Append)
    return {draft.id: dict(draft.data) for draft in decision.what.change.drafts}
