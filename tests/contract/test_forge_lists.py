"""Lists, decoration and misbehaviour of the forge (reliability.md §3, upgrade-run.md §14)."""

from pathlib import Path

import httpx
import pytest

from support.fixtures.faults import Fault, secondary_rate_limit
from support.fixtures.launch import host_in_process
from support.forgeclient import PULLS, REPO, Api
from support.shop import BRANCH, FORGE, REPOSITORY, Clone


class TestList:
    """https://docs.github.com/rest/pulls/pulls#list-pull-requests."""

    def test_all_states_have_to_be_asked_for(self, clone: Clone, pushed: str) -> None:
        api = Api(clone)
        api.create()
        clone.host.control.close_pull(REPOSITORY, 1)

        assert [] == api("GET", PULLS, params={"head": f"acme:{BRANCH}"}).json()
        assert [("closed", None)] == [(r["state"], r["merged_at"]) for r in api.listed()]

    def test_a_list_says_merged_at_but_not_merged(self, clone: Clone, pushed: str) -> None:
        api = Api(clone)
        api.create()
        clone.host.control.merge_pull(REPOSITORY, 1)

        row = api.listed()[0]

        assert "merged" not in row
        assert row["merged_at"] is not None

    def test_it_filters_by_head_and_by_base(self, clone: Clone, pushed: str) -> None:
        api = Api(clone)
        api.create()
        clone.host.control.commit(REPOSITORY, "topic", {"t": "t"}, start="main")
        clone.host.control.open_pull(REPOSITORY, title="t", head="topic", base="main")

        assert [1] == [row["number"] for row in api.listed()]
        assert [2, 1] == [row["number"] for row in api.listed(head="")]
        assert [] == api.listed(base="release")

    def test_a_head_without_owner_filters_nothing(self, clone: Clone, pushed: str) -> None:
        """The documented form is `user:ref-name`; a bare name must not be mistaken for a match."""
        api = Api(clone)
        api.create()

        assert 1 == len(api.listed(head="something-else"))
        assert [] == api.listed(head="stranger:" + BRANCH)

    def test_it_has_pages(self, clone: Clone) -> None:
        for i in range(3):
            clone.host.control.commit(REPOSITORY, f"t{i}", {"t": str(i)}, start="main")
            clone.host.control.open_pull(REPOSITORY, title="t", head=f"t{i}", base="main")

        first = Api(clone)("GET", PULLS, params={"per_page": 2})
        with httpx.Client(headers={"Authorization": f"Bearer {FORGE}"}, trust_env=False) as client:
            second = client.get(first.links["next"]["url"])

        assert ([3, 2], [1]) == (
            [row["number"] for row in first.json()],
            [row["number"] for row in second.json()],
        )
        assert "next" not in second.links

    def test_it_may_lag_behind_a_creation(self, clone: Clone, pushed: str) -> None:
        clone.host.control.set_lag(REPOSITORY, list_seconds=30)
        api = Api(clone)
        api.create()

        hidden = api.listed()
        clone.host.control.advance_clock(31)

        assert [] == hidden
        assert 1 == len(api.listed())

    def test_the_lag_can_be_counted_in_lists(self, clone: Clone, pushed: str) -> None:
        clone.host.control.set_lag(REPOSITORY, list_reads=1)
        api = Api(clone)
        api.create()

        assert [0, 1] == [len(api.listed()) for _ in range(2)]


class TestDecoration:
    def test_labels_add_up_once(self, clone: Clone, pushed: str) -> None:
        api = Api(clone)
        api.create()

        for _ in range(2):
            api("POST", f"{REPO}/issues/1/labels", json={"labels": ["dependencies"]})

        assert ["dependencies"] == [r["name"] for r in api("GET", f"{REPO}/issues/1/labels").json()]
        assert ["dependencies"] == [r["name"] for r in api("GET", f"{PULLS}/1").json()["labels"]]

    def test_reviewers_have_to_be_collaborators(self, clone: Clone, pushed: str) -> None:
        api = Api(clone)
        api.create()
        path = f"{PULLS}/1/requested_reviewers"

        refused = api("POST", path, json={"reviewers": ["nobody"]})
        accepted = api("POST", path, json={"reviewers": ["maintainer"]})

        assert (422, 201) == (refused.status_code, accepted.status_code)
        assert ["maintainer"] == [u["login"] for u in api("GET", path).json()["users"]]


class TestMisbehaviour:
    """Each failure says whether the effect happened; the request log tells the truth."""

    def test_the_next_create_fails_before_its_effect(self, clone: Clone, pushed: str) -> None:
        clone.host.control.add_fault(
            Fault(action="status", method="POST", path="/pulls$", status=502, times=1)
        )
        api = Api(clone)

        assert (502, 201) == (api.create().status_code, api.create().status_code)
        assert 1 == len(clone.host.control.pulls(REPOSITORY))

    def test_the_next_create_fails_after_its_effect(self, clone: Clone, pushed: str) -> None:
        clone.host.control.add_fault(
            Fault(action="status_after", method="POST", path="/pulls$", status=500, times=1)
        )
        api = Api(clone)

        assert (500, 422) == (api.create().status_code, api.create().status_code)
        assert 1 == len(api.listed())

    def test_the_answer_to_a_create_is_dropped(self, clone: Clone, pushed: str) -> None:
        clone.host.control.add_fault(
            Fault(action="drop_after", method="POST", path="/pulls$", times=1)
        )
        api = Api(clone)

        with pytest.raises(httpx.RemoteProtocolError):
            api.create()

        assert 1 == len(api.listed())
        created = [
            e for e in clone.host.control.requests() if e["effects"] and "/api/" in e["path"]
        ]
        assert [(0, [f"pull request 1 {BRANCH} {pushed}"])] == [
            (e["answer"], e["effects"]) for e in created
        ]

    def test_a_secondary_rate_limit_says_when_to_come_back(self, clone: Clone) -> None:
        clone.host.control.add_fault(secondary_rate_limit(7))

        first, second = Api(clone)("GET", REPO), Api(clone)("GET", REPO)

        assert (403, "7", 200) == (
            first.status_code,
            first.headers["Retry-After"],
            second.status_code,
        )
        assert "secondary rate limit" in first.json()["message"]

    def test_an_outage_of_the_api_leaves_git_alone(self, clone: Clone) -> None:
        clone.host.control.add_fault(Fault(action="status", path="^/api/"))

        assert 503 == Api(clone)("GET", REPO).status_code
        assert clone.push_create_only(clone.commit()).code == 0


def test_a_restarted_host_shows_the_same(clone: Clone, pushed: str, tmp_path: Path) -> None:
    """Refs, tokens, pull requests and settings are on disk; only the request log is not."""
    Api(clone).create()
    with host_in_process(tmp_path / "host") as again:
        moved = Clone(clone.path, again, clone.base)

        assert [pushed] == [row["head"]["sha"] for row in Api(moved).listed()]
        assert 201 != Api(moved).create().status_code
