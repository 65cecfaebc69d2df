"""The one commit: computed, made by real git, frozen, recovered (upgrade-run.md §10, §13.4)."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.ids import CommitId, RunUid, Sha256, TreeId
from upgraderun_protocol.records import from_bytes, to_bytes
from upgraderun_runner.workspace.candidate import candidate_tree
from upgraderun_runner.workspace.diff import diff_trees
from upgraderun_runner.workspace.errors import (
    GitFailed,
    RemoteFailed,
    TreeRefused,
    WorkspaceContradicts,
)
from upgraderun_runner.workspace.files import replace_file
from upgraderun_runner.workspace.git import Credential, Git, resolve_ref
from upgraderun_runner.workspace.layout import Layout
from upgraderun_runner.workspace.proposal import (
    FrozenProposal,
    ProposalRecord,
    Target,
    freeze,
    make_commit,
    proposal_files,
    proposal_ref,
    seal,
    tree_is_present,
)
from upgraderun_runner.workspace.protected import HOUSE_GLOBS, ProtectedPaths
from upgraderun_runner.workspace.recipe import Recipe, commit_id, git_identity
from upgraderun_runner.workspace.snapshot import checkout
from upgraderun_runner.workspace.verify import Expectation, Invalidated, Verified, verify_proposal

RUN_UID = RunUid("3f1c9a2b-0000-4000-8000-000000000001")
PAIR = frozenset({"pyproject.toml", "uv.lock"})
BASE: dict[str, Any] = {
    "pyproject.toml": "[project]\n",
    "uv.lock": "version = 1\n",
    "src/a.py": "x = 1\n",
    "run.sh": ("100755", b"#!/bin/sh\n"),
    "link": ("120000", b"src/a.py"),
}


def recipe(tree: TreeId, parent: CommitId, **changes: Any) -> Recipe:
    fields: dict[str, Any] = {
        "tree": tree, "parent": parent, "author_name": "UpgradeRun",
        "author_email": "bot@example.com", "unix_seconds": 1_780_000_000,
        "title": "Upgrade httpx from 0.27.2 to 0.28.1", "body": "Why.\n\nHow.",
        "run_uid": RUN_UID, "proposal": "3f1c9a2b-s4",
    }  # fmt: skip
    return Recipe(**{**fields, **changes})


@dataclass(frozen=True, slots=True)
class Workplace:
    """A repository with a base and the tree of one change."""

    git: Git
    base: CommitId
    base_tree: TreeId
    tree: TreeId


@pytest.fixture
async def place(git: Git, layout: Layout, maker: Any) -> Workplace:
    base_tree = maker.tree(BASE)
    base = maker.commit(base_tree)
    await checkout(git, layout, base_tree)
    replace_file(layout.work, "uv.lock", b"version = 2\n")
    replace_file(layout.work, "src/new.py", b"y = 1\n")
    return Workplace(git, base, base_tree, await candidate_tree(git, layout, base_tree))


class TestFreeze:
    async def test_commit_and_ref_are_the_computed_ones(
        self, place: Workplace, layout: Layout
    ) -> None:
        wanted = recipe(place.tree, place.base)
        head = (layout.git / "HEAD").read_text()

        made = await freeze(place.git, wanted)

        assert commit_id(wanted) == made
        assert made == await resolve_ref(place.git, proposal_ref(wanted.proposal))
        assert head == (layout.git / "HEAD").read_text()
        shown = await place.git.check("log", "-1", "--format=%T %P %an %ae %at %cn %ce %ct", made)
        assert (
            f"{place.tree} {place.base} UpgradeRun bot@example.com 1780000000 "
            "UpgradeRun bot@example.com 1780000000"
        ) == shown.decode().strip()

    async def test_repetition_gives_the_same(self, place: Workplace) -> None:
        wanted = recipe(place.tree, place.base)

        assert await freeze(place.git, wanted) == await freeze(place.git, wanted)

    async def test_points_are_passed_in_order(self, place: Workplace) -> None:
        passed: list[tuple[str, str]] = []

        await freeze(place.git, recipe(place.tree, place.base), lambda *point: passed.append(point))

        assert [
            ("proposal_commit", "before"), ("proposal_commit", "applied"),
            ("proposal_ref", "before"), ("proposal_ref", "applied"),
        ] == passed  # fmt: skip

    async def test_moved_ref_is_a_conflict_and_stays(self, place: Workplace) -> None:
        wanted = recipe(place.tree, place.base)
        await place.git.check("update-ref", proposal_ref(wanted.proposal), place.base)

        with pytest.raises(WorkspaceContradicts) as caught:
            await freeze(place.git, wanted)

        assert ("proposal_ref_moved", commit_id(wanted), place.base) == (
            caught.value.kind, caught.value.expected, caught.value.observed
        )  # fmt: skip
        assert place.base == await resolve_ref(place.git, proposal_ref(wanted.proposal))

    async def test_missing_tree_objects_are_noticed(self, place: Workplace) -> None:
        blob = place.git.git_dir / "objects"
        assert await tree_is_present(place.git, place.tree)
        new = (await place.git.check("rev-parse", f"{place.tree}:src/new.py")).decode().strip()

        (blob / new[:2] / new[2:]).unlink()

        assert not await tree_is_present(place.git, place.tree)
        assert not await tree_is_present(place.git, TreeId("9" * 40))

    async def test_commit_on_an_absent_tree_fails(self, place: Workplace) -> None:
        with pytest.raises(GitFailed):
            await make_commit(place.git, recipe(TreeId("9" * 40), place.base))


text = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60
)  # any valid text: what the recipe refuses is left out by the test


class TestPureIdEqualsGit:
    """The computed id is the one that git gives, whatever the texts are."""

    @settings(
        max_examples=60,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(title=text, body=text, name=text, seconds=st.integers(0, 4_000_000_000))
    async def test_for_any_texts(
        self, place: Workplace, title: str, body: str, name: str, seconds: int
    ) -> None:
        try:
            wanted = recipe(
                place.tree, place.base, title=title, body=body,
                author_name=git_identity(name) or "x", unix_seconds=seconds,
            )  # fmt: skip
        except ValueError:
            return

        assert commit_id(wanted) == await make_commit(place.git, wanted)


async def frozen(place: Workplace, **changes: Any) -> FrozenProposal:
    wanted = recipe(place.tree, place.base, **changes)
    diff = await diff_trees(place.git, place.base_tree, place.tree)
    files, artifacts = await proposal_files(place.git, diff, PAIR)
    await freeze(place.git, wanted)
    record = ProposalRecord(
        version=1, recipe=wanted, base_commit=place.base, base_tree=place.base_tree,
        commit=commit_id(wanted), target=Target("python", "httpx", "0.27.2", "0.28.1"),
        config_hash=Sha256("c" * 64), time="2026-11-30T00:00:00Z", pair=tuple(sorted(PAIR)),
        files=files, evidence={"baseline": "d" * 64}, images={"python": "sha256:" + "e" * 64},
        readiness=(),
    )  # fmt: skip
    return seal(record, artifacts)


class TestRecord:
    async def test_files_are_what_changed(self, place: Workplace) -> None:
        proposal = await frozen(place)

        assert [("src/new.py", "100644", 6), ("uv.lock", "100644", 12)] == [
            (file.path, file.mode, file.size) for file in proposal.record.files
        ]
        stored = {artifact.sha256: artifact.content for artifact in proposal.artifacts}
        assert {b"y = 1\n", b"version = 2\n", to_bytes(proposal.record)} == set(stored.values())
        assert all(digest == sha256_of(content) for digest, content in stored.items())
        assert str(proposal.digest) == sha256_of(to_bytes(proposal.record))
        assert proposal.record == from_bytes(ProposalRecord, to_bytes(proposal.record))

    @pytest.mark.parametrize(
        ("files", "code"),
        [
            ({"src/a.py": None}, "deleted"),
            ({"link": ("120000", b"run.sh")}, "mode"),
            ({"new-link": ("120000", b"run.sh")}, "mode"),
            ({"link": "a file now"}, "mode"),
            ({f"f{i}": "x" for i in range(33)}, "too_many_files"),
            ({"a\u202eb": "x"}, "path"),
        ],
    )
    async def test_what_no_proposal_holds_is_refused(
        self, git: Git, maker: Any, files: dict[str, Any], code: str
    ) -> None:
        wanted = {k: v for k, v in {**BASE, **files}.items() if v is not None}
        diff = await diff_trees(git, maker.tree(BASE), maker.tree(wanted))

        with pytest.raises(TreeRefused) as caught:
            await proposal_files(git, diff, PAIR)

        assert code in {violation.code for violation in caught.value.violations}

    async def test_source_file_above_1_mib_is_refused_a_lock_is_not(
        self, git: Git, maker: Any
    ) -> None:
        large = b"x" * (1024 * 1024 + 1)
        base = maker.tree(BASE)

        files, _ = await proposal_files(
            git, await diff_trees(git, base, maker.tree({**BASE, "uv.lock": large})), PAIR
        )
        assert [len(large)] == [file.size for file in files]
        with pytest.raises(TreeRefused, match="too_large"):
            await proposal_files(
                git, await diff_trees(git, base, maker.tree({**BASE, "src/a.py": large})), PAIR
            )


@dataclass(slots=True)
class Delivery:
    """A frozen proposal, a remote with its base, and an empty place to verify it in."""

    proposal: FrozenProposal
    store: dict[str, bytes]
    url: str
    credential: Credential
    git: Git
    protected: ProtectedPaths

    async def verify(self, **changes: Any) -> Verified | Invalidated:
        fields: dict[str, Any] = {
            "digest": self.proposal.digest, "commit": self.proposal.record.commit,
            "url": self.url, "branch": "main", "pair": PAIR,
        }  # fmt: skip

        async def load(digest: Sha256) -> bytes | None:
            return self.store.get(digest)

        return await verify_proposal(
            self.git, Expectation(**{**fields, **changes}), load, self.protected, self.credential
        )

    def reseal(self, record: ProposalRecord) -> None:
        """A record that lies, with a digest that fits: verification must not need the digest."""
        self.proposal = seal(record, ())
        self.store[self.proposal.digest] = to_bytes(record)


@pytest.fixture
async def delivery(
    place: Workplace,
    host: Any,
    remote: Any,
    push_credential: Credential,
    fresh_git: Callable[[str], Git],
) -> Delivery:
    remote.git("update-ref", "refs/heads/main", remote.commit(remote.tree(BASE)))
    proposal = await frozen(place)
    return Delivery(
        proposal,
        {artifact.sha256: artifact.content for artifact in proposal.artifacts},
        host.repository_url("acme/shop"),
        push_credential,
        fresh_git("publisher"),
        ProtectedPaths([*HOUSE_GLOBS, *PAIR, "**/test_*.py"]),
    )


def invalid(found: Verified | Invalidated) -> str:
    assert isinstance(found, Invalidated)
    return found.code


class TestVerify:
    """H28: rebuilt from artifacts and base alone; every id is compared."""

    async def test_honest_proposal_passes(self, delivery: Delivery) -> None:
        record = delivery.proposal.record

        found = await delivery.verify()

        assert Verified(record, record.commit, record.base_commit) == found
        assert b"commit" == (await delivery.git.check("cat-file", "-t", record.commit)).strip()

    async def test_moved_base_branch_still_verifies_and_is_reported(
        self, delivery: Delivery, remote: Any
    ) -> None:
        newer = remote.commit(remote.tree({**BASE, "x": "y"}), delivery.proposal.record.base_commit)

        found = await delivery.verify()

        assert isinstance(found, Verified)
        assert newer == found.branch_head

    async def test_rewritten_base_branch_invalidates(self, delivery: Delivery, remote: Any) -> None:
        remote.commit(remote.tree({"other": "history"}))

        assert "base_gone" == invalid(await delivery.verify())

    async def test_absent_base_branch_invalidates(self, delivery: Delivery) -> None:
        assert "base_gone" == invalid(await delivery.verify(branch="gone"))

    async def test_one_changed_byte_of_a_blob_invalidates(self, delivery: Delivery) -> None:
        digest = delivery.proposal.record.files[0].sha256
        delivery.store[digest] = b"y = 2\n"

        assert "record_digest" == invalid(await delivery.verify())

    async def test_missing_artifact_invalidates(self, delivery: Delivery) -> None:
        del delivery.store[delivery.proposal.record.files[0].sha256]

        assert "artifact_gone" == invalid(await delivery.verify())

    async def test_unreadable_record_invalidates(self, delivery: Delivery) -> None:
        digest = sha256_of(b"{}")
        delivery.store[digest] = b"{}"

        assert "record_unreadable" == invalid(await delivery.verify(digest=digest))

    async def test_other_commit_than_granted_invalidates(self, delivery: Delivery) -> None:
        assert "record_contradicts" == invalid(await delivery.verify(commit=CommitId("9" * 40)))

    async def test_unreachable_forge_is_no_verdict(self, delivery: Delivery) -> None:
        with pytest.raises(RemoteFailed):
            await delivery.verify(url="http://127.0.0.1:1/acme/shop.git")

    async def test_git_directory_of_the_runner_is_never_opened(
        self, delivery: Delivery, place: Workplace, layout: Layout
    ) -> None:
        """H28 X: `config` and `hooks` of the run's git directory poisoned, nothing runs."""
        layout.git.rename(layout.directory / "hidden")

        assert isinstance(await delivery.verify(), Verified)


class TestForgedRecord:
    """Whoever can write the record (a taken-over runner) gets nothing past the publisher."""

    @pytest.fixture
    def forge(self, delivery: Delivery) -> Callable[..., Any]:
        from dataclasses import replace

        async def verify_with(**changes: Any) -> str:
            record = replace(delivery.proposal.record, **changes)
            if "recipe" in changes:
                record = replace(record, commit=commit_id(record.recipe))
            delivery.reseal(record)
            return invalid(await delivery.verify(commit=record.commit))

        return verify_with

    def file(self, delivery: Delivery, path: str, content: bytes, mode: str = "100644") -> Any:
        from upgraderun_runner.workspace.proposal import ProposalFile
        from upgraderun_runner.workspace.walk import blob_id

        delivery.store[sha256_of(content)] = content
        return ProposalFile(path, mode, blob_id(content), len(content), sha256_of(content))

    @pytest.mark.parametrize(
        ("path", "code"),
        [
            (".github/workflows/x.yml", "protected"), (".GitHub/x", "protected"),
            ("tests/test_a.py", "protected"), ("AGENTS.md", "protected"),
            ("../x", "path"), (".git/config", "path"), ("a\\b", "path"), ("a\u202eb", "path"),
        ],
    )  # fmt: skip
    async def test_paths_are_judged_again(
        self, forge: Any, delivery: Delivery, path: str, code: str
    ) -> None:
        files = (*delivery.proposal.record.files, self.file(delivery, path, b"x"))

        assert code == await forge(files=files)

    async def test_extra_file_changes_the_tree(self, forge: Any, delivery: Delivery) -> None:
        files = (*delivery.proposal.record.files, self.file(delivery, "src/extra.py", b"x"))

        assert "tree" == await forge(files=files)

    async def test_left_out_file_changes_the_tree(self, forge: Any, delivery: Delivery) -> None:
        assert "tree" == await forge(files=delivery.proposal.record.files[:1])

    async def test_link_mode_is_refused(self, forge: Any, delivery: Delivery) -> None:
        assert "path" == await forge(files=(self.file(delivery, "l", b"x", "120000"),))

    async def test_path_twice_is_refused(self, forge: Any, delivery: Delivery) -> None:
        files = delivery.proposal.record.files

        assert "path" == await forge(files=(*files, files[0]))

    async def test_base_link_is_not_replaced(
        self, forge: Any, delivery: Delivery, remote: Any
    ) -> None:
        """The tree fits, but it turns a link of the base into a file."""
        from dataclasses import replace

        tree = remote.tree({**BASE, "link": "now a file"})
        files = (self.file(delivery, "link", b"now a file"),)
        new_recipe = replace(delivery.proposal.record.recipe, tree=tree)

        assert "path" == await forge(files=files, recipe=new_recipe)

    async def test_wrong_blob_id_is_noticed(self, forge: Any, delivery: Delivery) -> None:
        from dataclasses import replace

        first, *others = delivery.proposal.record.files

        assert "blob" == await forge(files=(replace(first, blob="9" * 40), *others))

    async def test_wrong_size_is_noticed(self, forge: Any, delivery: Delivery) -> None:
        from dataclasses import replace

        first, *others = delivery.proposal.record.files

        assert "blob" == await forge(files=(replace(first, size=1), *others))

    async def test_large_source_is_refused(self, forge: Any, delivery: Delivery) -> None:
        files = (self.file(delivery, "src/a.py", b"x" * (1024 * 1024 + 1)),)

        assert "path" == await forge(files=files)

    async def test_wider_pair_than_the_policys_is_refused(
        self, forge: Any, delivery: Delivery
    ) -> None:
        """The pair is exempt from protection: a record can't name its own."""
        assert "record_contradicts" == await forge(pair=(".github/workflows/x.yml", "uv.lock"))

    async def test_other_base_tree_is_noticed(
        self, forge: Any, delivery: Delivery, remote: Any
    ) -> None:
        assert "base_tree" == await forge(base_tree=remote.tree({"x": "y"}))

    async def test_other_parent_than_the_base_is_noticed(
        self, forge: Any, delivery: Delivery
    ) -> None:
        from dataclasses import replace

        new_recipe = replace(delivery.proposal.record.recipe, parent=CommitId("9" * 40))

        assert "record_contradicts" == await forge(recipe=new_recipe)

    async def test_commit_that_the_recipe_does_not_give_is_noticed(
        self, delivery: Delivery
    ) -> None:
        from dataclasses import replace

        other = CommitId("9" * 40)
        delivery.reseal(replace(delivery.proposal.record, commit=other))

        assert "commit" == invalid(await delivery.verify(commit=other))


def test_git_of_this_machine_has_the_settings_used() -> None:
    """`safe.bareRepository` and `transfer.bundleURI` came with 2.38, fsync components with 2.36."""
    said = subprocess.run(["git", "version"], capture_output=True, text=True, check=True).stdout
    major, minor = (int(part) for part in said.split()[2].split(".")[:2])

    assert (major, minor) >= (2, 39)
