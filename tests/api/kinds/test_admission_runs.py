"""Admission of runs: who requests, who writes what (security.md §11, H23)."""

from collections.abc import Callable
from typing import Any

import pytest

from support.chart import OPERATOR
from support.kinds import ALICE, Kinds, policy, report, run
from support.kube import Kube

REQUESTED_BY = "upgraderun.dev/requested-by"
FINALIZER = "upgraderun.dev/world"


@pytest.fixture
def alice(bind: Callable[[str, str, str], Kube], namespace: str) -> Kube:
    """A user with the shipped editor role."""
    return bind(ALICE, "upgraderun-editor", namespace)


@pytest.fixture
def stored(alice: Kube, namespace: str) -> dict[str, Any]:
    """A run as the server stored it."""
    answer = alice.create(run(namespace))
    assert answer.ok, answer.message
    return dict(answer.body)


class TestRequester:
    """§11.1: requested-by equals the caller, and never changes."""

    def test_the_caller_may_say_so_by_hand(self, stored: dict[str, Any]) -> None:
        assert ALICE == stored["metadata"]["annotations"][REQUESTED_BY]

    def test_the_server_fills_it_in_where_it_can(self, alice: Kube, namespace: str) -> None:
        answer = alice.create(run(namespace, requested_by=None))

        assert answer.ok, answer.message
        assert ALICE == answer.body["metadata"]["annotations"][REQUESTED_BY]

    def test_somebody_elses_name_is_refused_with_the_line_to_write(
        self, alice: Kube, namespace: str
    ) -> None:
        answer = alice.create(run(namespace, requested_by="bob@example.com"))

        assert 403 == answer.status
        assert 'says "bob@example.com", but you are "alice@example.com"' in answer.message
        assert f'{REQUESTED_BY}: "{ALICE}"' in answer.message

    def test_the_impersonated_name_is_the_one_that_counts(
        self, kinds: Kinds, namespace: str
    ) -> None:
        carol = kinds.admin.as_user("carol@example.com", ("system:masters",))

        answer = carol.create(run(namespace, requested_by=None))

        assert "carol@example.com" == answer.body["metadata"]["annotations"][REQUESTED_BY]

    @pytest.mark.parametrize("value", ["bob@example.com", None])
    def test_it_never_changes(self, alice: Kube, stored: dict[str, Any], value: str | None) -> None:
        answer = alice.merge(stored, {"metadata": {"annotations": {REQUESTED_BY: value}}})

        assert 403 == answer.status
        assert "requested-by and requester never change" in answer.message

    def test_a_service_account_may_request(self, kinds: Kinds, namespace: str) -> None:
        """A pipeline or a GitOps tool is a requester like any other."""
        name = "system:serviceaccount:argocd:controller"
        tool = kinds.admin.as_user(name, ("system:masters",))

        answer = tool.create(run(namespace, requested_by=name))

        assert answer.ok, answer.message


class TestRequesterWithoutMutation:
    """DESIGN §9: elsewhere the annotation must be there, and the refusal shows the line to add."""

    def test_the_refusal_shows_the_very_line(
        self, plain_kinds: Kinds, plain_namespace: str
    ) -> None:
        alice = plain_kinds.admin.as_user(ALICE, ("system:masters",))

        answer = alice.create(run(plain_namespace, requested_by=None))

        assert 422 == answer.status
        assert f'apply again: {REQUESTED_BY}: "{ALICE}"' in answer.message

    def test_the_shown_line_is_accepted(self, plain_kinds: Kinds, plain_namespace: str) -> None:
        alice = plain_kinds.admin.as_user(ALICE, ("system:masters",))

        refused = alice.create(run(plain_namespace, requested_by=None))
        line = refused.message.rpartition("apply again: ")[2]
        name, _, value = line.partition(": ")
        wish = run(plain_namespace, requested_by=None)
        wish["metadata"]["annotations"] = {name: value.strip('"')}
        answer = alice.create(wish)

        assert answer.ok, answer.message

    def test_somebody_elses_name_is_refused(self, plain_kinds: Kinds, plain_namespace: str) -> None:
        alice = plain_kinds.admin.as_user(ALICE, ("system:masters",))

        answer = alice.create(run(plain_namespace, requested_by="bob@example.com"))

        assert 403 == answer.status


class TestOwnership:
    """H23: only the operator writes status, our finalizer, our labels and annotations."""

    @pytest.mark.parametrize("groups", [(), ("system:masters",)], ids=["editor", "cluster admin"])
    def test_status_is_refused_to_people(
        self, kinds: Kinds, alice: Kube, stored: dict[str, Any], groups: tuple[str, ...]
    ) -> None:
        user = kinds.admin.as_user(ALICE, groups) if groups else alice

        answers = [
            user.replace({**stored, "status": {"phase": "Finished"}}, "status"),
            user.merge(stored, {"status": {"finished": True}}, "status"),
        ]

        assert [403, 403] == [answer.status for answer in answers]
        if groups:
            assert all("written by the operator only" in answer.message for answer in answers)

    def test_status_in_a_plain_update_changes_nothing(
        self, kinds: Kinds, alice: Kube, stored: dict[str, Any]
    ) -> None:
        answer = alice.merge(stored, {"status": {"finished": True}})

        assert answer.ok, answer.message
        assert {"observedGeneration": 0} == kinds.admin.get(stored)["status"]

    @pytest.mark.parametrize("part", ["labels", "annotations"])
    def test_our_names_are_refused_on_create(self, alice: Kube, namespace: str, part: str) -> None:
        wish = run(namespace)
        wish["metadata"].setdefault(part, {})["upgraderun.dev/run-uid"] = "x"

        answer = alice.create(wish)

        assert 403 == answer.status
        assert f"metadata.{part}: names below upgraderun.dev/" in answer.message

    @pytest.mark.parametrize("part", ["labels", "annotations"])
    def test_our_names_are_refused_on_update(
        self, kinds: Kinds, alice: Kube, stored: dict[str, Any], part: str
    ) -> None:
        name = "upgraderun.dev/run-uid"
        assert kinds.operator.replace(with_name(stored, part, name, "ours")).ok

        answers = [
            alice.merge(stored, {"metadata": {part: {"upgraderun.dev/other": "x"}}}),
            alice.merge(stored, {"metadata": {part: {name: "theirs"}}}),
            alice.merge(stored, {"metadata": {part: {name: None}}}),
        ]

        assert [403, 403, 403] == [answer.status for answer in answers]

    def test_everything_else_may_change_beside_our_names(
        self, kinds: Kinds, alice: Kube, stored: dict[str, Any]
    ) -> None:
        name = "upgraderun.dev/run-uid"
        assert kinds.operator.replace(with_name(stored, "labels", name, "ours")).ok

        answer = alice.merge(
            stored,
            {"metadata": {"labels": {"team": "blue"}, "annotations": {"note": "x"}}},
        )

        assert answer.ok, answer.message

    def test_our_finalizer_is_refused_to_people(
        self, kinds: Kinds, alice: Kube, stored: dict[str, Any]
    ) -> None:
        added = alice.merge(stored, {"metadata": {"finalizers": [FINALIZER]}})
        assert kinds.operator.replace(with_finalizers(stored, [FINALIZER])).ok
        removed = alice.merge(stored, {"metadata": {"finalizers": None}})

        assert [403, 403] == [added.status, removed.status]
        assert "docs/runbook.md" in removed.message

    def test_other_finalizers_are_free(self, alice: Kube, stored: dict[str, Any]) -> None:
        added = alice.merge(stored, {"metadata": {"finalizers": ["example.com/hold"]}})
        removed = alice.merge(stored, {"metadata": {"finalizers": None}})

        assert added.ok, added.message
        assert removed.ok, removed.message

    def test_reports_are_refused_to_people(self, kinds: Kinds, namespace: str) -> None:
        admin = kinds.admin
        created = admin.create(report(namespace))
        assert kinds.operator.create(report(namespace)).ok
        changed = admin.merge(report(namespace), {"patch": "mine"})

        assert [403, 403] == [created.status, changed.status]
        assert "upgradereports: written by the operator only" in created.message


def with_name(obj: dict[str, Any], part: str, name: str, value: str) -> dict[str, Any]:
    """The object with one more label or annotation."""
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, part: {**metadata.get(part, {}), name: value}}}


def with_finalizers(obj: dict[str, Any], finalizers: list[str]) -> dict[str, Any]:
    """The object with these finalizers."""
    return {**obj, "metadata": {**obj["metadata"], "finalizers": finalizers}}


class TestOperator:
    """H23: the operator itself can't change `spec`; what it must do, it can."""

    def test_its_change_of_spec_is_refused(self, kinds: Kinds, stored: dict[str, Any]) -> None:
        changed = {**stored, "spec": {**stored["spec"], "cancel": True}}

        answer = kinds.operator.replace(changed)

        assert 403 == answer.status
        assert "the operator never changes what a user asked for" in answer.message

    def test_it_writes_status_and_finalizer(self, kinds: Kinds, stored: dict[str, Any]) -> None:
        finalizer = kinds.operator.replace(with_finalizers(stored, [FINALIZER]))
        status = kinds.operator.replace({**finalizer.body, "status": {"phase": "Queued"}}, "status")

        assert finalizer.ok, finalizer.message
        assert status.ok, status.message

    def test_an_account_of_the_same_name_elsewhere_is_a_stranger(
        self, kinds: Kinds, stored: dict[str, Any]
    ) -> None:
        stranger = kinds.admin.as_user(
            OPERATOR.replace("upgraderun-system", "default"), ("system:masters",)
        )

        answer = stranger.replace({**stored, "status": {"phase": "Queued"}}, "status")

        assert 403 == answer.status


class TestUnrelatedKinds:
    """H24: our policies match no other kind but pods that carry our labels."""

    def test_a_config_map_with_our_label_is_left_alone(self, kinds: Kinds, namespace: str) -> None:
        labels = {"upgraderun.dev/role": "runner"}
        answer = kinds.admin.create(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "c", "namespace": namespace, "labels": labels},
            }
        )

        assert answer.ok, answer.message

    def test_a_policy_needs_no_requester(self, kinds: Kinds, namespace: str) -> None:
        assert kinds.admin.create(policy(namespace)).ok
