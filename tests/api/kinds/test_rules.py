"""CEL rules of the kinds on a real API server: what may change, what may never fall."""

from typing import Any

import pytest

from support.kinds import ALICE, DIGEST, Kinds, approval, policy, report, run
from support.kube import Kube

JOURNAL = {
    "format": 1,
    "entries": [],
    "head": {"seq": 4, "digest": DIGEST, "epoch": 2},
    "bytes": 300,
}
STATUS = {"journal": JOURNAL, "leaderEpoch": 7, "phase": "Preparing"}


@pytest.fixture
def alice(kinds: Kinds) -> Kube:
    """A user with every right of RBAC, so that only the kinds' rules speak."""
    return kinds.admin.as_user(ALICE, ("system:masters",))


@pytest.fixture
def stored(kinds: Kinds, alice: Kube, namespace: str) -> dict[str, Any]:
    """A run with a status, as the operator left it."""
    answer = alice.create(run(namespace, limits={"steps": 9}))
    assert answer.ok, answer.message
    answer = kinds.operator.replace({**answer.body, "status": STATUS}, "status")
    assert answer.ok, answer.message
    return dict(answer.body)


IMMUTABLE: dict[str, Any] = {
    "repository": {"url": "https://forge.example/team/other"},
    "ecosystem": "Python",
    "upgrade": {"allowMajor": True},
    "mode": "Baseline",
    "limits": {"steps": 8},
    "publication": {"draft": True},
    "policyRef": {"name": "another"},
    "activeDeadlineSeconds": 7200,
}


class TestRunSpec:
    """H20: spec immutable as DESIGN lists: except suspend and cancel."""

    @pytest.mark.parametrize("field", IMMUTABLE)
    def test_a_wish_never_changes(self, alice: Kube, stored: dict[str, Any], field: str) -> None:
        answer = alice.merge(stored, {"spec": {field: IMMUTABLE[field]}})

        assert 422 == answer.status
        assert f"spec.{field} can't change once the run is created" in answer.message
        assert "create a new UpgradeRun" in answer.message

    @pytest.mark.parametrize("field", ["limits", "repository"])
    def test_a_wish_never_vanishes(self, alice: Kube, stored: dict[str, Any], field: str) -> None:
        answer = alice.merge(stored, {"spec": {field: None}})

        assert 422 == answer.status

    @pytest.mark.parametrize(
        "change",
        [
            {"suspend": True},
            {"cancel": True},
            {"suspend": True, "cancel": True},
        ],
    )
    def test_what_steers_a_run_may_change_and_change_back(
        self, alice: Kube, stored: dict[str, Any], change: dict[str, Any]
    ) -> None:
        there = alice.merge(stored, {"spec": change})
        back = alice.merge(stored, {"spec": dict.fromkeys(change)})

        assert there.ok, there.message
        assert back.ok, back.message

    def test_labels_of_its_own_may_change(self, alice: Kube, stored: dict[str, Any]) -> None:
        assert alice.merge(stored, {"metadata": {"labels": {"team": "blue"}}}).ok

    def test_defaults_are_filled_in(self, kinds: Kinds, stored: dict[str, Any]) -> None:
        spec = kinds.admin.get(stored)["spec"]

        assert {
            "repository": {"url": "https://forge.example/team/app", "directory": "."},
            "ecosystem": "Auto",
            "upgrade": {"select": "Smallest", "allowMajor": False},
            "mode": "Rules",
            "limits": {"steps": 9},
            "publication": {"enabled": True, "draft": False, "labels": [], "reviewers": []},
            "suspend": False,
            "cancel": False,
            "activeDeadlineSeconds": 21600,
        } == spec


def with_head(**head: Any) -> dict[str, Any]:
    return {**STATUS, "journal": {**JOURNAL, "head": {**JOURNAL["head"], **head}}}  # type: ignore[dict-item]  # the head is a map


class TestRunStatus:
    """DESIGN §3: head.seq, head.epoch, leaderEpoch never fall or vanish; nor does the status (H23)."""

    @pytest.mark.parametrize(
        ("status", "words"),
        [
            (with_head(seq=3), "status.journal.head.seq"),
            (with_head(epoch=1), "status.journal.head.epoch"),
            ({**STATUS, "leaderEpoch": 6}, "status.leaderEpoch"),
            ({"journal": JOURNAL}, "status.leaderEpoch"),
            ({"leaderEpoch": 7}, "status.journal.head.seq"),
            (None, "status.journal.head.seq"),  # without a status, its default stands there
        ],
        ids=["seq", "epoch", "leader epoch", "no leader epoch", "no journal", "no status"],
    )
    def test_nothing_falls_or_vanishes(
        self, kinds: Kinds, stored: dict[str, Any], status: Any, words: str
    ) -> None:
        changed = {**stored, "status": status}
        if status is None:
            del changed["status"]

        answer = kinds.operator.replace(changed, "status")

        assert 422 == answer.status
        assert words in answer.message

    @pytest.mark.parametrize(
        "status",
        [STATUS, with_head(seq=5), with_head(seq=5, epoch=3), {**STATUS, "leaderEpoch": 8}],
        ids=["equal", "seq", "seq and epoch", "leader epoch"],
    )
    def test_what_stays_or_rises_is_taken(
        self, kinds: Kinds, stored: dict[str, Any], status: dict[str, Any]
    ) -> None:
        answer = kinds.operator.replace({**stored, "status": status}, "status")

        assert answer.ok, answer.message
        assert status == answer.body["status"]

    def test_a_journal_comes_back_as_it_was_written(
        self, kinds: Kinds, stored: dict[str, Any]
    ) -> None:
        """The API server drops what the schema doesn't know: an entry must survive whole."""
        entry = {
            "seq": 5,
            "id": "s12/promotion",
            "kind": "promotion",
            "state": "intent",
            "at": "2026-01-01T00:00:00Z",
            "attempt": "a1",
            "epoch": 2,
            "data": {"promotes": "upgrade", "name": "markupsafe"},
            "artifacts": {"plan": DIGEST},
        }
        journal = {
            **JOURNAL,
            "entries": [entry],
            "head": {"seq": 5, "digest": DIGEST, "epoch": 2},
            "compacted": {"count": 4, "seq": 4, "digest": DIGEST, "segments": [DIGEST]},
        }

        answer = kinds.operator.replace(
            {**stored, "status": {**STATUS, "journal": journal}}, "status"
        )

        assert answer.ok, answer.message
        assert journal == answer.body["status"]["journal"]


class TestOtherKinds:
    """UpgradeApproval is immutable (§11.4); a policy keeps soft below hard."""

    @pytest.mark.parametrize(
        "change",
        [
            {"digest": "b" * 64},
            {"decision": "Reject"},
            {"approver": "carol@example.com"},
            {"comment": "on second thought"},
            {"runRef": {"name": "other"}},
        ],
    )
    def test_an_approval_never_changes(
        self, kinds: Kinds, namespace: str, change: dict[str, Any]
    ) -> None:
        bob = kinds.admin.as_user("bob@example.com", ("system:masters",))
        created = bob.create(approval(namespace))
        assert created.ok, created.message

        answer = bob.merge(created.body, {"spec": change})

        assert 422 == answer.status
        assert "an approval never changes; delete it to take it back" in answer.message

    def test_a_policy_may_change(self, kinds: Kinds, namespace: str) -> None:
        created = kinds.admin.create(policy(namespace))
        assert created.ok, created.message

        answer = kinds.admin.merge(created.body, {"spec": {"scope": {"softFiles": 5}}})

        assert answer.ok, answer.message

    def test_a_policys_defaults_are_filled_in(self, kinds: Kinds, namespace: str) -> None:
        answer = kinds.admin.create(policy(namespace))

        assert answer.ok, answer.message
        assert 259200 == answer.body["spec"]["selection"]["minimumReleaseAgeSeconds"]
        assert "Deny" == answer.body["spec"]["approvals"]["selfApproval"]
        assert 90 == answer.body["spec"]["recovery"]["lossGraceSeconds"]

    def test_names_longer_than_a_label_are_refused_for_runs_and_reports(
        self, kinds: Kinds, alice: Kube, namespace: str
    ) -> None:
        long = "n" * 64

        answers = [
            alice.create(run(namespace, long)),
            kinds.operator.create(report(namespace, long)),
        ]

        assert [422, 422] == [answer.status for answer in answers]
        assert all("at most 63 characters" in answer.message for answer in answers)
