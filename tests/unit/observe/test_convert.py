"""From the API server's JSON to views; odd content counts as absent."""

from typing import Any

import pytest

from support.scenes import NOW, UID, at
from upgraderun_operator.answers import Denied, NotFound, Ok, Unknown
from upgraderun_operator.decide.readings import ABSENT, Unreadable
from upgraderun_operator.decide.views import Terminated, Waiting
from upgraderun_operator.model.objects import parse_approval
from upgraderun_operator.observe.answers import reading
from upgraderun_operator.observe.convert import (
    approval_view,
    child_view,
    owner_uid,
    pod_view,
    report_view,
)
from upgraderun_operator.observe.repository import FROZEN_ANNOTATION, frozen_targets
from upgraderun_protocol.redact import Redactor


def raw(status: Any = None, **metadata: Any) -> dict[str, Any]:
    owner = {"kind": "UpgradeRun", "uid": UID, "controller": True}
    known = {
        "name": "p",
        "uid": "u",
        "resourceVersion": "5",
        "creationTimestamp": at(-60),
        "ownerReferences": [{"uid": "other"}, owner],
        **metadata,
    }
    return {"metadata": known, "status": status or {}}


def pod(status: Any = None, **metadata: Any) -> Any:
    return pod_view(raw(status, **metadata), NOW, Redactor())


def contains(**state: Any) -> dict[str, Any]:
    return {"phase": "Running", "containerStatuses": [{"state": state}]}


READY = {"type": "Ready", "status": "False", "lastTransitionTime": at(-100)}


class TestPod:
    """What the kubelet and others wrote of a pod."""

    def test_without_status_is_pending(self) -> None:
        view = pod()
        assert (view.phase, view.container, view.silent_at) == ("Pending", None, None)
        assert view.owner_uid == UID

    @pytest.mark.parametrize(
        ("state", "expected"),
        [
            ({"running": {}}, "running"),
            ({"waiting": {"reason": "X", "message": "m"}}, Waiting("X", "m")),
            (
                {"terminated": {"exitCode": 3, "reason": "Error", "message": "m"}},
                Terminated(3, "Error", "m"),
            ),
            ({"terminated": {"reason": "Unknown"}}, Terminated(255, "Unknown", "")),
            ({}, None),
        ],
    )
    def test_shows_its_container(self, state: Any, expected: Any) -> None:
        assert expected == pod(contains(**state)).container

    def test_keeps_its_termination_message_and_redacts_the_rest(self) -> None:
        redactor = Redactor()
        redactor.register("canary-canary")
        waiting = contains(waiting={"message": "canary-canary"})
        assert "canary" not in str(pod_view(raw(waiting), NOW, redactor))
        ended = contains(terminated={"message": "canary-canary", "exitCode": 0})
        assert "canary" in str(pod_view(raw(ended), NOW, redactor))

    @pytest.mark.parametrize(
        "status",
        [
            {"conditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {"reason": "Evicted"},
        ],
    )
    def test_was_disrupted(self, status: Any) -> None:
        assert pod(status).disrupted
        assert not pod({"conditions": [{"type": "DisruptionTarget", "status": "False"}]}).disrupted

    def test_says_why_no_node_takes_it(self) -> None:
        condition = {"type": "PodScheduled", "status": "False", "message": "no cpu"}
        assert pod({"conditions": [condition]}).unschedulable == "no cpu"
        assert pod({"conditions": [{**condition, "status": "True"}]}).unschedulable is None


class TestSilence:
    """Three signs of a node that says nothing (runner-protocol.md §5.1)."""

    def test_by_the_node_controllers_mark(self) -> None:
        status = {**contains(running={}), "conditions": [READY]}
        assert pod(status).silent_at == at(-100)

    def test_isnt_a_container_that_hasnt_started(self) -> None:
        status = {**contains(waiting={}), "conditions": [READY]}
        assert pod(status).silent_at is None

    @pytest.mark.parametrize(
        ("conditions", "expected"),
        [([READY], at(-100)), ([{"type": "Ready", "status": "True"}], at(0)), ([], at(0))],
    )
    def test_by_phase_unknown(self, conditions: Any, expected: str) -> None:
        assert pod({"phase": "Unknown", "conditions": conditions}).silent_at == expected

    @pytest.mark.parametrize(("age", "expected"), [(59, None), (60, at(0)), (90, at(-30))])
    def test_by_a_deletion_without_an_end(self, age: float, expected: str | None) -> None:
        view = pod(contains(running={}), deletionTimestamp=at(-age))
        assert expected == view.silent_at

    @pytest.mark.parametrize(
        "status", [contains(terminated={"exitCode": 0}), {"phase": "Succeeded"}]
    )
    def test_isnt_a_deletion_with_an_end(self, status: Any) -> None:
        assert pod(status, deletionTimestamp=at(-90)).silent_at is None

    def test_isnt_a_deletion_whose_time_is_odd(self) -> None:
        assert pod(contains(running={}), deletionTimestamp="x").silent_at is None


def test_an_object_without_controller_has_no_owner() -> None:
    assert owner_uid({"metadata": {"ownerReferences": [{"uid": "x"}]}}) is None
    assert owner_uid({"metadata": {}}) is None


@pytest.mark.parametrize(("phase", "lost"), [("Lost", True), ("Bound", False)])
def test_children_are_read(phase: str, lost: bool) -> None:
    view = child_view(raw({"phase": phase}, deletionTimestamp=at(-1)))
    assert (view.uid, view.owner_uid, view.deleted_at, view.lost) == ("u", UID, at(-1), lost)


def test_reports_are_read() -> None:
    view = report_view({**raw(), "outcome": "NoCandidate"})
    assert (view.outcome, view.digest, view.version) == ("NoCandidate", None, "5")


def test_approvals_are_read() -> None:
    spec = {
        "runRef": {"name": "run", "uid": UID},
        "digest": "d" * 64,
        "decision": "Reject",
        "approver": "anna",
    }
    approval = parse_approval(
        {"metadata": {"name": "no", "uid": "u", "creationTimestamp": at(0)}, "spec": spec}
    )
    view = approval_view(approval)
    assert (view.approves, view.approver, view.requester, view.created_at) == (
        False,
        "anna",
        None,
        at(0),
    )


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Ok({"x": 1}), 1),
        (NotFound(), ABSENT),
        (Denied(403, "no"), Unreadable("cluster", "403 no")),
        (Unknown("timeout", 3.0), Unreadable("cluster", "timeout", 3.0)),
    ],
)
def test_an_answer_is_a_value_absent_or_unreadable(answer: Any, expected: Any) -> None:
    assert expected == reading(answer, lambda found: found["x"])


@pytest.mark.parametrize(
    ("text", "expected"), [('{"a/b/c":"lib@1"}', {"a/b/c": "lib@1"}), ("x", {}), ("[]", {})]
)
def test_frozen_targets_of_another_form_count_as_none(text: str, expected: Any) -> None:
    assert expected == frozen_targets({"metadata": {"annotations": {FROZEN_ANNOTATION: text}}})
    assert frozen_targets({"metadata": {}}) == {}
