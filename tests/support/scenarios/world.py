"""Makes one row's world: packages in the registry, a locked repository on the git host, tokens.

The lock is made by real uv against the fixture registry while only the base releases are there,
once a process for each declaration; afterwards the later ones appear. Where the product reaches the
servers under other names than the builder does (a cluster), the names in manifest and lock are the
product's.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from support import realwheels
from support.fixtures.launch import Servers
from support.gitclient import git
from support.hosting import publish
from support.scenarios.objects import bare_repository, commit_tree, write_files, write_tree
from support.scenarios.repository import FILES, REGISTRY, RepositoryPlan, load_repository
from support.scenarios.table import Row
from support.toolchain import Done, Uv, run

OWNER = "fixtures"
PYTEST_EXTRA = ("-p", "no:cacheprovider", "-q")
LOCKED: dict[str, dict[str, str]] = {}
"""Texts with their locks by declaration; placeholders stand for every address."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The servers' addresses as the product sees them, without a trailing slash."""

    host_url: str
    registry_url: str


@dataclass(frozen=True, slots=True)
class BuiltScenario:
    """One row, ready to be run. Tokens are for this repository only.

    `api_url` is the forge's API, `registry_url` the index that policy and manifest name.
    `local` is a bare repository with the same base commit, `hidden` the folder of the hidden check.
    """

    row: Row
    name: str
    repository_url: str
    api_url: str
    registry_url: str
    branch: str
    base_commit: str
    base_tree: str
    clone_token: str
    push_token: str
    local: Path
    hidden: Path


def build_world(
    row: Row, directory: Path, servers: Servers, *, name: str = "", seen: Seen | None = None
) -> BuiltScenario:
    """Build a row's world below `directory`, with its outage switched on.

    `name` names repository and index; two worlds on the same servers need two names.
    """
    name = name or row.id
    seen = seen or Seen(servers.host.url, servers.registry.url)
    plan = load_repository(row.repository)
    directory.mkdir(parents=True, exist_ok=True)
    registry = servers.registry
    real = list(realwheels.packages())
    realwheels.shelve(registry.control)
    if row.repository not in LOCKED:
        registry.control.put_index(name, [*real, *plan.base_packages()])
        texts = _locked(directory / "lock", plan, f"{registry.url}/{name}")
        LOCKED[row.repository] = texts
    registry.control.put_index(name, [*real, *plan.packages])
    product_address = f"{seen.registry_url}/{name}"
    local = bare_repository(directory / "local.git")
    entries = {
        path: replace(entry, content=_addressed(entry.content, product_address))
        for path, entry in plan.tree(LOCKED[row.repository]).items()
    }
    tree = write_tree(local, entries)
    commit = commit_tree(local, tree, f"{row.id}: base")
    hidden = directory / "hidden"
    hidden.mkdir()
    write_files(hidden, plan.hidden)
    repository = f"{OWNER}/{name}"
    tokens = publish(servers.host, repository, local, commit)
    for outage in row.outages:
        registry.control.add_fault(replace(outage, path=f"^/{name}(?=/).*{outage.path}"))
    return BuiltScenario(
        row,
        name,
        f"{seen.host_url}/{repository}.git",
        f"{seen.host_url}/api/v3",
        f"{product_address}/simple/",
        "main",
        commit,
        tree,
        tokens.clone,
        tokens.push,
        local,
        hidden,
    )


def run_hidden_check(built: BuiltScenario, commit: str, directory: Path, uv: Uv) -> Done:
    """Run the hidden check on a commit of the repository, installed from its own lock.

    `directory` must not exist. pytest comes from the fixture registry even where the tree locks
    none. A code other than 0 on a published tree is a false success.
    """
    if not any(built.hidden.iterdir()):
        raise ValueError(f"{built.row.id} has no hidden check")
    check_out(built.local, commit, directory)
    uv(directory, "sync", "--frozen")
    python = str(directory / ".venv" / "bin" / "python")
    index = built.registry_url
    uv(directory, "pip", "install", "--python", python, "--index-url", index, "pytest")
    argv = [python, "-m", "pytest", *PYTEST_EXTRA, str(built.hidden)]
    return run(argv, directory, uv.environment())


def check_out(repository: Path, commit: str, directory: Path) -> None:
    """A working tree of a commit."""
    git(repository, "clone", "-q", "--no-checkout", str(repository), str(directory))
    git(directory, "checkout", "-q", "--detach", commit)


def _locked(folder: Path, plan: RepositoryPlan, address: str) -> dict[str, str]:
    """The plan's texts and the locks that real uv makes of them, with placeholders."""
    project = folder / "project"
    project.mkdir(parents=True)
    texts = plan.before_lock()
    write_files(project, {path: _replaced(text, address) for path, text in texts.items()})
    uv = Uv(folder / "scratch")
    for place in plan.locked_in:
        uv(project / place, "lock")
        lock = (project / place / "uv.lock").read_text()
        lock = lock.replace(f"{address}/simple/", REGISTRY).replace(f"{address}/files", FILES)
        texts[str(Path(place) / "uv.lock")] = lock
    return texts


def _replaced(text: str, address: str) -> str:
    return text.replace(REGISTRY, f"{address}/simple/").replace(FILES, f"{address}/files")


def _addressed(content: bytes, address: str) -> bytes:
    """Also what entered after the lock may name the registry."""
    if REGISTRY.encode() not in content and FILES.encode() not in content:
        return content
    return _replaced(content.decode(), address).encode()
