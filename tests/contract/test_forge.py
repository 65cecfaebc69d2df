"""The forge keeps GitHub's semantics where publication relies on them (reliability.md §3, §13.5).

A real GitHub-compatible forge passes the same calls; the bodies follow https://docs.github.com/rest.
"""

import pytest

from support.forgeclient import PULLS, REPO, Api
from support.shop import BRANCH, PUSH, READ, REF, REPOSITORY, Clone


class TestRepository:
    def test_settings_and_the_callers_rights(self, clone: Clone) -> None:
        body = Api(clone)("GET", REPO).json()

        assert ("main", False, True) == (
            body["default_branch"],
            body["archived"],
            body["permissions"]["push"],
        )
        assert body["permissions"]["admin"] is False

    def test_a_reading_token_has_no_push_right(self, clone: Clone) -> None:
        assert Api(clone, READ)("GET", REPO).json()["permissions"]["push"] is False

    def test_archiving_shows(self, clone: Clone) -> None:
        clone.host.control.put_repository(REPOSITORY, archived=True)

        assert Api(clone)("GET", REPO).json()["archived"] is True

    def test_what_a_token_does_not_cover_is_not_found(self, clone: Clone) -> None:
        clone.host.control.put_repository("acme/other")

        answers = [Api(clone)("GET", "/repos/acme/other"), Api(clone, "")("GET", REPO)]

        assert [(404, "Not Found")] * 2 == [(a.status_code, a.json()["message"]) for a in answers]

    def test_an_invalid_token_is_bad_credentials(self, clone: Clone) -> None:
        answer = Api(clone, "wrong")("GET", REPO)

        assert (401, "Bad credentials") == (answer.status_code, answer.json()["message"])

    def test_rules_of_a_branch_name_that_does_not_exist_yet(self, clone: Clone) -> None:
        clone.host.control.set_rules(REPOSITORY, {"type": "creation", "glob": "upgraderun/*"})
        api = Api(clone)

        assert ["creation"] == [
            r["type"] for r in api("GET", f"{REPO}/rules/branches/{BRANCH}").json()
        ]
        assert [] == api("GET", f"{REPO}/rules/branches/feature").json()


class TestRefs:
    """Refs are those of the git server, in both directions."""

    def test_a_pushed_branch_is_read(self, clone: Clone, pushed: str) -> None:
        api = Api(clone)

        assert pushed == api("GET", f"{REPO}/git/ref/heads/{BRANCH}").json()["object"]["sha"]
        branch = api("GET", f"{REPO}/branches/{BRANCH}").json()
        assert (BRANCH, pushed) == (branch["name"], branch["commit"]["sha"])
        assert [clone.base] == [p["sha"] for p in branch["commit"]["parents"]]

    def test_an_absent_branch_is_404(self, clone: Clone) -> None:
        api = Api(clone)

        assert 404 == api("GET", f"{REPO}/git/ref/heads/{BRANCH}").status_code
        answer = api("GET", f"{REPO}/branches/{BRANCH}")
        assert (404, "Branch not found") == (answer.status_code, answer.json()["message"])

    def test_a_prefix_of_a_branch_name_is_no_branch(self, clone: Clone, pushed: str) -> None:
        api = Api(clone)

        assert 404 == api("GET", f"{REPO}/git/ref/heads/upgraderun").status_code
        refs = api("GET", f"{REPO}/git/matching-refs/heads/upgraderun/").json()
        assert [(REF, pushed)] == [(r["ref"], r["object"]["sha"]) for r in refs]

    def test_creating_a_ref_that_exists_fails_with_422(self, clone: Clone, pushed: str) -> None:
        answer = Api(clone)("POST", f"{REPO}/git/refs", json={"ref": REF, "sha": clone.base})

        assert (422, "Reference already exists") == (answer.status_code, answer.json()["message"])
        assert pushed == clone.host.control.refs(REPOSITORY)[REF]

    def test_a_commit_shows_tree_parents_and_identity(self, clone: Clone) -> None:
        body = Api(clone)("GET", f"{REPO}/git/commits/{clone.base}").json()

        assert (clone.base, [], "base", "Fixture Author", "2025-01-01T00:00:00Z") == (
            body["sha"],
            body["parents"],
            body["message"],
            body["author"]["name"],
            body["author"]["date"],
        )

    def test_an_unknown_commit_is_404(self, clone: Clone) -> None:
        assert 404 == Api(clone)("GET", f"{REPO}/git/commits/{'0' * 39}1").status_code

    def test_a_new_branch_may_read_404_for_a_while(self, clone: Clone) -> None:
        clone.host.control.set_lag(REPOSITORY, ref_seconds=100)
        commit = clone.commit()
        clone.push_create_only(commit)
        api = Api(clone)

        assert 404 == api("GET", f"{REPO}/git/ref/heads/{BRANCH}").status_code
        clone.host.control.advance_clock(101)
        assert 200 == api("GET", f"{REPO}/git/ref/heads/{BRANCH}").status_code

    def test_lag_can_be_counted_in_reads(self, clone: Clone) -> None:
        clone.host.control.set_lag(REPOSITORY, ref_reads=2)
        clone.push_create_only(clone.commit())

        codes = [Api(clone)("GET", f"{REPO}/branches/{BRANCH}").status_code for _ in range(3)]

        assert [404, 404, 200] == codes


class TestCreate:
    """https://docs.github.com/rest/pulls/pulls#create-a-pull-request."""

    def test_answers_201_with_head_and_base(self, clone: Clone, pushed: str) -> None:
        answer = Api(clone).create(draft=True)

        body = answer.json()
        assert (201, 1, "open", True, False) == (
            answer.status_code,
            body["number"],
            body["state"],
            body["draft"],
            body["merged"],
        )
        assert (BRANCH, pushed, "main", clone.base) == (
            body["head"]["ref"],
            body["head"]["sha"],
            body["base"]["ref"],
            body["base"]["sha"],
        )
        assert ("marker", "publisher") == (body["body"], body["user"]["login"])

    def test_a_second_one_from_the_same_branch_is_422(self, clone: Clone, pushed: str) -> None:
        api = Api(clone)
        api.create()

        answer = api.create()

        assert 422 == answer.status_code
        assert [
            {
                "resource": "PullRequest",
                "code": "custom",
                "message": f"A pull request already exists for acme:{BRANCH}.",
            }
        ] == answer.json()["errors"]
        assert 1 == len(clone.host.control.pulls(REPOSITORY))

    def test_a_closed_one_does_not_stand_in_the_way(self, clone: Clone, pushed: str) -> None:
        api = Api(clone)
        api.create()
        clone.host.control.close_pull(REPOSITORY, 1)

        assert 201 == api.create().status_code
        assert [2, 1] == [row["number"] for row in api.listed()]

    @pytest.mark.parametrize(("field", "value"), [("head", "absent"), ("base", "absent")])
    def test_an_end_that_does_not_exist_is_422(
        self, clone: Clone, pushed: str, field: str, value: str
    ) -> None:
        answer = Api(clone).create(**{field: value})

        assert 422 == answer.status_code
        assert [{"resource": "PullRequest", "field": field, "code": "invalid"}] == answer.json()[
            "errors"
        ]

    def test_nothing_to_merge_is_422(self, clone: Clone) -> None:
        clone.host.control.move_ref(REPOSITORY, REF, clone.base)

        answer = Api(clone).create()

        assert 422 == answer.status_code
        assert f"No commits between main and {BRANCH}" == answer.json()["errors"][0]["message"]

    def test_it_takes_a_branch_name_and_has_no_say_about_the_commit(
        self, clone: Clone, pushed: str
    ) -> None:
        """Between our push and the create a stranger may push: the answer's head tells."""
        foreign = clone.host.control.commit(REPOSITORY, BRANCH, {"evil": "x"})

        assert foreign == Api(clone).create().json()["head"]["sha"]

    @pytest.mark.parametrize("token", [PUSH, READ])
    def test_without_the_permission_it_is_403(self, clone: Clone, pushed: str, token: str) -> None:
        answer = Api(clone, token).create()

        assert 403 == answer.status_code
        assert "Resource not accessible by personal access token" == answer.json()["message"]


class TestStates:
    """A pull request's state is computed from the refs and from what people did."""

    def test_an_open_one_follows_its_branch(self, clone: Clone, pushed: str) -> None:
        api = Api(clone)
        api.create()

        foreign = clone.host.control.commit(REPOSITORY, BRANCH, {"x": "y"})

        assert foreign == api("GET", f"{PULLS}/1").json()["head"]["sha"]

    def test_closing_freezes_its_head(self, clone: Clone, pushed: str) -> None:
        api = Api(clone)
        api.create()
        clone.host.control.close_pull(REPOSITORY, 1)

        clone.host.control.commit(REPOSITORY, BRANCH, {"x": "y"})

        body = api("GET", f"{PULLS}/1").json()
        assert ("closed", False, pushed) == (body["state"], body["merged"], body["head"]["sha"])

    def test_deleting_the_branch_closes_it(self, clone: Clone, pushed: str) -> None:
        api = Api(clone)
        api.create()

        clone.host.control.move_ref(REPOSITORY, REF, None)

        body = api("GET", f"{PULLS}/1").json()
        assert ("closed", False, pushed) == (body["state"], body["merged"], body["head"]["sha"])

    def test_merging_moves_the_base(self, clone: Clone, pushed: str) -> None:
        api = Api(clone)
        api.create()

        clone.host.control.merge_pull(REPOSITORY, 1)

        body = api("GET", f"{PULLS}/1").json()
        main = clone.host.control.refs(REPOSITORY)["refs/heads/main"]
        assert ("closed", True, main, pushed) == (
            body["state"],
            body["merged"],
            body["merge_commit_sha"],
            body["head"]["sha"],
        )
        commit = api("GET", f"{REPO}/git/commits/{main}").json()
        assert [clone.base, pushed] == [parent["sha"] for parent in commit["parents"]]

    def test_pushing_our_commit_to_the_base_merges_it(self, clone: Clone, pushed: str) -> None:
        api = Api(clone)
        api.create()

        clone.host.control.move_ref(REPOSITORY, "refs/heads/main", pushed)

        assert api("GET", f"{PULLS}/1").json()["merged"] is True
