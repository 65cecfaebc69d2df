"""Phase 0: what refuses a run, what makes it wait, what `admit` freezes."""

from typing import Any, ClassVar

import pytest

from support.scenes import COMMIT, LEADER, Scene, a_policy, at
from upgraderun_operator import limits
from upgraderun_operator.build.frozen import read_frozen
from upgraderun_operator.decide.decision import Decision, Look, Need, Pause
from upgraderun_operator.decide.effects import Append, TakeRepositoryLease, WriteReport
from upgraderun_operator.decide.readings import ABSENT, Unreadable
from upgraderun_operator.decide.run import decide
from upgraderun_operator.decide.views import (
    DestinationRefused,
    DestinationView,
    Holder,
    ReportView,
    RepositoryLeaseView,
)
from upgraderun_protocol.bundle import Bundle, EarlierProposals
from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.ids import CommitId, ResourceVersion
from upgraderun_protocol.records import from_bytes

OURS = RepositoryLeaseView("repo-1", Holder.OURS)
FINE = DestinationView(True, branch="main", head=COMMIT, may_push=True)


def decided(scene: Scene, **parts: Any) -> Decision:
    return decide(scene.seen(**{"policy": scene.policy, **parts}))


def ends(scene: Scene, **parts: Any) -> dict[str, str]:
    """Data of the outcome entry: the report is written first, then the end is claimed."""
    first = decided(scene, record=ABSENT, report=ABSENT, **parts)
    assert isinstance(first.what, WriteReport)
    shown = ReportView("r", scene.view.uid, first.what.content.outcome, None, ResourceVersion("1"))
    second = decided(scene, record=ABSENT, report=shown, **parts)
    assert isinstance(second.what, Append)
    (entry,) = second.what.change.drafts
    assert entry.kind == "outcome"
    return dict(entry.data)


def test_a_run_that_is_created_suspended_waits_and_asks_for_nothing() -> None:
    decision = decide(Scene(suspend=True).seen())
    assert Pause() == decision.what
    assert decision.rule == "admission.suspended_before_the_start"


def test_the_policy_is_the_first_thing_that_is_asked_for() -> None:
    assert Look(Need.POLICY) == decide(Scene().seen()).what


def test_an_unreadable_policy_is_no_verdict() -> None:
    decision = decided(Scene(), policy=Unreadable("cluster", "500"))
    assert isinstance(decision.what, Pause)
    assert decision.what.backoff
    assert not decision.what.shown


def test_a_missing_policy_refuses_the_run_and_says_which() -> None:
    outcome = ends(Scene(policyRef={"name": "strict"}), policy=ABSENT)
    assert outcome["outcome"] == "policy_refused"
    assert "UpgradePolicy strict isn't there in namespace team" in outcome["message"]


@pytest.mark.parametrize("need", [Need.RECORD, Need.REPORT])
def test_a_report_is_looked_for_before_a_run_ends(need: Need) -> None:
    parts: dict[str, Any] = {"policy": ABSENT}
    if need is Need.REPORT:
        parts["record"] = ABSENT
    assert Look(need) == decide(Scene().seen(**parts)).what


def test_a_strangers_report_doesnt_keep_a_run_from_ending() -> None:
    stranger = ReportView("r", "somebody", "Whatever", None, ResourceVersion("1"))
    decision = decided(Scene(), policy=ABSENT, record=ABSENT, report=stranger)
    assert isinstance(decision.what, Append)


def test_a_repository_outside_the_policy_is_refused_without_an_outward_call() -> None:
    scene = Scene()
    scene.policy = a_policy(repositories=["https://git.example/others/*"])
    outcome = ends(scene)
    assert outcome["outcome"] == "policy_refused"
    assert "spec.repositories" in outcome["message"]


class TestDecisionList:
    """Mode Scripted needs exactly the list that the policy names."""

    SCRIPTED: ClassVar = {"configMapRef": {"name": "list", "key": "k"}, "sha256": sha256_of(b"[]")}

    def scene(self) -> Scene:
        scene = Scene(mode="Scripted")
        scene.policy = a_policy(scripted=self.SCRIPTED)
        return scene

    def test_is_asked_for(self) -> None:
        assert Look(Need.DECISIONS) == decided(self.scene()).what

    def test_that_differs_is_refused(self) -> None:
        outcome = ends(self.scene(), decisions="ConfigMap list, key k has digest x")
        assert outcome["outcome"] == "policy_refused"

    def test_is_stored_with_the_admission(self) -> None:
        decision = decided(self.scene(), decisions=b"[]", repository=OURS, destination=FINE)
        assert isinstance(decision.what, Append)
        assert b"[]" in decision.what.blobs

    def test_is_left_alone_in_other_modes(self) -> None:
        scene = self.scene()
        scene.spec["mode"] = "Rules"
        assert Look(Need.REPOSITORY) == decided(scene).what


class TestRepository:
    """One active run per repository (DESIGN §7)."""

    def test_that_is_busy_makes_the_run_wait_and_names_the_holder(self) -> None:
        busy = RepositoryLeaseView("repo-1", Holder.OTHER, "other/first")
        decision = decided(Scene(), repository=busy)
        assert isinstance(decision.what, Pause)
        assert decision.what.shown
        assert decision.reason == "RepositoryBusy"
        assert "run other/first" in decision.message

    def test_that_is_free_is_taken_before_the_forge_is_asked(self) -> None:
        free = RepositoryLeaseView("repo-1", Holder.FREE)
        decision = decided(Scene(), repository=free)
        expected = TakeRepositoryLease(
            "https://git.example/team/lib.git", f"team/run/{Scene().view.uid}", free
        )
        assert expected == decision.what

    def test_that_is_ours_leads_to_the_forge(self) -> None:
        assert Look(Need.DESTINATION) == decided(Scene(), repository=OURS).what

    def test_of_an_unpublished_run_needs_no_forge(self) -> None:
        scene = Scene(publication={"enabled": False})
        assert isinstance(decided(scene, repository=OURS).what, Append)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (DestinationRefused("the forge refuses the push token (401)"), "push token (401)"),
        (DestinationView(False), "doesn't exist"),
        (DestinationView(True, archived=True, head=COMMIT), "archived"),
        (DestinationView(True, disabled=True, head=COMMIT), "disabled the repository"),
        (DestinationView(True, branch="next"), "branch 'next' doesn't exist"),
        (DestinationView(True, branch="main", head=COMMIT, commit_on_branch=False), "reachable"),
        (DestinationView(True, branch="main", head=COMMIT, may_push=False), "no write access"),
        (
            DestinationView(True, branch="main", head=COMMIT, creation_forbidden="ruleset 7"),
            "ruleset 7",
        ),
    ],
)
def test_a_destination_that_cant_take_the_result_refuses_the_run(found: Any, words: str) -> None:
    outcome = ends(Scene(), repository=OURS, destination=found)
    assert outcome["outcome"] == "destination_refused"
    assert words in outcome["message"]


@pytest.mark.parametrize(("unanswered", "shown"), [(0, False), (1, False), (2, True)])
def test_a_silent_forge_is_told_from_the_third_pass(unanswered: int, shown: bool) -> None:
    silent = Unreadable("forge", "timeout")
    decision = decided(Scene(), repository=OURS, destination=silent, unanswered=unanswered)
    assert Pause(shown=shown, backoff=True) == decision.what
    assert decision.reason == "RemoteUnreachable"


@pytest.mark.parametrize(
    ("after", "until", "again"), [(90.0, at(90), 90.0), (None, at(300), limits.FORGE_RETRY_SECONDS)]
)
def test_a_forge_that_limits_is_told_at_once_and_asked_as_it_says(
    after: float | None, until: str, again: float
) -> None:
    limited = Unreadable("forge", "GET /repos/team/lib: 403, limited", after, limited=True)
    decision = decided(Scene(), repository=OURS, destination=limited)
    assert Pause(again, shown=True) == decision.what
    assert decision.reason == "ForgeLimited"
    assert f"asked again after {until}" in decision.message


class TestDryRunOfAnApp:
    """Nothing is published, but a token must be mintable, or no pod is made."""

    def scene(self) -> Scene:
        scene = Scene(publication={"enabled": False})
        key = {"name": "forge-app", "key": "private-key.pem"}
        scene.policy = a_policy(credentials={"app": {"id": "Iv1", "privateKeyRef": key}})
        return scene

    def test_asks_the_forge(self) -> None:
        assert Look(Need.DESTINATION) == decided(self.scene(), repository=OURS).what

    @pytest.mark.parametrize(
        ("found", "words"),
        [
            (DestinationRefused("App Iv1 isn't installed on team/lib"), "isn't installed"),
            (DestinationView(False), "the App may not see it"),
        ],
    )
    def test_is_refused_where_nothing_could_be_cloned(self, found: Any, words: str) -> None:
        outcome = ends(self.scene(), repository=OURS, destination=found)
        assert outcome["outcome"] == "destination_refused"
        assert words in outcome["message"]

    def test_may_read_what_is_archived(self) -> None:
        archived = DestinationView(True, archived=True, branch="main", head=COMMIT)
        decision = decided(self.scene(), repository=OURS, destination=archived)
        assert isinstance(decision.what, Append)
        assert decision.what.change.drafts[0].kind == "admit"


class TestAdmit:
    """`admit` and the first intent stand in one write, guarded and fenced."""

    def test_freezes_policy_branch_and_base(self) -> None:
        scene = Scene()
        decision = decided(scene, repository=OURS, destination=FINE)
        assert isinstance(decision.what, Append)
        admit, intent = decision.what.change.drafts
        frozen, bundle = decision.what.blobs
        assert admit.artifacts == {"policy": sha256_of(frozen)}
        assert admit.data["baseCommit"] == COMMIT
        assert admit.data["branch"] == "main"
        assert intent.data["pod"] == "run-3f1c9a2b-a1"
        assert intent.artifacts == {"bundle": sha256_of(bundle)}
        again = read_frozen(frozen, scene.seen().run.spec)
        assert again.policy == scene.resolved()
        told = from_bytes(Bundle, bundle)
        assert (told.writer, told.repository.commit) == ("a1", COMMIT)
        assert told.destination is not None

    def test_carries_the_leaders_epoch_and_rests_on_the_wish(self) -> None:
        decision = decided(Scene(), repository=OURS, destination=FINE)
        assert isinstance(decision.what, Append)
        assert decision.what.change.leader_epoch == LEADER
        assert decision.what.same_wish

    def test_prefers_the_wished_commit_to_the_head(self) -> None:
        wished = CommitId("9" * 40)
        scene = Scene()
        scene.spec["repository"]["commit"] = wished
        found = DestinationView(True, branch="main", head=COMMIT, commit_on_branch=True)
        decision = decided(scene, repository=OURS, destination=found)
        assert isinstance(decision.what, Append)
        assert decision.what.change.drafts[0].data["baseCommit"] == wished

    def test_takes_over_targets_that_wait_in_other_runs(self) -> None:
        lease = RepositoryLeaseView(
            "repo-1",
            Holder.OURS,
            frozen={"team/other/u": "lib@2", f"team/run/{Scene().view.uid}": "own@1"},
        )
        earlier = EarlierProposals(("lib@1",), ("lib@0",))
        found = DestinationView(True, branch="main", head=COMMIT, earlier=earlier)
        decision = decided(Scene(), repository=lease, destination=found)
        assert isinstance(decision.what, Append)
        told = from_bytes(Bundle, decision.what.blobs[1])
        assert told.earlier == EarlierProposals(("lib@1", "lib@2"), ("lib@0",))

    def test_without_publication_leaves_branch_and_base_to_the_remote(self) -> None:
        scene = Scene(publication={"enabled": False})
        del scene.spec["repository"]["branch"]
        decision = decided(scene, repository=OURS)
        assert isinstance(decision.what, Append)
        assert "branch" not in decision.what.change.drafts[0].data
        told = from_bytes(Bundle, decision.what.blobs[1])
        assert (told.repository.branch, told.repository.commit) == ("", None)
        assert told.destination is None


def test_a_look_that_took_too_long_is_repeated() -> None:
    assert Pause(0.0, backoff=True) == decide(Scene().seen(fresh=False)).what
