"""Listing a tree and the rules it must keep before a byte of it is written (upgrade-run.md §6).

Callers: `snapshot`, `candidate`, `verify`, and the profile phase, which turns `TreeRefused` into
`unsupported` with every violation.
"""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Final

from upgraderun_protocol.ids import TreeId
from upgraderun_runner.workspace import limits
from upgraderun_runner.workspace.errors import GitFailed, OutputTooLong, TreeRefused, Violation
from upgraderun_runner.workspace.git import LOCAL, Bounds, Git
from upgraderun_runner.workspace.paths import link_violation, path_violation, shown

REGULAR: Final = "100644"
EXECUTABLE: Final = "100755"
LINK: Final = "120000"
_SUBMODULE: Final = "160000"
_RAW_MODES: Final = frozenset({b"100644", b"100755", b"120000", b"160000", b"40000"})
_ID_BYTES: Final = 20
_BATCH_BYTES: Final = 32 * limits.MIB
_HEADER_BYTES: Final = 128


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One file or link of a tree; `blob` is its SHA-1 object id."""

    path: str
    mode: str
    blob: str
    size: int


async def list_tree(git: Git, tree: TreeId, bounds: Bounds = LOCAL) -> tuple[TreeEntry, ...]:
    """Every file of a tree in git's order, *checked*: raises TreeRefused with the violations.

    Codes: `mode`, `submodule`, `path`, `duplicate`, `too_many_files`, `too_large`, `link`.
    """
    try:
        out = await git.check(
            "ls-tree", "-r", "-t", "-l", "-z", "--full-tree", "--end-of-options", tree,
            bounds=bounds,
        )  # fmt: skip
    except OutputTooLong as error:
        raise TreeRefused((_too_many(limits.TREE_FILES_MAX),)) from error
    entries, directories, undecodable = parse_listing(out)
    modes = await _odd_modes(git, (tree, *directories))
    early = (*undecodable, *modes, *tree_violations(entries))
    if early:
        raise TreeRefused(early[: limits.VIOLATIONS_MAX])
    targets = await link_targets(git, entries)
    found = (link_violation(path, target, targets) for path, target in targets.items())
    refused = tuple(violation for violation in found if violation is not None)
    if refused:
        raise TreeRefused(refused[: limits.VIOLATIONS_MAX])
    return entries


def parse_listing(
    out: bytes,
) -> tuple[tuple[TreeEntry, ...], tuple[TreeId, ...], tuple[Violation, ...]]:
    """Read `ls-tree -r -t -l -z`: files, ids of directories, violations for names not UTF-8."""
    entries: list[TreeEntry] = []
    directories: list[TreeId] = []
    undecodable: list[Violation] = []
    for line in out.split(b"\0"):
        if not line:
            continue
        head, _, raw = line.partition(b"\t")
        mode, kind, blob, size = head.decode("ascii").split()
        if kind == "tree":
            directories.append(TreeId(blob))
            continue
        try:
            path = raw.decode("utf-8")
        except UnicodeDecodeError:
            undecodable.append(Violation("path", shown(raw.decode("latin-1")), "not UTF-8"))
            continue
        entries.append(TreeEntry(path, mode, blob, int(size) if size != "-" else 0))
    return tuple(entries), tuple(directories), tuple(undecodable)


async def _odd_modes(git: Git, trees: tuple[TreeId, ...]) -> tuple[Violation, ...]:
    """Modes that git shows as another one, such as 100664: rebuilding would alter the tree."""
    wanted = tuple(dict.fromkeys(trees))
    out = await git.check("cat-file", "--batch", stdin="".join(f"{t}\n" for t in wanted).encode())
    found: list[Violation] = []
    position = 0
    for tree in wanted:
        header, _, _ = out[position : position + _HEADER_BYTES].partition(b"\n")
        if not header.startswith(f"{tree} tree ".encode()):
            raise GitFailed("cat-file", 0, f"{tree} isn't a tree")
        start = position + len(header) + 1
        end = start + int(header.split()[2])
        found.extend(_raw_mode_violations(out[start:end]))
        position = end + 1
    return tuple(found)


def _raw_mode_violations(data: bytes) -> Iterable[Violation]:
    """Read a tree object: `<mode> <name>NUL<20 bytes>` repeated."""
    position = 0
    while position < len(data):
        space = data.index(b" ", position)
        end = data.index(b"\0", space)
        mode = data[position:space].lstrip(b"0")  # padded modes: old history has them
        if mode not in _RAW_MODES:
            name = shown(data[space + 1 : end].decode("utf-8", errors="replace"))
            yield Violation("mode", name, f"mode {mode.decode('latin-1')} isn't supported")
        position = end + 1 + _ID_BYTES


def tree_violations(entries: tuple[TreeEntry, ...]) -> tuple[Violation, ...]:
    """Judge a listing by all rules but those of link targets. Pure."""
    found: list[Violation] = []
    if len(entries) > limits.TREE_FILES_MAX:
        found.append(_too_many(len(entries)))
    total = sum(entry.size for entry in entries)
    if total > limits.TREE_BYTES_MAX:
        detail = f"{total} bytes in all, at most {limits.TREE_BYTES_MAX}"
        found.append(Violation("too_large", ".", detail))
    for entry in entries:
        found.extend(_entry_violations(entry))
    found.extend(_clashes(entries))
    return tuple(found)


def _too_many(count: int) -> Violation:
    return Violation(
        "too_many_files", ".", f"{count} files or more, at most {limits.TREE_FILES_MAX}"
    )


def _entry_violations(entry: TreeEntry) -> Iterable[Violation]:
    name = shown(entry.path)
    if refused := path_violation(entry.path):
        yield refused
    if entry.mode == _SUBMODULE:
        yield Violation("submodule", name, "submodules aren't supported")
    elif entry.mode not in {REGULAR, EXECUTABLE, LINK}:
        yield Violation("mode", name, f"mode {entry.mode} isn't supported")
    if entry.size > limits.TREE_FILE_BYTES_MAX:
        detail = f"{entry.size} bytes, at most {limits.TREE_FILE_BYTES_MAX}"
        yield Violation("too_large", name, detail)
    if entry.mode == LINK and entry.size > limits.LINK_TARGET_BYTES_MAX:
        yield Violation("link", name, "its target is too long")


def _clashes(entries: tuple[TreeEntry, ...]) -> Iterable[Violation]:
    """Paths that occur twice, or once as a file and once as a directory."""
    seen: set[str] = set()
    for entry in entries:
        if entry.path in seen:
            yield Violation("duplicate", shown(entry.path), "occurs twice")
        seen.add(entry.path)
    for path in seen:
        parent = path.rpartition("/")[0]
        while parent:
            if parent in seen:
                yield Violation("duplicate", shown(parent), "is a file and a directory")
            parent = parent.rpartition("/")[0]


async def link_targets(git: Git, entries: Iterable[TreeEntry]) -> dict[str, bytes]:
    """The target of every link of a listing."""
    links = tuple(entry for entry in entries if entry.mode == LINK)
    return {entry.path: content async for entry, content in read_blobs(git, links)}


async def read_blobs(
    git: Git, entries: tuple[TreeEntry, ...]
) -> AsyncIterator[tuple[TreeEntry, bytes]]:
    """Content of each entry, raw, in order; a few processes of at most 32 MiB of output each.

    Raises GitFailed if an object is missing, no blob, or of another size.
    """
    for batch in _batches(entries):
        wanted = "".join(f"{entry.blob}\n" for entry in batch).encode("ascii")
        most = sum(entry.size + _HEADER_BYTES for entry in batch)
        out = await git.check(
            "cat-file", "--batch", stdin=wanted, bounds=Bounds(stdout_max=most)
        )  # fmt: skip
        position = 0
        for entry in batch:
            header = f"{entry.blob} blob {entry.size}\n".encode("ascii")
            start = position + len(header)
            if out[position:start] != header:
                raise GitFailed("cat-file", 0, f"{entry.blob} isn't a blob of {entry.size} bytes")
            yield entry, out[start : start + entry.size]
            position = start + entry.size + 1


def _batches(entries: tuple[TreeEntry, ...]) -> Iterable[tuple[TreeEntry, ...]]:
    batch: list[TreeEntry] = []
    size = 0
    for entry in entries:
        if batch and size + entry.size > _BATCH_BYTES:
            yield tuple(batch)
            batch, size = [], 0
        batch.append(entry)
        size += entry.size
    if batch:
        yield tuple(batch)


async def write_blob(git: Git, content: bytes) -> str:
    """Store bytes as a blob, without any filter, and return its id."""
    out = await git.check(
        "hash-object", "-w", "-t", "blob", "--no-filters", "--stdin", stdin=content
    )
    return out.decode("ascii").strip()
