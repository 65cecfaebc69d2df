"""The report: from the runner's record to the fields that people read, digest included."""

import pytest

from upgraderun_operator.model.objects import parse_report
from upgraderun_operator.model.report import (
    Capability,
    CheckState,
    ReportDestination,
    content_of,
)
from upgraderun_protocol.approvals import presentation_digest
from upgraderun_protocol.report import ReportCheck, ReportRecord, ReportTarget

RECORD = ReportRecord(
    version=1,
    outcome="proposal_prepared",
    message="frozen",
    target=ReportTarget("markupsafe", "2.1.4", "2.1.5"),
    patch="--- a\n+++ b\n",
    checks=(ReportCheck("test", "pass", (), "3 passed"), ReportCheck("lint", "absent", (), "")),
    notes=("nothing else moved",),
    counts={"eligible": 1},
)
CAPABILITY = Capability(
    type="Publication",
    proposal_digest="a" * 64,
    commit="b" * 40,
    tree="c" * 40,
    base="d" * 40,
    destination=ReportDestination(
        host="forge.example", repository="team/app", base_branch="main", branch="upgraderun/x"
    ),
    draft=False,
)


class TestContent:
    """DESIGN §3, UpgradeReport."""

    def test_names_are_those_of_the_api(self) -> None:
        content = content_of(RECORD, CAPABILITY).to_json()

        assert "ProposalPrepared" == content["outcome"]
        assert {"name": "markupsafe", "from": "2.1.4", "to": "2.1.5"} == content["target"]
        assert ["Pass", "Absent"] == [check["state"] for check in content["checks"]]
        assert "d" * 40 == content["capability"]["base"]

    def test_a_run_without_target_has_none(self) -> None:
        content = content_of(ReportRecord(1, "no_candidate", "nothing newer"), None).to_json()

        assert "target" not in content
        assert "capability" not in content
        assert "NoCandidate" == content["outcome"]

    def test_an_unknown_state_is_no_report(self) -> None:
        record = ReportRecord(1, "failed", "x", checks=(ReportCheck("t", "odd", (), ""),))

        with pytest.raises(ValueError, match="Odd"):
            content_of(record, None)

    def test_every_state_has_its_spelling(self) -> None:
        assert ["absent", "error", "fail", "pass", "timeout"] == sorted(
            state.value.lower() for state in CheckState
        )


class TestDigest:
    """upgrade-run.md §11: what is shown is what is asked."""

    def test_anybody_can_compute_it_from_the_stored_object(self) -> None:
        content = content_of(RECORD, CAPABILITY)
        stored = {
            "apiVersion": "upgraderun.dev/v1alpha1",
            "kind": "UpgradeReport",
            "metadata": {"name": "wish"},
            **content.to_json(),
        }

        assert presentation_digest(stored) == content.presentation_sha256
        assert content.presentation_sha256 == parse_report(stored).presentation_sha256

    def test_it_changes_with_what_is_shown(self) -> None:
        shown = content_of(RECORD, CAPABILITY).presentation_sha256
        other = CAPABILITY.model_copy(update={"draft": True})

        assert shown != content_of(RECORD, other).presentation_sha256
        assert shown != content_of(RECORD, None).presentation_sha256
