"""Objects from the API server's JSON to frozen values; manifests of ours without unknown fields."""

from typing import Any

import pytest
from pydantic import ValidationError

from upgraderun_operator.model.names import FINALIZER, REQUESTED_BY, REQUESTER
from upgraderun_operator.model.objects import (
    NotReadableError,
    UpgradeRun,
    parse_approval,
    parse_policy,
    parse_report,
    parse_run,
    strict,
)
from upgraderun_operator.model.run_spec import Ecosystem, Mode, Select

RUN: dict[str, Any] = {
    "apiVersion": "upgraderun.dev/v1alpha1",
    "kind": "UpgradeRun",
    "metadata": {"name": "wish", "namespace": "team", "uid": "u-1", "resourceVersion": "7"},
    "spec": {"repository": {"url": "https://forge.example/team/app"}},
}
APPROVAL: dict[str, Any] = {
    "metadata": {"name": "answer", "annotations": {REQUESTER: "alice"}},
    "spec": {
        "runRef": {"name": "wish", "uid": "u-1"},
        "digest": "a" * 64,
        "decision": "Approve",
        "approver": "bob",
    },
}


def with_metadata(**metadata: Any) -> dict[str, Any]:
    return {**RUN, "metadata": {**RUN["metadata"], **metadata}}


class TestRun:
    """DESIGN §3: what a run says, with its defaults."""

    def test_the_smallest_run_has_every_default(self) -> None:
        spec = parse_run(RUN).spec

        assert (Ecosystem.AUTO, Mode.RULES, Select.SMALLEST) == (
            spec.ecosystem,
            spec.mode,
            spec.upgrade.select,
        )
        assert (".", 21_600) == (spec.repository.directory, spec.active_deadline_seconds)
        assert not spec.suspend
        assert not spec.cancel

    def test_a_run_without_status_has_an_empty_one(self) -> None:
        status = parse_run(RUN).status

        assert status.finished is None
        assert {} == status.to_json()

    def test_the_policy_is_the_default_one_unless_named(self) -> None:
        named = {**RUN, "spec": {**RUN["spec"], "policyRef": {"name": "strict"}}}

        assert "default" == parse_run(RUN).spec.policy_name
        assert "strict" == parse_run(named).spec.policy_name

    def test_identity_is_uid_and_version(self) -> None:
        run = parse_run(RUN)

        assert ("u-1", "7") == (run.uid, run.resource_version)

    @pytest.mark.parametrize(
        ("annotations", "expected"),
        [({REQUESTED_BY: "alice"}, "alice"), ({REQUESTED_BY: ""}, None), ({}, None)],
    )
    def test_the_requester_is_the_annotation_or_unknown(
        self, annotations: dict[str, str], expected: str | None
    ) -> None:
        assert expected == parse_run(with_metadata(annotations=annotations)).requester

    def test_deletion_and_finalizer_are_seen(self) -> None:
        held = parse_run(
            with_metadata(deletionTimestamp="2026-01-01T00:00:00Z", finalizers=[FINALIZER])
        )

        assert held.metadata.is_being_deleted
        assert held.has_finalizer
        assert not parse_run(RUN).metadata.is_being_deleted
        assert not parse_run(RUN).has_finalizer

    def test_fields_of_a_newer_version_are_tolerated(self) -> None:
        newer = {**RUN, "spec": {**RUN["spec"], "messages": []}, "status": {"receipt": "x"}}

        assert parse_run(RUN).spec == parse_run(newer).spec

    def test_a_value_is_frozen(self) -> None:
        with pytest.raises(ValidationError, match="frozen"):
            parse_run(RUN).spec.suspend = True  # type: ignore[misc]  # that is the point

    def test_a_status_comes_back_as_it_was_read(self) -> None:
        status = {
            "target": {"name": "markupsafe", "from": "2.1.4", "to": "2.1.5"},
            "attempt": {"number": 1, "podUID": "p", "podName": "n"},
            "publication": {"pullRequest": {"number": 3, "url": "https://x/3", "state": "open"}},
        }

        assert status == parse_run({**RUN, "status": status}).status.to_json()


class TestRefusals:
    """What can't be read says where and why."""

    @pytest.mark.parametrize(
        ("spec", "words"),
        [
            ({}, "spec.repository: Field required"),
            ({"repository": {"url": "https://x/y/z"}, "mode": "Model"}, "spec.mode"),
            ({"repository": {"url": "x" * 600}}, "spec.repository.url"),
        ],
    )
    def test_a_run_that_is_none_names_the_field(self, spec: dict[str, Any], words: str) -> None:
        with pytest.raises(NotReadableError, match=words):
            parse_run({**RUN, "spec": spec})

    def test_a_policy_that_is_none_names_the_field(self) -> None:
        with pytest.raises(NotReadableError, match=r"spec\.repositories"):
            parse_policy({"metadata": {"name": "p"}, "spec": {}})

    def test_a_report_that_is_none_names_the_field(self) -> None:
        with pytest.raises(NotReadableError, match="outcome"):
            parse_report({"metadata": {"name": "r"}, "message": "x"})

    def test_strict_refuses_an_unknown_field(self) -> None:
        with pytest.raises(NotReadableError, match=r"spec\.image: Extra inputs"):
            strict({**RUN, "spec": {**RUN["spec"], "image": "x"}})

    def test_strict_takes_a_manifest_of_ours(self) -> None:
        assert isinstance(strict(RUN), UpgradeRun)

    @pytest.mark.parametrize("change", [{"kind": "Job"}, {"apiVersion": "batch/v1"}])
    def test_strict_refuses_other_kinds(self, change: dict[str, str]) -> None:
        with pytest.raises(NotReadableError, match="is no kind of"):
            strict({**RUN, **change})


class TestApproval:
    """upgrade-run.md §11: one answer to one digest."""

    def test_the_claim_is_the_annotation_or_absent(self) -> None:
        silent = {**APPROVAL, "metadata": {"name": "answer"}}

        assert "alice" == parse_approval(APPROVAL).claimed_requester
        assert parse_approval(silent).claimed_requester is None

    @pytest.mark.parametrize("digest", ["A" * 64, "a" * 63, ""])
    def test_a_digest_is_64_lower_case_hex_digits(self, digest: str) -> None:
        with pytest.raises(NotReadableError, match=r"spec\.digest"):
            parse_approval({**APPROVAL, "spec": {**APPROVAL["spec"], "digest": digest}})
