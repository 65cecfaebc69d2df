"""The publisher's verification (upgrade-run.md §10 "Verify", security.md H28, H30, H31).

From artifacts and the base alone, in a fresh repository; the runner's git directory is never
opened. Caller: the publisher role. Every id is rebuilt and compared before anything is pushed.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from upgraderun_protocol.canonical import sha256_of
from upgraderun_protocol.ids import CommitId, ProposalDigest, Sha256, TreeId
from upgraderun_protocol.records import RecordError, from_bytes
from upgraderun_runner.workspace import limits
from upgraderun_runner.workspace.clone import (
    fetch_branch,
    init_repository,
    require_reachable,
    tree_of,
)
from upgraderun_runner.workspace.diff import diff_trees
from upgraderun_runner.workspace.errors import BaseMissing, TreeRefused
from upgraderun_runner.workspace.git import Credential, Git
from upgraderun_runner.workspace.index import temporary_index, write_tree
from upgraderun_runner.workspace.paths import write_violation
from upgraderun_runner.workspace.proposal import (
    RECORD_VERSION,
    ProposalFile,
    ProposalRecord,
    change_violations,
    make_commit,
    size_max,
)
from upgraderun_runner.workspace.protected import ProtectedPaths
from upgraderun_runner.workspace.recipe import commit_id
from upgraderun_runner.workspace.trees import EXECUTABLE, REGULAR, list_tree, write_blob

LoadArtifact = Callable[[Sha256], Awaitable[bytes | None]]
"""Bytes of an artifact, None if the store says that it is gone. Raises when it can't be asked."""


@dataclass(frozen=True, slots=True)
class Verified:
    """The commit lies in the publisher's repository; `branch_head` is the base branch as seen."""

    record: ProposalRecord
    commit: CommitId
    branch_head: CommitId


@dataclass(frozen=True, slots=True)
class Invalidated:
    """`proposal_invalidated`: which comparison failed, with both sides.

    Codes: `artifact_gone`, `record_digest`, `record_unreadable`, `record_contradicts`,
    `base_gone`, `base_tree`, `base_refused`, `path`, `protected`, `blob`, `tree`, `commit`.
    """

    code: str
    expected: str
    observed: str


@dataclass(frozen=True, slots=True)
class Expectation:
    """What journal and grant say: digest, commit, repository, base branch, the pair's paths."""

    digest: ProposalDigest
    commit: CommitId
    url: str
    branch: str
    pair: frozenset[str]


class _InvalidError(Exception):
    """Carries the answer out of the middle of the comparison."""

    def __init__(self, code: str, expected: str, observed: str) -> None:
        super().__init__(code)
        self.answer = Invalidated(code, expected, observed)


async def verify_proposal(
    git: Git,
    expectation: Expectation,
    load: LoadArtifact,
    protected: ProtectedPaths,
    credential: Credential | None,
) -> Verified | Invalidated:
    """Rebuild the proposal and compare digest, base tree, blobs, tree, commit, paths and limits.

    `git` points at a directory that doesn't exist yet. Raises RemoteFailed (unknown) when the
    forge can't be read; never a verdict then. May be repeated with another empty directory.
    """
    try:
        record = await _read_record(expectation, load)
        _check_paths(record, protected)
        head = await _fetch_base(git, expectation, record, credential)
        await _rebuild(git, record, load)
    except _InvalidError as invalid:
        return invalid.answer
    return Verified(record, record.commit, head)


async def _read_record(expectation: Expectation, load: LoadArtifact) -> ProposalRecord:
    content = await _load(load, Sha256(expectation.digest), limits.PROPOSAL_RECORD_BYTES_MAX)
    try:
        record = from_bytes(ProposalRecord, content)
    except RecordError as error:
        raise _InvalidError("record_unreadable", "a proposal record", str(error)) from error
    _same("record_contradicts", f"version {RECORD_VERSION}", f"version {record.version}")
    _same("record_contradicts", expectation.commit, record.commit)
    _same("record_contradicts", record.base_commit, record.recipe.parent)
    _same("record_contradicts", " ".join(sorted(expectation.pair)), " ".join(sorted(record.pair)))
    _same("commit", record.commit, commit_id(record.recipe))
    return record


async def _load(load: LoadArtifact, digest: Sha256, bytes_max: int) -> bytes:
    content = await load(digest)
    if content is None:
        raise _InvalidError("artifact_gone", digest, "gone")
    if len(content) > bytes_max:
        raise _InvalidError("path", f"at most {bytes_max} bytes", f"{len(content)} bytes")
    _same("record_digest", digest, sha256_of(content))
    return content


def _same(code: str, expected: str, observed: str) -> None:
    if expected != observed:
        raise _InvalidError(code, expected, observed)


def _check_paths(record: ProposalRecord, protected: ProtectedPaths) -> None:
    """The rules of §6 and §9.4 again, on what the record names; the pair is exempt from §9.4."""
    seen: set[str] = set()
    for file in record.files:
        if refused := write_violation(file.path):
            raise _InvalidError("path", "an allowed path", f"{refused.path}: {refused.detail}")
        if file.path in seen or file.mode not in {REGULAR, EXECUTABLE}:
            raise _InvalidError(
                "path", "each path once, a regular file", f"{file.path} {file.mode}"
            )
        seen.add(file.path)
        glob = protected.match(file.path)
        if glob is not None and file.path not in record.pair:
            raise _InvalidError("protected", f"no change to {glob}", file.path)


async def _fetch_base(
    git: Git, expectation: Expectation, record: ProposalRecord, credential: Credential | None
) -> CommitId:
    """Fetch the branch; its whole history only if its head isn't the base any more."""
    await init_repository(git)
    url, branch = expectation.url, expectation.branch
    try:
        head = await fetch_branch(git, url, branch, credential, whole=False)
        if head != record.base_commit:
            head = await fetch_branch(git, url, branch, credential, whole=True)
        await require_reachable(git, record.base_commit, head, branch)
    except BaseMissing as error:
        raise _InvalidError("base_gone", f"{record.base_commit} on {branch}", error.what) from error
    _same("base_tree", record.base_tree, await tree_of(git, record.base_commit))
    return head


async def _rebuild(git: Git, record: ProposalRecord, load: LoadArtifact) -> None:
    try:
        await list_tree(git, record.base_tree)
    except TreeRefused as error:
        raise _InvalidError("base_refused", "a tree that keeps the rules", str(error)) from error
    pair = frozenset(record.pair)
    changes = {file.path: (file.mode, await _store(git, file, load, pair)) for file in record.files}
    index = git.git_dir / "upgraderun-verify.index"
    async with temporary_index(git, index, record.base_tree) as seeded:
        tree = await write_tree(git, seeded, changes)
    _same("tree", record.recipe.tree, tree)
    await _check_changes(git, record, tree)
    _same("commit", record.commit, await make_commit(git, record.recipe))


async def _store(git: Git, file: ProposalFile, load: LoadArtifact, pair: frozenset[str]) -> str:
    content = await _load(load, file.sha256, size_max(file.path, pair))
    _same("blob", str(file.size), str(len(content)))
    _same("blob", file.blob, await write_blob(git, content))
    return file.blob


async def _check_changes(git: Git, record: ProposalRecord, tree: TreeId) -> None:
    """What the tree really changes is what the record lists, and nothing a proposal may not do."""
    diff = await diff_trees(git, record.base_tree, tree)
    if refused := change_violations(diff.files):
        raise _InvalidError("path", "only changed or added regular files", str(refused[0]))
    expected = " ".join(sorted(file.path for file in record.files))
    _same("path", expected, " ".join(sorted(change.path for change in diff.files)))
