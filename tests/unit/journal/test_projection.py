"""What people read: phase, outcome, conditions and the rest, computed from the fold (DESIGN §3)."""

from typing import Any

import pytest

from support.journal_story import (
    BASE,
    CANDIDATES,
    FINALIZED,
    NOW,
    TO_FROZEN,
    Story,
    admit,
    answer,
    ask,
    draft,
    end,
    git_id,
    incarnation,
    outcome,
    pod,
    pull_request,
    push,
    sha,
)
from upgraderun_operator.journal.facts import Wait
from upgraderun_operator.journal.run import RunView
from upgraderun_operator.journal.writes import Change
from upgraderun_operator.model.conditions import REASONS
from upgraderun_operator.model.run_status import UpgradeRunStatus

LATER = "2026-11-30T09:30:00Z"


def condition(view: RunView, kind: str) -> tuple[str, str, str]:
    """Status, reason and message of one condition."""
    [found] = [item for item in view.status["conditions"] if item["type"] == kind]
    return found["status"], found["reason"], found["message"]


def published() -> Story:
    story = Story()
    story.run_to_frozen()
    story.add(end("a1", "verdict"), ask())
    story.add(answer("approved", by="bob"), push(), pod("d1"), pod("d1", "done"))
    story.add(incarnation("d1", 2), push("done"), pull_request(), epoch=2)
    story.add(pull_request("done"), epoch=2)
    return story


def asked() -> Story:
    story = Story()
    story.run_to_frozen()
    story.add(end("a1", "verdict"), ask())
    return story


class TestSummary:
    """`Succeeded` is tri-state: Unknown while the run is active."""

    def test_a_new_run_is_queued(self) -> None:
        view = Story().add(admit())

        assert view.status["phase"] == "Queued"
        assert view.status["finished"] is False
        assert condition(view, "Succeeded")[:2] == ("Unknown", "Queued")

    def test_running_shows_its_step(self) -> None:
        story = Story()
        story.add(admit(), pod("a1"), pod("a1", "done"))
        story.add(incarnation("a1", 1), BASE, epoch=1)

        assert story.view.status["phase"] == "Preparing"
        assert condition(story.view, "Succeeded")[:2] == ("Unknown", "Progressing")

    def test_waiting_for_people_says_what_is_asked(self) -> None:
        status = asked().view.status

        assert status["phase"] == "AwaitingApproval"
        assert status["exitCode"] == 5
        assert status["pendingApproval"] == {
            "kind": "publication",
            "digest": sha("a"),
            "headline": "Upgrade requests from 2.31.0 to 2.32.0",
            "target": {"name": "requests", "from": "2.31.0", "to": "2.32.0"},
            "files": 2,
            "lines": 7,
            "presentationSha256": sha("f"),
            "requestedAt": NOW,
            "expiresAt": "2026-12-07T08:00:00Z",
            "approvals": 0,
        }
        assert sha("a") in condition(asked().view, "Succeeded")[2]

    def test_a_frozen_commit_waits_for_its_question(self) -> None:
        story = Story()
        story.run_to_frozen()
        story.add(end("a1", "verdict"))

        assert "comes next" in condition(story.view, "Succeeded")[2]

    def test_a_published_run_succeeds_once_it_is_finalized(self) -> None:
        story = published()
        story.add(outcome("proposal_published", message="pull request 7"), now=LATER)
        finalizing = story.view
        finished = story.add(FINALIZED, now=LATER)

        assert condition(finalizing, "Succeeded")[:2] == ("Unknown", "Finalizing")
        assert finalizing.status["outcome"] == "Published"
        assert condition(finished, "Succeeded")[:2] == ("True", "Published")
        assert "merge the pull request" in condition(finished, "Succeeded")[2]
        assert finished.status["finished"] is True
        assert finished.status["exitCode"] == 0
        assert finished.status["durationSeconds"] == 5400
        assert finished.status["finalization"] == {"finishedAt": LATER, "finalizedAt": LATER}

    def test_a_failed_run_doesn_t_succeed(self) -> None:
        story = Story()
        story.add(admit())
        story.add(outcome("cancelled"), FINALIZED)

        assert condition(story.view, "Succeeded")[:2] == ("False", "Cancelled")
        assert condition(story.view, "BaselineValidated")[:2] == ("False", "NotReached")

    def test_a_run_that_was_never_admitted_has_no_duration(self) -> None:
        view = Story().add(outcome("policy_refused"))

        assert "startTime" not in view.status
        assert "durationSeconds" not in view.status

    def test_a_wait_is_the_reason(self) -> None:
        story = Story()
        story.add(admit())
        busy = story.add(change=Change(wait=Wait("RepositoryBusy", "busy", NOW)))
        stalled = story.add(change=Change(wait=Wait("ForgeDenied", "denied", NOW)))
        ended = story.add(outcome("cancelled"))

        assert condition(busy, "Succeeded") == ("Unknown", "RepositoryBusy", "busy")
        assert condition(busy, "Stalled")[0] == "False"
        assert condition(stalled, "Stalled") == ("True", "ForgeDenied", "denied")
        assert condition(stalled, "Succeeded")[1] == "Queued"
        assert condition(ended, "Stalled")[0] == "False"


class TestMilestones:
    """One condition per milestone; each keeps the time of its last change."""

    def test_a_frozen_run_reached_four(self) -> None:
        story = Story()
        view = story.run_to_frozen()

        for kind in ("BaselineValidated", "UpgradeSelected", "Validated", "ProposalFrozen"):
            assert condition(view, kind)[0] == "True"
        assert condition(view, "Approved")[:2] == ("Unknown", "NotYet")
        assert condition(view, "Published")[:2] == ("Unknown", "NotYet")

    def test_a_listed_candidate_isn_t_selected_yet(self) -> None:
        story = Story()
        story.add(admit(), pod("a1"), pod("a1", "done"))
        view = story.add(incarnation("a1", 1), *CANDIDATES, epoch=1)

        assert view.status["target"]["name"] == "requests"
        assert condition(view, "UpgradeSelected")[:2] == ("Unknown", "NotYet")

    def test_candidates_without_a_pick_name_no_target(self) -> None:
        story = Story()
        story.add(admit(), pod("a1"), pod("a1", "done"))
        story.add(incarnation("a1", 1), CANDIDATES[0], epoch=1)
        none = draft(
            "candidates/1", "candidates", "done", {"list": sha("e")}, total="3", eligible="0"
        )

        assert "target" not in story.add(none, epoch=1).status

    def test_a_failing_baseline_is_told_as_such(self) -> None:
        story = Story()
        story.add(admit())
        view = story.add(outcome("baseline_failing", message="2 tests fail"))

        assert condition(view, "BaselineValidated") == (
            "False",
            "BaselineFailing",
            "2 tests fail",
        )

    @pytest.mark.parametrize("is_ended", [False, True])
    def test_a_validation_with_findings(self, *, is_ended: bool) -> None:
        story = Story()
        story.add(admit(), pod("a1"), pod("a1", "done"))
        story.add(
            incarnation("a1", 1),
            draft("s1", "step", "intent", tool="run_validation"),
            draft("s1", "step", "done", {"observation": sha("6")}, tool="run_validation"),
            epoch=1,
        )
        view = story.add(outcome("regressed")) if is_ended else story.view

        reason = "NotReached" if is_ended else "NotYet"
        assert condition(view, "Validated")[:2] == ("False", reason)

    def test_answers_of_people(self) -> None:
        def after(decision: str, **data: str) -> tuple[str, str, str]:
            return condition(asked().add(answer(decision, **data)), "Approved")

        assert condition(asked().view, "Approved")[:2] == ("Unknown", "AwaitingApproval")
        assert after("approved", by="bob") == ("True", "ApprovalCounted", "by bob")
        assert after("approved") == ("True", "ApprovalCounted", "by unnamed")
        assert after("rejected", by="eve") == ("False", "ApprovalRejected", "by eve")
        assert after("expired") == ("False", "ApprovalExpired", "by nobody")
        told = after("rejected", by="eve", message="no")
        assert told == ("False", "ApprovalRejected", "by eve: no")
        ended = asked().add(outcome("cancelled"))
        assert condition(ended, "Approved")[:2] == ("False", "NotReached")
        assert after("void")[:2] == ("Unknown", "AwaitingApproval")

    def test_what_isn_t_wanted_isn_t_awaited(self) -> None:
        view = Story({"publication": {"enabled": False}}).add(admit())

        assert condition(view, "Approved")[:2] == ("False", "NotWanted")
        assert condition(view, "Published")[:2] == ("False", "NotWanted")

    def test_a_pull_request_stays_when_the_cancel_came_too_late(self) -> None:
        story = published()
        before = condition(story.view, "Published")
        story.raw["spec"]["cancel"] = True
        late = condition(story.add(), "Published")

        assert before[:2] == ("True", "PullRequestOpen")
        assert late[:2] == ("True", "CancelTooLate")

    def test_suspension_waits_for_the_step_in_hand(self) -> None:
        story = Story({"suspend": True})
        queued = story.add(admit())
        running = story.add(pod("a1"))
        ended = story.add(outcome("cancelled"))

        assert condition(queued, "Suspended")[:2] == ("True", "SuspendRequested")
        assert queued.status["phase"] == "Suspended"
        assert condition(running, "Suspended") == (
            "False",
            "NotSuspended",
            "stops after the step in hand",
        )
        assert condition(ended, "Suspended")[0] == "False"

    def test_conflict_shows_expected_and_observed(self) -> None:
        story = Story()
        story.add(admit(), pod("a1"))
        conflict = {"conflict": "foreign_pod", "expected": "ours", "observed": "theirs"}
        plain = story.add(draft("a1", "attempt", "conflict", **conflict))
        named = Story()
        named.add(admit())
        view = named.add(
            draft(
                "outcome",
                "outcome",
                "done",
                {"evidence": sha("e")},
                outcome="cluster_conflict",
                **conflict,
            )
        )

        assert plain.status["conflict"] == {
            "kind": "ForeignPod",
            "expected": "ours",
            "observed": "theirs",
            "evidence": ["entry a1"],
        }
        assert condition(plain, "Conflict")[:2] == ("True", "ForeignPod")
        assert view.status["conflict"]["evidence"] == ["entry outcome", f"artifact {sha('e')}"]

    @pytest.mark.parametrize(
        ("isolation", "said"),
        [("none", "the pod's network"), ("network-namespace", "checks have no network")],
    )
    def test_every_inline_run_says_so(self, isolation: str, said: str) -> None:
        """H7: with sandbox Inline the run says so in a condition, also when checks are cut off."""
        story = Story()
        story.add(admit(), pod("a1"), pod("a1", "done"))
        bare = draft(
            "profile/1",
            "profile",
            "done",
            {"context": sha("c")},
            configHash="d" * 64,
            ecosystem="Python",
            isolation=isolation,
        )
        view = story.add(incarnation("a1", 1), TO_FROZEN[1], bare, epoch=1)

        status, reason, message = condition(view, "NotIsolated")[:3]
        assert (status, reason) == ("True", "InlineSandbox")
        assert said in message

    def test_times_change_with_the_status_only(self) -> None:
        story = Story()
        story.add(admit())
        view = story.add(pod("a1"), now=LATER)
        ended = story.add(outcome("cancelled"), now=LATER)

        def at(run: RunView, kind: str) -> Any:
            return next(c for c in run.status["conditions"] if c["type"] == kind)[
                "lastTransitionTime"
            ]

        assert at(view, "Succeeded") == NOW
        assert at(ended, "BaselineValidated") == LATER


class TestParts:
    """Blocks beside the conditions."""

    def test_base_comes_from_admission_until_it_is_fixed(self) -> None:
        assert "base" not in Story().add(admit()).status
        assert Story().add(admit(baseCommit=git_id("e"))).status["base"] == {"commit": git_id("e")}

    def test_publication_follows_the_delivery(self) -> None:
        assert published().view.status["publication"] == {
            "deliveryAttempt": 1,
            "podName": "run-d1",
            "podUID": "7c9e6679-7425-40de-944b-e07fc1f90ae7-d1",
            "branch": "upgraderun/requests-2.32.0",
            "commit": git_id("d"),
            "pullRequest": {
                "number": 7,
                "url": "https://git.example/team/app/pull/7",
                "state": "open",
            },
        }

    def test_a_push_shows_before_any_publisher(self) -> None:
        view = asked().add(answer("approved"), push())

        assert view.status["publication"] == {
            "branch": "upgraderun/requests-2.32.0",
            "commit": git_id("d"),
        }

    def test_a_publisher_shows_before_any_push(self) -> None:
        view = asked().add(answer("approved"), pod("d1"))

        assert view.status["publication"] == {"deliveryAttempt": 1, "podName": "run-d1"}

    def test_no_run_but_a_planned_one_has_an_attempt(self) -> None:
        assert "attempt" not in Story().add(admit()).status


@pytest.mark.parametrize(
    "view",
    [
        Story().add(admit()),
        Story().run_to_frozen(),
        asked().view,
        published().view,
        published().add(outcome("proposal_published"), FINALIZED),
    ],
    ids=["queued", "frozen", "asked", "published", "finished"],
)
def test_a_projected_status_is_what_the_kind_says(view: RunView) -> None:
    """Nothing of ours is pruned or refused by the CRD: the model reads it back whole."""
    status = dict(view.status)
    model = UpgradeRunStatus.model_validate(status)

    back = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert back == {**status, "journal": back["journal"]}
    assert len(back["journal"]["entries"]) == len(status["journal"]["entries"])
    for each in status["conditions"]:
        assert each["reason"] in REASONS
