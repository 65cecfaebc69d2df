"""Admission of approvals: bound to their creator, never by the requester (H24, §11)."""

from collections.abc import Callable

import pytest

from support.kinds import ALICE, BOB, Kinds, approval
from support.kube import Kube

ROBOT = "system:serviceaccount:ci:robot"


@pytest.fixture
def bob(bind: Callable[[str, str, str], Kube], namespace: str) -> Kube:
    """A user with the shipped approver role."""
    return bind(BOB, "upgraderun-approver", namespace)


class TestApprover:
    """H24, its ten cases, and one unrelated kind (`TestUnrelatedKinds` beside the runs)."""

    def test_the_right_user_is_admitted(self, bob: Kube, namespace: str) -> None:
        answer = bob.create(approval(namespace))

        assert answer.ok, answer.message

    def test_another_name_is_refused_with_the_line_to_write(
        self, bob: Kube, namespace: str
    ) -> None:
        answer = bob.create(approval(namespace, approver="carol@example.com"))

        assert 403 == answer.status
        assert '"carol@example.com" is not you' in answer.message
        assert f'write spec.approver: "{BOB}"' in answer.message

    def test_ones_own_run_is_refused(self, bob: Kube, namespace: str) -> None:
        answer = bob.create(approval(namespace, requester=BOB))

        assert 403 == answer.status
        assert f'"{BOB}" requested the run and can not approve it' in answer.message
        assert namespace in answer.message

    def test_a_service_account_is_refused(self, kinds: Kinds, namespace: str) -> None:
        robot = kinds.admin.as_user(ROBOT, ("system:masters",))

        answer = robot.create(approval(namespace, approver=ROBOT))

        assert 403 == answer.status
        assert "approvals are given by people" in answer.message
        assert "admission.approverServiceAccounts" in answer.message

    @pytest.mark.parametrize(
        "change", [{"digest": "b" * 64}, {"approver": "carol@example.com"}], ids=str
    )
    def test_nothing_changes_on_update(
        self, kinds: Kinds, bob: Kube, namespace: str, change: dict[str, str]
    ) -> None:
        created = bob.create(approval(namespace))
        masters = kinds.admin.as_user(BOB, ("system:masters",))

        by_role = bob.merge(created.body, {"spec": change})
        by_rule = masters.merge(created.body, {"spec": change})

        assert [403, 422] == [by_role.status, by_rule.status]

    def test_a_missing_requester_is_refused(self, bob: Kube, namespace: str) -> None:
        answer = bob.create(approval(namespace, requester=None))

        assert 422 == answer.status
        assert "add upgraderun.dev/requester with the value of the run's annotation" in (
            answer.message
        )

    def test_a_false_requester_is_admitted_and_left_to_the_operator(
        self, bob: Kube, namespace: str
    ) -> None:
        """§11.3: admission can't read the run, so the annotation is a claim."""
        answer = bob.create(approval(namespace, requester="nobody@example.com"))

        assert answer.ok, answer.message

    def test_the_claim_never_changes(self, kinds: Kinds, bob: Kube, namespace: str) -> None:
        created = bob.create(approval(namespace))
        masters = kinds.admin.as_user(BOB, ("system:masters",))
        changed = {"metadata": {"annotations": {"upgraderun.dev/requester": "carol@example.com"}}}

        answer = masters.merge(created.body, changed)

        assert 403 == answer.status
        assert "requester never change" in answer.message

    def test_the_impersonated_name_is_the_one_that_counts(
        self, kinds: Kinds, namespace: str
    ) -> None:
        carol = kinds.admin.as_user("carol@example.com", ("system:masters",))

        answers = [
            carol.create(approval(namespace, "as-bob")),
            carol.create(approval(namespace, "as-carol", approver="carol@example.com")),
        ]

        assert [403, 201] == [answer.status for answer in answers]

    def test_a_reject_after_an_approve_is_admitted(self, bob: Kube, namespace: str) -> None:
        first = bob.create(approval(namespace, "yes"))
        second = bob.create(approval(namespace, "no", decision="Reject", comment="the log"))

        assert first.ok, first.message
        assert second.ok, second.message

    def test_the_approver_may_take_an_answer_back(self, bob: Kube, namespace: str) -> None:
        created = bob.create(approval(namespace))

        assert bob.delete(created.body).ok

    def test_the_requester_has_no_right_to_approve_by_the_editor_role(
        self, bind: Callable[[str, str, str], Kube], namespace: str
    ) -> None:
        alice = bind(ALICE, "upgraderun-editor", namespace)

        answer = alice.create(approval(namespace, requester="x", approver=ALICE))

        assert 403 == answer.status
        assert 'cannot create resource "upgradeapprovals"' in answer.message


class TestWithoutMutation:
    """The same policies decide on a server without MutatingAdmissionPolicy."""

    def test_right_and_wrong_are_told_apart(self, plain_kinds: Kinds, plain_namespace: str) -> None:
        bob = plain_kinds.admin.as_user(BOB, ("system:masters",))

        answers = [
            bob.create(approval(plain_namespace)),
            bob.create(approval(plain_namespace, "other", approver="carol@example.com")),
            bob.create(approval(plain_namespace, "own", requester=BOB)),
            bob.create(approval(plain_namespace, "silent", requester=None)),
        ]

        assert [201, 403, 403, 422] == [answer.status for answer in answers]
