"""The doubles of git and of bare repositories against the originals: the same on both (reliability.md Q9)."""

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.fixtures.faults import FixtureClock
from support.fixtures.launch import host_in_process
from support.fixtures.repositories import ZERO, GitError, RepositoryHost
from support.sim.forge import REPOSITORY, TOKEN, URL, SimHost, SimRepositories
from support.sim.git import SimGit
from support.sim.loop import SimLoop
from upgraderun_protocol.ids import CommitId, RunUid, TreeId
from upgraderun_runner.forge.push import PushApplied, PushRefused, push_arguments, read_porcelain
from upgraderun_runner.workspace.candidate import candidate_tree
from upgraderun_runner.workspace.clone import Base, Source, clone_base, fetch_branch, remote_refs
from upgraderun_runner.workspace.diff import diff_trees, patch_of
from upgraderun_runner.workspace.errors import BaseMissing, RemoteFailed, WorkspaceContradicts
from upgraderun_runner.workspace.git import (
    Credential,
    Git,
    GitSettings,
    prepare_git,
    remote_failure,
    resolve_ref,
)
from upgraderun_runner.workspace.layout import Layout
from upgraderun_runner.workspace.proposal import freeze, proposal_ref, tree_is_present
from upgraderun_runner.workspace.recipe import Recipe, commit_id
from upgraderun_runner.workspace.snapshot import make_snapshot
from upgraderun_runner.workspace.trees import list_tree

FILES: dict[str, str | None] = {
    "README.md": "one\ntwo\nthree\n",
    "src/a.py": "a = 1\n",
    "src.txt": "s\n",
    "src/deep/b.py": "b = 1\nb = 2\n",
}
BRANCH = "upgraderun/lib"
Run = Callable[[Coroutine[Any, Any, Any]], Any]


@dataclass(frozen=True, slots=True)
class Place:
    """A git directory, a host, and what runs a coroutine there: doubled, or as they are."""

    run: Run
    git: Git
    layout: Layout
    url: str
    credential: Credential
    start: str

    def cloned(self) -> Base:
        """Clone the base, and put its files into `work/`."""
        base: Base = self.run(clone_base(self.git, Source(self.url, "main"), self.credential))
        snapshot: Path = self.run(make_snapshot(self.git, self.layout, base.tree))
        for path in FILES:
            target = self.layout.work / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((snapshot / path).read_bytes())
        return base

    def recipe(self, base: Base) -> Recipe:
        """One commit of `work/` as it is."""
        tree = self.run(candidate_tree(self.git, self.layout, base.tree))
        return Recipe(
            tree=tree,
            parent=base.commit,
            author_name="UpgradeRun",
            author_email="upgraderun@example.org",
            unix_seconds=1_700_000_000,
            title="Upgrade lib",
            body="from 1.0 to 1.1",
            run_uid=RunUid("u"),
            proposal="p-s1",
        )

    def change(self) -> None:
        """Edit one file and add one."""
        (self.layout.work / "README.md").write_text("one\n2\nthree\nfour\n")
        (self.layout.work / "src" / "new.py").write_text("n = 1\n")


@pytest.fixture(params=["double", "original"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    settings = GitSettings(tmp_path / "private", allowed_protocols=("http",))
    prepare_git(settings)
    layout = Layout(tmp_path / "volume", 1)
    layout.work.mkdir(parents=True)
    git = Git(settings, layout.git)
    if request.param == "original":
        with host_in_process(tmp_path / "host") as host:
            host.control.put_repository(REPOSITORY, private=True)
            host.control.add_token(TOKEN, "bot", contents="write", pull_requests="write")
            start = host.control.commit(REPOSITORY, "main", FILES)
            credential = Credential(host.url, "x-access-token", TOKEN)
            url = host.repository_url(REPOSITORY)
            yield Place(asyncio.run, git, layout, url, credential, start)
        return
    doubled = SimHost(tmp_path / "host", lambda: 1_700_000_000.0, lambda _what, _commit: None)
    start = doubled.start(FILES)
    credential = Credential(URL, "x-access-token", TOKEN)
    with asyncio.Runner(loop_factory=lambda: SimLoop(SimGit(doubled.remotes))) as runner:
        yield Place(runner.run, git, layout, f"{URL}/{REPOSITORY}.git", credential, start)


def test_a_clone_has_the_heads_commit_and_tree(place: Place) -> None:
    base = place.cloned()

    assert place.start == base.commit
    entries = place.run(list_tree(place.git, base.tree))
    assert {path: len(str(text)) for path, text in FILES.items()} == {
        entry.path: entry.size for entry in entries
    }


def test_a_listing_is_in_gits_order(place: Place) -> None:
    base = place.cloned()

    entries = place.run(list_tree(place.git, base.tree))

    assert ["README.md", "src.txt", "src/a.py", "src/deep/b.py"] == [one.path for one in entries]


def test_an_absent_branch_is_missing(place: Place) -> None:
    with pytest.raises(BaseMissing):
        place.run(clone_base(place.git, Source(place.url, "other"), place.credential))


def test_a_wrong_credential_finds_nothing(place: Place) -> None:
    credential = Credential(place.credential.origin, "x-access-token", "wrong")

    with pytest.raises(RemoteFailed):
        place.run(remote_refs(place.git, place.url, ("refs/heads/main",), credential))


def test_a_second_fetch_completes_the_history(place: Place) -> None:
    place.cloned()

    head = place.run(fetch_branch(place.git, place.url, "main", place.credential, whole=True))

    assert place.start == head


def test_the_tree_of_unchanged_files_is_the_base(place: Place) -> None:
    base = place.cloned()

    assert base.tree == place.run(candidate_tree(place.git, place.layout, base.tree))


def test_trees_and_their_ids_are_gits(place: Place) -> None:
    """Literal ids, which git gave once: both sides compute them."""
    base = place.cloned()
    place.change()
    changed = place.run(candidate_tree(place.git, place.layout, base.tree))

    assert "ebcaa62ea05d06aa0d9492b62b4af110500a3eee" == base.tree
    assert "6860601702fd5702290990bd43cf7c7953ea309b" == changed


def test_what_lies_between_two_trees(place: Place) -> None:
    base = place.cloned()
    place.change()
    changed = place.run(candidate_tree(place.git, place.layout, base.tree))

    diff = place.run(diff_trees(place.git, base.tree, changed))
    patch = place.run(patch_of(place.git, base.tree, changed, 10_000)).text

    assert [("README.md", 2, 1), ("src/new.py", 1, 0)] == [
        (one.path, one.added, one.removed) for one in diff.files
    ]
    assert [None, "100644"] == [one.old_mode for one in diff.files][::-1]
    assert [
        "diff --git a/README.md b/README.md",
        "--- a/README.md",
        "+++ b/README.md",
        "@@ -1,3 +1,4 @@",
        " one",
        "-two",
        "+2",
        " three",
        "+four",
        "diff --git a/src/new.py b/src/new.py",
        "new file mode 100644",
        "--- /dev/null",
        "+++ b/src/new.py",
    ] == [line for line in patch.splitlines() if not re.match("index |@@ -0|\\+n", line)]


def test_a_freeze_makes_the_commit_that_the_recipe_gives(place: Place) -> None:
    base = place.cloned()
    place.change()
    recipe = place.recipe(base)

    made = place.run(freeze(place.git, recipe))
    again = place.run(freeze(place.git, recipe))

    assert commit_id(recipe) == made == again
    assert made == place.run(resolve_ref(place.git, proposal_ref("p-s1")))
    assert place.run(tree_is_present(place.git, recipe.tree))
    assert not place.run(tree_is_present(place.git, TreeId("9" * 40)))
    assert place.run(resolve_ref(place.git, proposal_ref("p-s2"))) is None


def test_a_ref_that_stands_elsewhere_is_never_moved(place: Place) -> None:
    base = place.cloned()
    place.change()
    recipe = place.recipe(base)
    place.run(place.git.check("update-ref", "--no-deref", proposal_ref("p-s1"), base.commit))

    with pytest.raises(WorkspaceContradicts):
        place.run(freeze(place.git, recipe))


def _push(place: Place, commit: CommitId) -> Any:
    arguments = push_arguments(place.url, BRANCH, commit)
    result = place.run(place.git.remote(*arguments, url=place.url, credential=place.credential))
    return read_porcelain(result.stdout.decode(), BRANCH, result.stderr)


def test_a_push_creates_and_never_moves(place: Place) -> None:
    base = place.cloned()
    place.change()
    made = place.run(freeze(place.git, place.recipe(base)))
    ref = f"refs/heads/{BRANCH}"
    refs = (ref, "refs/heads/main")

    assert isinstance(_push(place, made), PushApplied)
    found = place.run(remote_refs(place.git, place.url, refs, place.credential))
    assert {ref: made, "refs/heads/main": base.commit} == found
    assert isinstance(_push(place, base.commit), PushRefused)
    found = place.run(remote_refs(place.git, place.url, (ref,), place.credential))
    assert {ref: made} == found


def test_a_host_that_knows_no_such_repository_is_a_failure(place: Place) -> None:
    url = place.url.replace(REPOSITORY, "team/other")
    arguments = ("ls-remote", "--quiet", "--end-of-options", url, "refs/heads/main")

    result = place.run(place.git.remote(*arguments, url=url, credential=place.credential))

    assert 0 != result.exit_code
    assert isinstance(remote_failure("ls-remote", result), RemoteFailed)


@pytest.fixture(params=[SimRepositories, RepositoryHost], ids=["double", "original"])
def repositories(request: pytest.FixtureRequest, tmp_path: Path) -> RepositoryHost:
    made: RepositoryHost = request.param(tmp_path / "repositories", FixtureClock())
    made.create(REPOSITORY)
    return made


def test_commits_of_a_bare_repository(repositories: RepositoryHost) -> None:
    first = repositories.add_commit(REPOSITORY, "main", {"a": "1\n", "d/b": "2\n"}, "First")
    second = repositories.add_commit(REPOSITORY, "main", {"a": "2\n"}, "Second")

    assert second == repositories.head(REPOSITORY, "main")
    assert repositories.is_ancestor(REPOSITORY, first, second)
    assert not repositories.is_ancestor(REPOSITORY, second, first)
    found = repositories.commit(REPOSITORY, second)
    assert found is not None
    assert ((first,), "Second") == (found.parents, found.message)
    assert ("A Stranger", "stranger@example.com") == found.author[:2]
    assert repositories.commit(REPOSITORY, "9" * 40) is None


def test_refs_move_by_compare_and_set_and_are_logged(repositories: RepositoryHost) -> None:
    first = repositories.add_commit(REPOSITORY, "main", {"a": "1\n"}, "First")
    ref = f"refs/heads/{BRANCH}"
    repositories.update_ref(REPOSITORY, ref, first, ZERO, "bot")

    with pytest.raises(GitError):
        repositories.update_ref(REPOSITORY, ref, first, "9" * 40, "bot")
    assert {ref: first, "refs/heads/main": first} == repositories.refs(REPOSITORY)
    assert {ref: first} == repositories.refs(REPOSITORY, ref)
    repositories.update_ref(REPOSITORY, ref, ZERO, first, "bot")
    assert repositories.head(REPOSITORY, BRANCH) is None
    assert ["create", "create", "delete"] == [one.kind for one in repositories.updates(REPOSITORY)]
    assert "bot" == repositories.updates(REPOSITORY)[-1].who
