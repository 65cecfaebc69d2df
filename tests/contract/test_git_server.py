"""The git host behaves like a real one where the product relies on it (reliability.md §3)."""

import pytest

from support.fixtures.faults import Fault
from support.fixtures.repositories import ZERO
from support.gitclient import authenticated, git, try_git
from support.shop import BRANCH, FORGE, PUSH, READ, REF, REPOSITORY, Clone

RECEIVE = Fault(action="drop_after", method="POST", path="git-receive-pack$")


class TestCreateOnlyPush:
    """`--force-with-lease=<ref>:` creates or fails; a stranger's branch is never moved."""

    def test_creates_an_absent_branch_and_logs_it_once(self, clone: Clone) -> None:
        commit = clone.commit()

        done = clone.push_create_only(commit)

        assert done.code == 0, done.err
        logged = [u for u in clone.host.control.ref_updates(REPOSITORY) if u["ref"] == REF]
        assert [("create", ZERO, commit, "pusher")] == [
            (u["kind"], u["old"], u["new"], u["who"]) for u in logged
        ]

    def test_is_refused_when_the_branch_is_at_another_commit(self, clone: Clone) -> None:
        foreign = clone.host.control.commit(REPOSITORY, BRANCH, {"a": "b"}, start="main")

        done = clone.push_create_only(clone.commit())

        assert done.code != 0
        assert "[rejected]" in done.out
        assert foreign == clone.host.control.refs(REPOSITORY)[REF]

    def test_says_up_to_date_when_the_branch_is_at_our_commit(self, clone: Clone) -> None:
        commit = clone.commit()
        assert clone.push_create_only(commit).code == 0

        again = clone.push_create_only(commit)

        assert again.code == 0
        assert "[up to date]" in again.out
        assert 1 == len([u for u in clone.host.control.ref_updates(REPOSITORY) if u["ref"] == REF])

    def test_is_refused_when_the_branch_appears_between_look_and_push(self, clone: Clone) -> None:
        """The server decides the race: the client saw no branch, a stranger was quicker."""
        commit = clone.commit()
        hook = clone.path / ".git" / "hooks" / "pre-push"
        hook.parent.mkdir(exist_ok=True)
        stranger = git(clone.path, "rev-parse", clone.base)
        hook.write_text(f"#!/bin/sh\ngit push -q --no-verify {clone.url()} {stranger}:{REF}\n")
        hook.chmod(0o755)

        done = try_git(
            clone.path,
            "push",
            "--porcelain",
            f"--force-with-lease={REF}:",
            clone.url(),
            f"{commit}:{REF}",
        )

        assert done.code != 0
        assert "[remote rejected]" in done.out
        assert clone.base == clone.host.control.refs(REPOSITORY)[REF]


class TestRights:
    """Clone and push rights are apart, per repository (security.md)."""

    @pytest.mark.parametrize("token", [READ, PUSH, FORGE])
    def test_a_token_of_the_repository_reads(self, clone: Clone, token: str) -> None:
        assert clone.base in git(clone.path, "ls-remote", clone.url(token), "refs/heads/main")

    def test_a_reading_token_does_not_push(self, clone: Clone) -> None:
        done = clone.push_create_only(clone.commit(), READ)

        assert done.code != 0
        assert "403" in done.err
        assert REF not in clone.host.control.refs(REPOSITORY)

    @pytest.mark.parametrize("token", ["", "wrong"])
    def test_no_valid_token_is_an_authentication_failure(self, clone: Clone, token: str) -> None:
        url = clone.url(token) if token else clone.host.repository_url(REPOSITORY)

        done = try_git(clone.path, "ls-remote", url)

        assert done.code != 0
        assert "uthentication failed" in done.err or "could not read Username" in done.err

    def test_a_token_of_another_repository_finds_nothing(self, clone: Clone) -> None:
        clone.host.control.put_repository("acme/other")
        url = authenticated(clone.host.repository_url("acme/other"), PUSH)

        done = try_git(clone.path, "ls-remote", url)

        assert done.code != 0
        assert "not found" in done.err

    def test_a_public_repository_is_read_without_a_token_but_not_pushed(self, clone: Clone) -> None:
        clone.host.control.put_repository(REPOSITORY, private=False)
        url = clone.host.repository_url(REPOSITORY)

        assert clone.base in git(clone.path, "ls-remote", url)
        assert try_git(clone.path, "push", url, f"{clone.base}:{REF}").code != 0

    def test_an_archived_repository_takes_no_push(self, clone: Clone) -> None:
        clone.host.control.put_repository(REPOSITORY, archived=True)

        assert clone.push_create_only(clone.commit()).code != 0
        assert clone.base in git(clone.path, "ls-remote", clone.url(READ))


class TestMisbehaviour:
    """Outages, refusals and lost answers of upgrade-run.md §14."""

    def test_the_answer_to_a_successful_push_can_be_lost(self, clone: Clone) -> None:
        commit = clone.commit()
        clone.host.control.add_fault(Fault(**{**RECEIVE.to_json(), "times": 1}))

        lost = clone.push_create_only(commit)
        again = clone.push_create_only(commit)

        assert lost.code != 0
        assert commit == clone.host.control.refs(REPOSITORY)[REF]
        assert again.code == 0
        entry = next(e for e in clone.host.control.requests() if e["answer"] == 0)
        assert [f"create {REF} {commit}"] == entry["effects"]

    def test_the_server_hook_refuses_with_its_text(self, clone: Clone) -> None:
        clone.host.control.refuse_pushes(
            REPOSITORY, "refs/heads/upgraderun/*", "no robots here", kind="creation"
        )
        commit = clone.commit()

        refused = clone.push_create_only(commit)
        clone.host.control.accept_pushes(REPOSITORY)

        assert refused.code != 0
        assert "[remote rejected]" in refused.out
        assert "no robots here" in refused.err
        assert clone.push_create_only(commit).code == 0

    def test_a_creation_rule_of_the_forge_is_enforced_on_pushes(self, clone: Clone) -> None:
        clone.host.control.set_rules(REPOSITORY, {"type": "creation", "glob": "upgraderun/*"})

        refused = clone.push_create_only(clone.commit())

        assert "GH013" in refused.err
        assert REF not in clone.host.control.refs(REPOSITORY)

    def test_an_outage_answers_503_and_ends(self, clone: Clone) -> None:
        clone.host.control.add_fault(Fault(action="status", path=f"^/{REPOSITORY}"))

        down = try_git(clone.path, "ls-remote", clone.url())
        clone.host.control.clear_faults()

        assert "503" in down.err
        assert try_git(clone.path, "ls-remote", clone.url()).code == 0

    def test_connections_are_refused_and_taken_again_on_the_same_port(self, clone: Clone) -> None:
        clone.host.control.refuse_connections(True)

        down = try_git(clone.path, "ls-remote", clone.url())
        clone.host.control.refuse_connections(False)

        assert "Connection refused" in down.err or "Failed to connect" in down.err
        assert try_git(clone.path, "ls-remote", clone.url()).code == 0

    def test_a_large_push_arrives_whole(self, clone: Clone) -> None:
        """Above http.postBuffer git sends chunks, after a probe."""
        import hashlib

        block = "".join(hashlib.sha256(str(i).encode()).hexdigest() for i in range(60_000))
        commit = clone.commit("large.txt", block)

        done = clone.push_create_only(commit)

        assert done.code == 0, done.err
        assert commit == clone.host.control.refs(REPOSITORY)[REF]


class TestStrangers:
    """People push, force and delete without asking us."""

    def test_a_foreign_commit_lands_on_an_existing_branch(self, clone: Clone) -> None:
        commit = clone.commit()
        clone.push_create_only(commit)

        foreign = clone.host.control.commit(REPOSITORY, BRANCH, {"sub/x.txt": "x"})

        assert foreign == clone.host.control.refs(REPOSITORY)[REF]
        last = clone.host.control.ref_updates(REPOSITORY)[-1]
        assert ("update", commit, foreign, "A Stranger") == (
            last["kind"],
            last["old"],
            last["new"],
            last["who"],
        )
        git(clone.path, "fetch", "-q", clone.url(READ), REF)
        assert "x" == git(clone.path, "show", f"{foreign}:sub/x.txt")

    def test_a_branch_is_deleted(self, clone: Clone) -> None:
        commit = clone.commit()
        clone.push_create_only(commit)

        clone.host.control.move_ref(REPOSITORY, REF, None)

        assert REF not in clone.host.control.refs(REPOSITORY)
        last = clone.host.control.ref_updates(REPOSITORY)[-1]
        assert ("delete", commit, ZERO) == (last["kind"], last["old"], last["new"])

    def test_any_reachable_commit_can_be_fetched_by_id(self, clone: Clone) -> None:
        clone.host.control.commit(REPOSITORY, "main", {"later": "x"})

        git(clone.path, "fetch", "-q", "--depth=1", clone.url(READ), clone.base)

        assert "commit" == git(clone.path, "cat-file", "-t", clone.base)
