"""A git repository as plain files: objects under their real ids, refs, an index. For the git double.

What is written stands on the volume, as with git itself, so a killed program leaves what it left.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

Flat = dict[str, tuple[str, str]]
"""Path to (mode, blob)."""
TREE: Final = "40000"


class Store:
    """One git directory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> None:
        """Create it."""
        (self.path / "objects").mkdir(parents=True)
        (self.path / "HEAD").write_text("ref: refs/heads/unused\n")

    def read(self, name: str) -> tuple[str, bytes] | None:
        """Kind and content of an object."""
        try:
            data = (self.path / "objects" / name).read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            return None
        kind, _, content = data.partition(b"\0")
        return kind.decode(), content

    def write(self, kind: str, content: bytes) -> str:
        """Store an object; gives its id."""
        header = f"{kind} {len(content)}\0".encode()
        name = hashlib.sha1(header + content, usedforsecurity=False).hexdigest()
        file = self.path / "objects" / name
        if not file.exists():
            file.write_bytes(kind.encode() + b"\0" + content)
        return name

    def ref(self, name: str) -> str | None:
        """The object that a full ref name points at."""
        file = self.path / name
        return file.read_text().strip() if file.is_file() else None

    def set_ref(self, name: str, value: str | None) -> None:
        """Move, make or delete a ref."""
        file = self.path / name
        if value is None:
            file.unlink(missing_ok=True)
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")

    def refs(self, prefix: str) -> dict[str, str]:
        """All refs below a prefix, or that ref itself."""
        root = self.path / prefix
        files = [root] if root.is_file() else sorted(root.rglob("*"))
        found = {str(file.relative_to(self.path)): file for file in files if file.is_file()}
        return {name: file.read_text().strip() for name, file in found.items()}

    def commit(self, name: str) -> tuple[str, tuple[str, ...]] | None:
        """Tree and parents of a commit."""
        found = self.read(name)
        if found is None or found[0] != "commit":
            return None
        head = found[1].partition(b"\n\n")[0].decode().splitlines()
        parents = tuple(line[7:] for line in head if line.startswith("parent "))
        return head[0].removeprefix("tree "), parents

    def children(self, tree: str) -> list[tuple[str, str, str]]:
        """Mode, name and id of what a tree holds directly."""
        found = self.read(tree)
        assert found is not None, f"no tree {tree}"
        assert found[0] == "tree"
        data, position, rows = found[1], 0, []
        while position < len(data):
            end = data.index(b"\0", position)
            mode, _, name = data[position:end].decode().partition(" ")
            rows.append((mode, name, data[end + 1 : end + 21].hex()))
            position = end + 21
        return rows

    def walk(self, tree: str, prefix: str = "") -> Iterator[tuple[str, str, str]]:
        """Mode, path and id of everything beneath, trees before what they hold."""
        for mode, name, child in self.children(tree):
            yield mode, prefix + name, child
            if mode == TREE:
                yield from self.walk(child, f"{prefix}{name}/")

    def flat(self, tree: str) -> Flat:
        """Its files."""
        return {path: (mode, name) for mode, path, name in self.walk(tree) if mode != TREE}

    def write_flat(self, flat: Mapping[str, tuple[str, str]]) -> str:
        """The tree of these files."""
        here: dict[str, tuple[str, str]] = {}
        below: dict[str, dict[str, tuple[str, str]]] = {}
        for path, entry in flat.items():
            first, slash, rest = path.partition("/")
            if slash:
                below.setdefault(first, {})[rest] = entry
            else:
                here[first] = entry
        for name, files in below.items():
            here[name] = (TREE, self.write_flat(files))

        def order(name: str) -> bytes:
            """A tree sorts as if its name ended with a slash."""
            return f"{name}/".encode() if here[name][0] == TREE else name.encode()

        rows = [
            f"{here[name][0]} {name}".encode() + b"\0" + bytes.fromhex(here[name][1])
            for name in sorted(here, key=order)
        ]
        return self.write("tree", b"".join(rows))

    def is_ancestor(self, ancestor: str, descendant: str) -> bool:
        """Whether a commit is reachable from another; it reaches itself."""
        waiting, seen = [descendant], set()
        while waiting:
            name = waiting.pop()
            if name == ancestor:
                return True
            if name not in seen and (found := self.commit(name)) is not None:
                seen.add(name)
                waiting += found[1]
        return False

    def reached(self, commit: str, *, whole: bool) -> Iterator[str]:
        """Everything that a commit reaches; without `whole` only its own tree."""
        waiting, seen = [commit], set()
        while waiting:
            name = waiting.pop()
            found = self.commit(name)
            if name in seen or found is None:
                continue
            seen.add(name)
            tree, parents = found
            yield name
            yield tree
            yield from (child for _, _, child in self.walk(tree))
            waiting += parents if whole else ()

    def copy(self, other: "Store", commit: str, *, whole: bool) -> None:
        """Fetch a commit and what it reaches from another repository."""
        for name in other.reached(commit, whole=whole):
            target = self.path / "objects" / name
            if not target.exists():
                target.write_bytes((other.path / "objects" / name).read_bytes())


def read_index(file: Path) -> Flat:
    """The files of an index; one that isn't there holds nothing."""
    if not file.exists():
        return {}
    return {path: (mode, blob) for path, (mode, blob) in json.loads(file.read_text()).items()}


def write_index(file: Path, flat: Flat) -> None:
    """Write an index."""
    file.write_text(json.dumps(flat))
