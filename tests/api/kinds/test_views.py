"""What people see: kubectl's table, explain, field selectors, conditions to wait for."""

from typing import Any

from support.kinds import ALICE, DIGEST, RUN_UID, Kinds, approval, run

CONDITIONS = [
    {
        "type": name,
        "status": status,
        "reason": "Published",
        "message": "done",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    for name, status in (("Succeeded", "True"), ("Approved", "True"))
]
STATUS: dict[str, Any] = {
    "phase": "Finished",
    "outcome": "Published",
    "finished": True,
    "target": {"name": "markupsafe", "from": "2.1.4", "to": "2.1.5"},
    "attempt": {"number": 2},
    "publication": {
        "pullRequest": {
            "number": 17,
            "url": "https://forge.example/team/app/pull/17",
            "state": "open",
        }
    },
    "durationSeconds": 312,
    "conditions": CONDITIONS,
}


def create(kinds: Kinds, namespace: str, name: str, status: dict[str, Any] | None = None) -> None:
    alice = kinds.admin.as_user(ALICE, ("system:masters",))
    answer = alice.create(run(namespace, name))
    assert answer.ok, answer.message
    if status is not None:
        answer = kinds.operator.replace({**answer.body, "status": status}, "status")
        assert answer.ok, answer.message


def names(kinds: Kinds, namespace: str, selector: str) -> list[str]:
    answer = kinds.admin.send(
        "GET",
        f"/apis/upgraderun.dev/v1alpha1/namespaces/{namespace}/upgraderuns",
        fieldSelector=selector,
    )
    assert answer.ok, answer.message
    return sorted(item["metadata"]["name"] for item in answer.body["items"])


class TestKubectl:
    """DESIGN §3: `kubectl get runs`, `-o wide`, `wait`, `explain`."""

    def test_get_runs_shows_the_columns(self, kinds: Kinds, namespace: str) -> None:
        create(kinds, namespace, "done", STATUS)

        header, row = kinds.server.kubectl("get", "runs", "-n", namespace).splitlines()

        assert [
            "NAME",
            "PHASE",
            "DEPENDENCY",
            "FROM",
            "TO",
            "APPROVED",
            "PR",
            "AGE",
        ] == header.split()
        assert ["done", "Finished", "markupsafe", "2.1.4", "2.1.5", "True", "17"] == row.split()[
            :-1
        ]

    def test_get_runs_wide_shows_more(self, kinds: Kinds, namespace: str) -> None:
        create(kinds, namespace, "done", STATUS)

        header, row = kinds.server.kubectl("get", "run", "-n", namespace, "-o", "wide").splitlines()

        assert ["REPOSITORY", "ATTEMPT", "OUTCOME", "DURATION"] == header.split()[-4:]
        assert ["https://forge.example/team/app", "2", "Published", "312"] == row.split()[-4:]

    def test_wait_for_success_returns(self, kinds: Kinds, namespace: str) -> None:
        create(kinds, namespace, "done", STATUS)

        told = kinds.server.kubectl(
            "wait", "-n", namespace, "--for=condition=Succeeded", "--timeout=10s", "run/done"
        )

        assert "upgraderun.upgraderun.dev/done condition met" == told.strip()

    def test_wait_for_the_end_returns_whatever_it_is(self, kinds: Kinds, namespace: str) -> None:
        """A wait for success would last its whole timeout here."""
        create(kinds, namespace, "refused", {"outcome": "Unsupported", "finished": True})
        end = "--for=jsonpath={.status.finished}=true"

        told = kinds.server.kubectl("wait", "-n", namespace, end, "--timeout=10s", "run/refused")

        assert "upgraderun.upgraderun.dev/refused condition met" == told.strip()

    def test_explain_tells_what_a_field_means(self, kinds: Kinds) -> None:
        told = kinds.server.kubectl("explain", "upgraderun.spec.upgrade.allowMajor")

        assert "Whether a major upgrade is eligible." in told

    def test_the_category_lists_all_kinds(self, kinds: Kinds, namespace: str) -> None:
        create(kinds, namespace, "done", STATUS)

        told = kinds.server.kubectl("get", "upgrades", "-n", namespace, "-o", "name")

        assert ["upgraderun.upgraderun.dev/done"] == told.split()


class TestSelectors:
    """DESIGN §6: kopf watches `status.finished!=true`; the gauge lists `status.conflict.kind!=`."""

    def test_unfinished_runs_are_those_without_the_mark(self, kinds: Kinds, namespace: str) -> None:
        create(kinds, namespace, "done", STATUS)
        create(kinds, namespace, "live", {"phase": "Baseline"})
        create(kinds, namespace, "fresh")

        assert ["fresh", "live"] == names(kinds, namespace, "status.finished!=true")
        assert ["done"] == names(kinds, namespace, "status.finished=true")

    def test_runs_in_conflict_are_found_by_kind(self, kinds: Kinds, namespace: str) -> None:
        conflict = {"kind": "foreign_branch", "expected": "absent", "observed": "there"}
        create(kinds, namespace, "stopped", {"conflict": conflict})
        create(kinds, namespace, "fresh")

        assert ["stopped"] == names(kinds, namespace, "status.conflict.kind!=")
        assert ["stopped"] == names(kinds, namespace, "status.conflict.kind=foreign_branch")

    def test_approvals_are_found_by_the_runs_uid(self, kinds: Kinds, namespace: str) -> None:
        bob = kinds.admin.as_user("bob@example.com", ("system:masters",))
        assert bob.create(approval(namespace)).ok
        path = f"/apis/upgraderun.dev/v1alpha1/namespaces/{namespace}/upgradeapprovals"

        found = kinds.admin.send("GET", path, fieldSelector=f"spec.runRef.uid={RUN_UID}")
        others = kinds.admin.send("GET", path, fieldSelector="spec.runRef.uid=another")

        assert [DIGEST] == [item["spec"]["digest"] for item in found.body["items"]]
        assert [] == others.body["items"]
