"""Contradictions: what the journal says and what was found, side by side."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from support.journal_story import Story as JournalStory
from support.journal_story import admit
from support.scenes import UID, Scene, a_pod, at, ended
from support.told.telling import Told, end_of_a_verdict, end_of_the_operator
from support.told.work import OURS
from upgraderun_operator.decide.readings import ABSENT
from upgraderun_operator.decide.views import ChildView
from upgraderun_operator.journal.broken import broken_status
from upgraderun_operator.journal.codec import load
from upgraderun_operator.journal.errors import JournalBroken, JournalTooNew
from upgraderun_operator.model.conflicts import CONFLICTS
from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.ids import CommitId, RunUid, TreeId
from upgraderun_protocol.outcomes import ConflictKind
from upgraderun_protocol.slugs import marker
from upgraderun_runner.errors import RunConflicts
from upgraderun_runner.forge.github import SeenPullRequest
from upgraderun_runner.forge.tables import (
    BranchAt,
    EffectJournal,
    PublicationConflict,
    decide_branch,
    decide_pull_request,
)
from upgraderun_runner.phases.recovery import contradicted_file
from upgraderun_runner.phases.workspace import contradicted_workspace
from upgraderun_runner.process import Conclusion
from upgraderun_runner.tools.manifests import as_conflict
from upgraderun_runner.workspace.errors import WorkspaceContradicts
from upgraderun_runner.workspace.identity import IdentityMatch
from upgraderun_runner.workspace.promotion import (
    Contradiction,
    PairHashes,
    Promotes,
    PromotionJournal,
    PromotionPlan,
    decide_promotion,
)
from upgraderun_runner.workspace.proposal import (
    ProposalContradiction,
    ProposalJournal,
    ProposalObservation,
    decide_proposal,
)

THEIRS = CommitId("2" * 40)
A, B, X = (sha256_of(text) for text in (b"after", b"before", b"other"))
PLAN = PromotionPlan(
    Promotes.UPGRADE, "pyproject.toml", "uv.lock", PairHashes(B, B), PairHashes(A, A), "s3"
)


def told() -> Iterator[Told]:
    """Every kind, in the order of its table."""
    yield from _of_the_cluster()
    yield journal_broken()
    yield from _of_the_workspace()
    yield from _of_the_forge()


def _of_the_cluster() -> Iterator[Told]:
    planned = Scene().admitted().planned()
    stranger = a_pod("a1", owner_uid="another")
    yield end_of_the_operator(planned, stranger.name, pod=stranger)
    child = ChildView("run-3f1c9a2b", "claim-9", "another")
    yield end_of_the_operator(
        Scene().admitted().planned(), child.name, pod=ABSENT, claim=child, lease=ABSENT
    )
    ours = ChildView("run-3f1c9a2b", "claim-1", UID)
    yield end_of_the_operator(
        Scene().admitted().planned(), child.name, pod=ABSENT, claim=ours, lease=child
    )
    fenced = Scene().working()
    fenced.facts = replace(fenced.facts, attempt_lost_at=at(-90))
    yield end_of_the_operator(fenced, "a1", pod=a_pod("a1", **ended(77)))


def journal_broken() -> Told:
    """An entry that somebody changed: the journal stays as it is, the condition tells."""
    view = JournalStory().add(admit())
    block = {**view.status["journal"]}
    block["head"] = {**block["head"], "digest": "0" * 64}
    row = CONFLICTS[ConflictKind.JOURNAL_BROKEN]
    text = _unusable(block, "Conflict")
    return Told("JournalBroken", text, "journal", row.next_step)


def journal_too_new(step: str) -> Told:
    """A journal of a later version: nothing of it is read."""
    text = _unusable({"format": 2, "entries": []}, "Stalled")
    return Told("JournalTooNew", text, "status.journal", step)


def _unusable(block: dict[str, Any], condition: str) -> str:
    try:
        load(block, {}, RunUid(UID))
    except (JournalBroken, JournalTooNew) as error:
        too_new = isinstance(error, JournalTooNew)
        status = broken_status({}, str(error), too_new=too_new, generation=1, now=at())
        assert status is not None
        found = {one["type"]: one["message"] for one in status["conditions"]}
        return str(found[condition])
    raise AssertionError("this journal can be used")


def _of_the_workspace() -> Iterator[Told]:
    yield _contradicted(contradicted_workspace(IdentityMatch.ABSENT, "1"), "generation 1")
    yield _contradicted(contradicted_workspace(IdentityMatch.FOREIGN, "1"), "generation 1")
    for observed, where in ((PairHashes(A, B), "lock"), (PairHashes(X, B), X[:12])):
        found = decide_promotion(PromotionJournal.OPEN, PLAN, observed, lock_copy=False)
        assert isinstance(found, Contradiction)
        text = WorkspaceContradicts(found.kind, found.expected, found.observed)
        yield _contradicted(as_conflict(text), where)
    yield _contradicted(as_conflict(contradicted_file("app/prices.py", B, A, X)), "app/prices.py")
    yield _proposal(OURS.commit, THEIRS)
    yield _proposal(THEIRS, None)


def _proposal(recomputed: CommitId, ref: CommitId | None) -> Told:
    seen = ProposalObservation(OURS.commit, ref, recomputed, TreeId("b" * 40), True, None)
    found = decide_proposal(ProposalJournal.OPEN, seen)
    assert isinstance(found, ProposalContradiction)
    return _contradicted(RunConflicts(found.kind, found.expected, found.observed), THEIRS)


def _of_the_forge() -> Iterator[Told]:
    elsewhere = BranchAt(THEIRS)
    for journal in (EffectJournal.NOT_OPEN, EffectJournal.DONE):
        yield _published(decide_branch(journal, elsewhere, (), OURS), f"branch at {THEIRS}")
    body = marker(RunUid(OURS.run_uid), OURS.proposal_digest, "python", "lib", "1.1")
    ours = SeenPullRequest(7, "open", OURS.commit, "main", body, "upgraderun")
    theirs = SeenPullRequest(8, "open", OURS.commit, "main", "by hand", "mallory")
    at_ours = BranchAt(OURS.commit)
    for pulls, where in (((theirs,), "#8 by mallory"), ((ours, replace(ours, number=9)), "#9")):
        yield _published(decide_pull_request(EffectJournal.OPEN, pulls, at_ours, OURS), where)


def _published(found: object, where: str) -> Told:
    assert isinstance(found, PublicationConflict)
    conflict = RunConflicts(found.kind, found.expected, found.observed)
    conclusion = Conclusion(conflict.outcome, str(conflict), conflict=conflict)
    told = end_of_a_verdict(conclusion, where, scene=Scene().publishing())
    assert OURS.branch in told.text
    return told


def _contradicted(conflict: RunConflicts, where: str) -> Told:
    return end_of_a_verdict(Conclusion(conflict.outcome, str(conflict), conflict=conflict), where)
