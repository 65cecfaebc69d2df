"""Hostile repositories, environments and git directories (H27, H28 X): the marker never appears.

Each case offers git a way to run `touch <marker>`. The whole path of a run is walked: clone, list,
snapshot, checkout, candidate, diff, patch, freeze.
"""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.fixtures.launch import Host
from upgraderun_protocol.ids import RunUid
from upgraderun_runner.workspace.candidate import candidate_tree, ignored_paths
from upgraderun_runner.workspace.clone import Source, clone_base
from upgraderun_runner.workspace.diff import diff_trees, patch_of
from upgraderun_runner.workspace.errors import BaseMissing, RemoteFailed, TreeRefused
from upgraderun_runner.workspace.files import replace_file
from upgraderun_runner.workspace.git import Credential, Git
from upgraderun_runner.workspace.layout import Layout
from upgraderun_runner.workspace.proposal import freeze
from upgraderun_runner.workspace.recipe import Recipe
from upgraderun_runner.workspace.snapshot import checkout, make_snapshot

REPOSITORY = "acme/shop"


@dataclass(frozen=True, slots=True)
class Walk:
    """Walks the path of a run over whatever the remote offers; says how far it came."""

    git: Git
    layout: Layout
    url: str
    credential: Credential

    async def __call__(self) -> str:
        try:
            base = await clone_base(self.git, Source(self.url), self.credential)
        except (RemoteFailed, BaseMissing):
            return "clone refused"
        try:
            await make_snapshot(self.git, self.layout, base.tree)
            await checkout(self.git, self.layout, base.tree)
        except TreeRefused:
            assert [] == [*self.layout.work.iterdir(), *self.layout.snapshots.iterdir()]
            return "tree refused"
        assert base.tree == await candidate_tree(self.git, self.layout, base.tree)
        replace_file(self.layout.work, "a.py", b"changed\n")
        tree = await candidate_tree(self.git, self.layout, base.tree)
        await ignored_paths(self.git, self.layout, base.tree, ("x/y.py",))
        changed = await diff_trees(self.git, base.tree, tree)
        assert ["a.py"] == [change.path for change in changed.files]
        assert (await patch_of(self.git, base.tree, tree, 100_000)).text
        recipe = Recipe(
            tree, base.commit, "Bot", "bot@example.com", 1, "Upgrade", "Body",
            RunUid("3f1c9a2b-0000-4000-8000-000000000001"), "3f1c9a2b-s1",
        )  # fmt: skip
        await freeze(self.git, recipe)
        return "frozen"


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "MARKER"


@pytest.fixture(autouse=True)
def poisoned_environment(tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a taken-over parent or a careless image could leave in environment and HOME."""
    touch = f"touch {marker}"
    home = tmp_path / "evil-home"
    home.mkdir()
    (home / ".gitconfig").write_text(config(touch))
    (home / ".netrc").write_text("machine 127.0.0.1 login x password y\n")
    script = home / "evil"
    script.write_text(f"#!/bin/sh\n{touch}\n")
    script.chmod(0o755)
    for name, value in {
        "HOME": str(home), "XDG_CONFIG_HOME": str(home), "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_CONFIG_SYSTEM": str(home / ".gitconfig"), "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": touch,
        "GIT_CONFIG_PARAMETERS": f"'core.fsmonitor={touch}'", "GIT_EXTERNAL_DIFF": str(script),
        "GIT_SSH_COMMAND": touch, "GIT_SSH": str(script), "GIT_PROXY_COMMAND": str(script),
        "GIT_ASKPASS": str(script), "SSH_ASKPASS": str(script), "GIT_EDITOR": touch, "PAGER": touch,
        "GIT_PAGER": touch, "GIT_TRACE": str(marker), "GIT_TRACE2": str(marker),
        "GIT_TEMPLATE_DIR": str(home), "GIT_EXEC_PATH": str(home), "GIT_ALTERNATE_OBJECT_DIRECTORIES": "/",
        "GIT_ALLOW_PROTOCOL": "ext:file:http:https", "GIT_PROTOCOL_FROM_USER": "1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)


def config(touch: str) -> str:
    return f"""
[core]
    fsmonitor = "{touch}"
    hooksPath = /nowhere
    sshCommand = "{touch}"
    editor = "{touch}"
    pager = "{touch}"
    gitProxy = "{touch}"
    attributesFile = /nowhere
[filter "evil"]
    clean = "{touch}; cat"
    smudge = "{touch}; cat"
    process = "{touch}"
    required = true
[diff "evil"]
    command = "{touch}"
    textconv = "{touch}; cat"
[diff]
    external = "{touch}"
[merge "evil"]
    driver = "{touch}"
[credential]
    helper = "!{touch}"
[gpg]
    program = "{touch}"
[commit]
    gpgSign = true
[protocol]
    allow = always
[url "ext::sh -c {touch} "]
    insteadOf = ext-
[submodule]
    recurse = true
[uploadpack]
    packObjectsHook = "{touch}"
[alias]
    fetch = "!{touch}"
    ls-tree = "!{touch}"
"""


@pytest.fixture
def walk(git: Git, layout: Layout, host: Host, clone_credential: Credential) -> Walk:
    return Walk(git, layout, host.repository_url(REPOSITORY), clone_credential)


EVIL_ATTRIBUTES = (
    "* filter=evil diff=evil merge=evil text=auto eol=crlf ident working-tree-encoding=UTF-16\n"
    "*.py export-subst\n"
)


def in_tree(files: dict[str, Any]) -> Callable[[Any, Path], None]:
    """A repository with these files, `MARKER` in them replaced by the marker's path."""

    def make(remote: Any, marker: Path) -> None:
        filled = {
            path: value.replace("MARKER", str(marker)) if isinstance(value, str) else value
            for path, value in files.items()
        }
        remote.commit(remote.tree({"a.py": "x = 1\n", **filled}))

    return make


def raw(mode: str, name: bytes, content: bytes = b"x") -> Callable[[Any, Path], None]:
    """A tree entry that no honest client makes."""

    def make(remote: Any, marker: Path) -> None:
        object_id = "1" * 40 if mode == "160000" else remote.blob(content)
        rows = sorted([("100644", b"a.py", remote.blob(b"x = 1\n")), (mode, name, object_id)],
                      key=lambda row: row[1])  # fmt: skip
        remote.commit(remote.raw_tree(rows))

    return make


def nested(directory: bytes, name: bytes) -> Callable[[Any, Path], None]:
    """A file in a directory of an odd name."""

    def make(remote: Any, marker: Path) -> None:
        content = f"[core]\n\tfsmonitor = touch {marker}\n".encode()
        inner = remote.raw_tree([("100644", name, remote.blob(content))])
        rows = sorted(
            [("100644", b"a.py", remote.blob(b"x = 1\n")), ("40000", directory, inner)],
            key=lambda row: row[1],
        )
        remote.commit(remote.raw_tree(rows))

    return make


def link_and_directory(remote: Any, marker: Path) -> None:
    """`d` is a link out and a directory: a naive writer follows the link."""
    inner = remote.raw_tree([("100644", marker.name.encode(), remote.blob(b"x"))])
    rows = [
        ("100644", b"a.py", remote.blob(b"x = 1\n")),
        ("120000", b"d", remote.blob(str(marker.parent).encode())),
        ("40000", b"d", inner),
    ]
    remote.commit(remote.raw_tree(rows))


def replaced_object(remote: Any, marker: Path) -> None:
    """A replacement ref that shows another tree for the base commit."""
    commit = remote.commit(remote.tree({"a.py": "x = 1\n"}))
    other = remote.commit(remote.tree({"evil": "x"}), branch="other")
    remote.git("update-ref", f"refs/replace/{commit}", other)


def odd_default_branch(remote: Any, marker: Path) -> None:
    """HEAD names a branch that reads as a command and an option."""
    commit = remote.commit(remote.tree({"a.py": "x = 1\n"}))
    branch = f"$(touch${{IFS}}{marker.name})"
    remote.git("update-ref", f"refs/heads/{branch}", commit)
    remote.git("symbolic-ref", "HEAD", f"refs/heads/{branch}")


def signed_by_a_program(remote: Any, marker: Path) -> None:
    """A commit with a signature, which `log.showSignature` would check by a program."""
    tree = remote.tree({"a.py": "x = 1\n"})
    who = "A\x1b[31mnn <a@b.c> 1700000000 +0000"
    data = (
        f"tree {tree}\nauthor {who}\ncommitter {who}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n"
        " AAAA\n -----END PGP SIGNATURE-----\n\nmessage\n"
    ).encode()
    commit = remote.git("hash-object", "-w", "-t", "commit", "--stdin", stdin=data)
    remote.git("update-ref", "refs/heads/main", commit)


BARE = {
    "inner/HEAD": "ref: refs/heads/main\n",
    "inner/config": "[core]\n\tbare = true\n\tfsmonitor = touch MARKER\n\tworktree = ..\n",
    "inner/objects/info/packs": "",
    "inner/refs/heads/.keep": "",
    "inner/hooks/post-checkout": ("100755", b"#!/bin/sh\ntouch MARKER\n"),
}

CASES: dict[str, tuple[Callable[[Any, Path], None], str]] = {
    "attributes-with-filters": (in_tree({".gitattributes": EVIL_ATTRIBUTES, "b.py": "$Id$"}), "frozen"),
    "nested-attributes": (in_tree({"d/.gitattributes": EVIL_ATTRIBUTES, "d/b": "x\r\n"}), "frozen"),
    "config-in-dot-git": (nested(b".git", b"config"), "clone refused"),
    "config-in-upper-case": (nested(b".GIT", b"config"), "clone refused"),
    "config-in-ntfs-name": (nested(b"git~1", b"config"), "clone refused"),
    "config-in-hfs-name": (nested(b".g\xe2\x80\x8cit", b"config"), "clone refused"),
    "config-in-wide-name": (nested("．git".encode(), b"config"), "tree refused"),  # noqa: RUF001 - the look-alike is the case
    "config-with-trailing-dot": (nested(b".git.", b"config"), "clone refused"),
    "config-with-a-stream": (nested(b".git::$INDEX_ALLOCATION", b"config"), "clone refused"),
    "bare-repository-inside": (in_tree(BARE), "frozen"),
    "hooks-and-husky": (
        in_tree({
            ".githooks/post-checkout": ("100755", b"#!/bin/sh\ntouch MARKER\n"),
            ".husky/pre-commit": ("100755", b"#!/bin/sh\n"), ".gitconfig": "[core]\n\thooksPath = .githooks\n",
        }),
        "frozen",
    ),
    "submodule-with-a-command": (raw("160000", b"sub"), "tree refused"),
    "gitmodules-with-ext": (
        in_tree({".gitmodules": '[submodule "s"]\n\tpath = s\n\turl = ext::sh -c touch% MARKER\n\tupdate = !touch MARKER\n'}),
        "clone refused",
    ),
    "gitmodules-with-an-option": (
        in_tree({".gitmodules": '[submodule "s"]\n\tpath = s\n\turl = --upload-pack=touch MARKER\n'}),
        "clone refused",
    ),
    "gitmodules-as-a-link": (in_tree({".gitmodules": ("120000", b"a.py")}), "frozen"),
    "lfs-configuration": (
        in_tree({
            ".lfsconfig": "[lfs]\n\turl = ext::sh -c touch% MARKER\n",
            ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n",
            "x.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 1\n",
        }),
        "frozen",
    ),
    "names-that-read-as-options-and-commands": (
        in_tree({
            "--upload-pack=touch MARKER": "x", "-rf": "x", "$(touch MARKER)": "x", "`touch MARKER`": "x",
            ";touch MARKER;": "x", ":(exclude)a.py": "x", ":!a": "x", "a b\tc": "x", '"quoted"': "x", "*": "x",
        }),
        "frozen",
    ),
    "newline-in-a-name": (raw("100644", b"a\ntouch b"), "tree refused"),
    "name-that-is-not-utf8": (raw("100644", b"\xff\xfe"), "tree refused"),
    "link-to-a-secret": (in_tree({"link": ("120000", b"/etc/passwd")}), "tree refused"),
    "link-out-of-the-tree": (in_tree({"d/link": ("120000", b"../../../MARKER")}), "tree refused"),
    "link-into-git": (in_tree({"link": ("120000", b".git/hooks")}), "tree refused"),
    "links-that-combine-outwards": (
        in_tree({"p/q/d": ("120000", b"../.."), "p/q/e": ("120000", b"d/../MARKER")}), "tree refused",
    ),
    "link-and-directory-of-one-name": (link_and_directory, "clone refused"),
    "replaced-object": (replaced_object, "frozen"),
    "odd-default-branch": (odd_default_branch, "frozen"),
    "signed-by-a-program": (signed_by_a_program, "frozen"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
async def test_hostile_repository_runs_nothing(
    walk: Walk, remote: Any, marker: Path, case: str
) -> None:
    make, expected = CASES[case]
    make(remote, marker)

    came = await walk()

    assert expected == came
    assert not happened(marker, walk.layout.work / marker.name)


def happened(*markers: Path) -> bool:
    return any(marker.exists() for marker in markers)


def poison(git_dir: Path, marker: Path) -> None:
    """What a sandbox would write if it could reach the git directory."""
    touch = f"touch {marker}"
    with (git_dir / "config").open("a") as file:
        file.write(config(touch))
    (git_dir / "info").mkdir(exist_ok=True)
    (git_dir / "info/attributes").write_text(EVIL_ATTRIBUTES)
    (git_dir / "hooks").mkdir(exist_ok=True)
    for hook in (
        "reference-transaction", "post-checkout", "post-index-change", "pre-push", "pre-commit",
        "post-commit", "fsmonitor-watchman", "pre-auto-gc", "post-rewrite",
    ):  # fmt: skip
        path = git_dir / "hooks" / hook
        path.write_text(f"#!/bin/sh\n{touch}\n")
        path.chmod(0o755)


async def test_poisoned_git_directory_runs_nothing(
    git: Git, layout: Layout, remote: Any, marker: Path, host: Host, clone_credential: Credential
) -> None:
    """Not reachable for a sandbox (H28), and harmless even if it were."""
    remote.commit(remote.tree({"a.py": "x = 1\n", ".gitattributes": EVIL_ATTRIBUTES}))
    base = await clone_base(git, Source(host.repository_url(REPOSITORY)), clone_credential)
    poison(layout.git, marker)

    await make_snapshot(git, layout, base.tree)
    await checkout(git, layout, base.tree)
    replace_file(layout.work, "a.py", b"changed\n")
    tree = await candidate_tree(git, layout, base.tree)
    await diff_trees(git, base.tree, tree)
    patch = await patch_of(git, base.tree, tree, 100_000)
    uid = RunUid("3f1c9a2b-0000-4000-8000-000000000001")
    recipe = Recipe(tree, base.commit, "Bot", "b@c.d", 1, "Upgrade", "Body", uid, "3f1c9a2b-s1")
    await freeze(git, recipe)

    assert "-x = 1\n+changed\n" in patch.text
    assert not happened(marker)


async def test_the_poison_works_on_plain_git(
    git: Git, layout: Layout, remote: Any, marker: Path, host: Host, clone_credential: Credential
) -> None:
    """Otherwise the tests above would prove nothing."""
    remote.commit(remote.tree({"a.py": "x = 1\n", ".gitattributes": EVIL_ATTRIBUTES}))
    await clone_base(git, Source(host.repository_url(REPOSITORY)), clone_credential)
    poison(layout.git, marker)

    plain_git(layout, "status")

    assert happened(marker)


def plain_git(layout: Layout, *arguments: str) -> None:
    """Git as anybody would start it."""
    subprocess.run(
        ["git", f"--git-dir={layout.git}", f"--work-tree={layout.work}", *arguments],
        check=False,
        capture_output=True,
        env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]},
    )
