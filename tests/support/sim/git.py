"""A double of the program git: the commands that runner and publisher give, on `support.sim.gitstore`.

Called by the simulated machine instead of a process. A command or option that isn't known is a
failure of the test, never guessed. tests/sim/test_contract_git.py holds it against git itself.
"""

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.sim.gitstore import Flat, Store, read_index, write_index
from support.sim.loop import Ended, Started

NO_OBJECT: Final = "0" * 40


class NoAnswer(Exception):  # noqa: N818 - a host that is away
    """The git host doesn't answer."""


@dataclass(frozen=True, slots=True)
class Remotes:
    """Who answers for a URL: the repository (None: not found), and what a push does."""

    find: Callable[[str, str], Store | None]
    push: Callable[[Store, str, str, str], str | None]


@dataclass(frozen=True, slots=True)
class _Call:
    """One command: what is left of its arguments once options are known."""

    started: Started
    store: Store
    arguments: list[str]
    remotes: Remotes | None

    @property
    def index(self) -> Path:
        return Path(self.started.env["GIT_INDEX_FILE"])

    @property
    def work_tree(self) -> Path:
        return Path(self.started.env["GIT_WORK_TREE"])

    @property
    def rest(self) -> list[str]:
        """What follows the options."""
        found = self.arguments
        if "--end-of-options" in found:
            return found[found.index("--end-of-options") + 1 :]
        return [one for one in found if not one.startswith("-")]

    def remote(self, url: str) -> Store:
        """The repository behind a URL."""
        assert self.remotes is not None, "no host in this world"
        secret = self.started.env.get("UPGRADERUN_GIT_SECRET", "")
        found = self.remotes.find(url, secret)
        if found is None:
            raise NoAnswer(f"fatal: repository '{url}' not found")
        return found


class SimGit:
    """The program. Without `remotes` no host answers."""

    def __init__(self, remotes: Remotes | None = None) -> None:
        self._remotes = remotes

    def __call__(self, started: Started) -> Ended:
        """Run one command line."""
        words = list(started.argv)
        assert words[0] == "git", words
        words = words[words.index("--no-pager") + 1 :]
        while words[0] == "-c":
            words = words[2:]
        command, *arguments = words
        assert command in _COMMANDS, f"the git double doesn't know {words}"
        store = Store(Path(started.env["GIT_DIR"]))
        try:
            return _COMMANDS[command](_Call(started, store, arguments, self._remotes))
        except NoAnswer as error:
            return Ended(128, b"", str(error).encode())


def _init(call: _Call) -> Ended:
    call.store.make()
    return Ended(0)


def _rev_parse(call: _Call) -> Ended:
    if call.arguments == ["--is-shallow-repository"]:
        shallow = (call.store.path / "shallow").exists()
        return Ended(0, b"true\n" if shallow else b"false\n")
    (wanted,) = call.rest
    name, peel, _ = wanted.partition("^")
    found = call.store.ref(name) or (name if call.store.read(name) else None)
    if found is not None and peel:
        commit = call.store.commit(found)
        found = commit[0] if commit else None
    if found is None:
        return Ended(1 if "--quiet" in call.arguments else 128)
    return Ended(0, f"{found}\n".encode())


def _update_ref(call: _Call) -> Ended:
    name, new, *old = call.rest
    if old:
        found = call.store.ref(name)
        if found != (None if old[0] == NO_OBJECT else old[0]):
            return Ended(128, b"", b"fatal: cannot lock ref")
    call.store.set_ref(name, new)
    return Ended(0)


def _cat_file(call: _Call) -> Ended:
    if call.arguments == ["--batch"]:
        return Ended(0, b"".join(_batch(call.store, call.started.stdin.decode().split())))
    if call.arguments[0] == "-e":
        return Ended(0 if call.store.commit(call.arguments[1].partition("^")[0]) else 1)
    kind, name = call.arguments
    found = call.store.read(name)
    if found is None or found[0] != kind:
        return Ended(128, b"", b"fatal: Not a valid object name")
    return Ended(0, found[1])


def _batch(store: Store, names: list[str]) -> Iterator[bytes]:
    for name in names:
        found = store.read(name)
        if found is None:
            yield f"{name} missing\n".encode()
        else:
            yield f"{name} {found[0]} {len(found[1])}\n".encode() + found[1] + b"\n"


def _ls_tree(call: _Call) -> Ended:
    assert call.arguments[:5] == ["-r", "-t", "-l", "-z", "--full-tree"], call.arguments
    (tree,) = call.rest
    if call.store.read(tree) is None:
        return Ended(128, b"", b"fatal: not a tree object")
    rows = []
    for mode, path, name in call.store.walk(tree):
        found = call.store.read(name)
        kind = found[0] if found else "blob"
        size = "-" if kind == "tree" or found is None else str(len(found[1]))
        rows.append(f"{mode:0>6} {kind} {name} {size:>7}\t{path}\0")
    return Ended(0, "".join(rows).encode())


def _read_tree(call: _Call) -> Ended:
    (tree,) = call.rest
    write_index(call.index, call.store.flat(tree))
    return Ended(0)


def _update_index(call: _Call) -> Ended:
    flat = read_index(call.index)
    for line in call.started.stdin.decode().split("\0"):
        if not line:
            continue
        head, _, path = line.partition("\t")
        mode, blob = head.split()
        if mode == "0":
            flat.pop(path, None)
        else:
            flat[path] = (mode, blob)
    write_index(call.index, flat)
    return Ended(0)


def _write_tree(call: _Call) -> Ended:
    return Ended(0, f"{call.store.write_flat(read_index(call.index))}\n".encode())


def _hash_object(call: _Call) -> Ended:
    assert call.arguments == ["-w", "-t", "blob", "--no-filters", "--stdin"], call.arguments
    return Ended(0, f"{call.store.write('blob', call.started.stdin)}\n".encode())


def _ls_files(call: _Call) -> Ended:
    """Untracked files; ignore rules aren't known here, so there may be none."""
    tracked = read_index(call.index)
    found = [
        str(file.relative_to(call.work_tree))
        for file in sorted(call.work_tree.rglob("*"))
        if file.is_file()
    ]
    assert not any(name.endswith(".gitignore") for name in found), "ignore rules aren't doubled"
    untracked = (
        [] if "--ignored" in call.arguments else [one for one in found if one not in tracked]
    )
    return Ended(0, "".join(f"{one}\0" for one in untracked).encode())


def _commit_tree(call: _Call) -> Ended:
    tree, *more = call.arguments
    parents = [more[n + 1] for n, word in enumerate(more) if word == "-p"]
    env = call.started.env
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    for role in ("AUTHOR", "COMMITTER"):
        who = f"{env[f'GIT_{role}_NAME']} <{env[f'GIT_{role}_EMAIL']}>"
        lines.append(f"{role.lower()} {who} {env[f'GIT_{role}_DATE'].removeprefix('@')}")
    content = "\n".join(lines).encode() + b"\n\n" + call.started.stdin
    return Ended(0, f"{call.store.write('commit', content)}\n".encode())


def _rev_list(call: _Call) -> Ended:
    """Whether a tree and all that it reaches are there."""
    (tree,) = call.rest
    if call.store.read(tree) is None:
        return Ended(128, b"", b"fatal: bad object")
    complete = all(call.store.read(name) is not None for _, _, name in call.store.walk(tree))
    return Ended(0 if complete else 128)


def _merge_base(call: _Call) -> Ended:
    assert call.arguments[0] == "--is-ancestor", call.arguments
    return Ended(0 if call.store.is_ancestor(*call.arguments[1:]) else 1)


def _diff_tree(call: _Call) -> Ended:
    old, new = call.rest[:2]
    changes = _changes(call.store.flat(old), call.store.flat(new))
    if "--raw" in call.arguments:
        return Ended(0, "".join(_raw(*change) for change in changes).encode())
    if "--numstat" in call.arguments:
        return Ended(0, b"".join(_numstat(call.store, *change) for change in changes))
    return Ended(0, "".join(_patch(call.store, *change) for change in changes).encode())


Side = tuple[str, str] | None


def _changes(old: Flat, new: Flat) -> list[tuple[str, Side, Side]]:
    paths = sorted({*old, *new}, key=str.encode)
    return [(p, old.get(p), new.get(p)) for p in paths if old.get(p) != new.get(p)]


def _raw(path: str, old: Side, new: Side) -> str:
    status = "A" if old is None else "D" if new is None else "M"
    (old_mode, old_blob), (new_mode, new_blob) = (
        side or ("000000", NO_OBJECT) for side in (old, new)
    )
    return f":{old_mode} {new_mode} {old_blob} {new_blob} {status}\0{path}\0"


def _lines(store: Store, side: Side) -> list[str]:
    found = store.read(side[1]) if side else None
    return found[1].decode().splitlines(keepends=True) if found else []


def _numstat(store: Store, path: str, old: Side, new: Side) -> bytes:
    rows = list(difflib.unified_diff(_lines(store, old), _lines(store, new), n=0))[2:]
    added = sum(row.startswith("+") for row in rows)
    removed = sum(row.startswith("-") for row in rows)
    return f"{added}\t{removed}\t{path}\0".encode()


def _patch(store: Store, path: str, old: Side, new: Side) -> str:
    head = f"diff --git a/{path} b/{path}\n"
    if old is None or new is None:
        head += f"{'new' if old is None else 'deleted'} file mode {(old or new or ('', ''))[0]}\n"
    blobs = [side[1] if side else NO_OBJECT for side in (old, new)]
    mode = f" {new[0]}" if old and new else ""
    head += f"index {blobs[0]}..{blobs[1]}{mode}\n"
    names = ["/dev/null" if side is None else f"{x}/{path}" for x, side in (("a", old), ("b", new))]
    return head + "".join(
        difflib.unified_diff(_lines(store, old), _lines(store, new), names[0], names[1])
    )


def _fetch(call: _Call) -> Ended:
    url, spec = call.rest
    source, _, target = spec.removeprefix("+").partition(":")
    other = call.remote(url)
    head = other.ref(source)
    if head is None:
        return Ended(128, b"", f"fatal: couldn't find remote ref {source}".encode())
    whole = "--depth=1" not in call.arguments
    shallow = call.store.path / "shallow"
    call.store.copy(other, head, whole=whole)
    if whole:
        shallow.unlink(missing_ok=True)
    else:
        shallow.write_text(f"{head}\n")
    call.store.set_ref(target, head)
    return Ended(0)


def _ls_remote(call: _Call) -> Ended:
    url, *wanted = call.rest
    other = call.remote(url)
    if "--symref" in call.arguments:
        head = (other.path / "HEAD").read_text().strip().removeprefix("ref: ")
        return Ended(0, f"ref: {head}\tHEAD\n{other.ref(head)}\tHEAD\n".encode())
    found = [(name, other.ref(name)) for name in wanted]
    return Ended(0, "".join(f"{at}\t{name}\n" for name, at in found if at).encode())


def _push(call: _Call) -> Ended:
    url, spec = call.rest
    commit, _, ref = spec.partition(":")
    other = call.remote(url)
    assert f"--force-with-lease={ref}:" in call.arguments, "a push creates, it never moves"
    head = f"To {url}\n"
    there = other.ref(ref)
    if there is not None:
        same = there == commit
        flag, word = ("=", "[up to date]") if same else ("!", "[rejected] (stale info)")
        end = "Done\n" if same else ""
        return Ended(0 if same else 1, f"{head}{flag}\t{commit}:{ref}\t{word}\n{end}".encode())
    assert call.remotes is not None
    other.copy(call.store, commit, whole=True)
    refused = call.remotes.push(other, url, ref, commit)
    if refused is not None:
        row = f"!\t{commit}:{ref}\t[remote rejected] ({refused})\n"
        return Ended(1, (head + row).encode(), refused.encode())
    return Ended(0, f"{head}*\t{commit}:{ref}\t[new branch]\nDone\n".encode())


_COMMANDS: Final[dict[str, Callable[[_Call], Ended]]] = {
    "init": _init,
    "rev-parse": _rev_parse,
    "update-ref": _update_ref,
    "cat-file": _cat_file,
    "ls-tree": _ls_tree,
    "read-tree": _read_tree,
    "update-index": _update_index,
    "write-tree": _write_tree,
    "hash-object": _hash_object,
    "ls-files": _ls_files,
    "commit-tree": _commit_tree,
    "rev-list": _rev_list,
    "merge-base": _merge_base,
    "diff-tree": _diff_tree,
    "fetch": _fetch,
    "ls-remote": _ls_remote,
    "push": _push,
}
