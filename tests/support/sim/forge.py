"""The git host and forge of a simulated world: the fixture forge itself, on doubled repositories.

Every rule of the forge is the fixture's own code (support.fixtures.forge); what is doubled is git
beneath it, and the wire. tests/sim/test_contract_git.py compares `SimRepositories` with real ones.
"""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from support.fixtures.faults import FixtureClock
from support.fixtures.forge import API_PREFIX, Forge
from support.fixtures.forge_apps import Apps
from support.fixtures.forge_state import ForgeState
from support.fixtures.messages import Request, Response
from support.fixtures.repositories import (
    ZERO,
    Commit,
    GitError,
    RefUpdate,
    RepositoryHost,
)
from support.fixtures.tokens import Token, TokenTable
from support.sim.git import Remotes
from support.sim.gitstore import Store
from support.sim.loop import check_alive
from upgraderun_operator.adapters.forge_http import Caller, ForgeCalls, Reply, Stop
from upgraderun_operator.decide.readings import Unreadable

URL = "http://git.example"
REPOSITORY = "team/lib"
TOKEN = "sim-push-token-0001"
Acted = Callable[[str, str], None]
"""Called with what was created (`branch` or `pull`) and its commit, before it stands."""


class SimClock(FixtureClock):
    """The forge's clock is the world's."""

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__()
        self._world = now

    def now(self) -> float:
        return self._world()


class SimRepositories(RepositoryHost):
    """Bare repositories as plain files, without git."""

    def create(self, name: str, default_branch: str = "main") -> Path:
        path = self._path(name)
        if not path.exists():
            Store(path).make()
            (path / "HEAD").write_text(f"ref: refs/heads/{default_branch}\n")
            self._log[name] = []
        return path

    def __init__(self, root: Path, clock: FixtureClock) -> None:
        super().__init__(root, clock)
        self._log: dict[str, list[RefUpdate]] = {}

    def store(self, name: str) -> Store:
        """The repository's objects and refs."""
        return Store(self.path(name))

    def refs(self, name: str, prefix: str = "refs/") -> dict[str, str]:
        return self.store(name).refs(prefix.rstrip("/"))

    def commit(self, name: str, revision: str) -> Commit | None:
        store = self.store(name)
        found = store.read(revision)
        if found is None or found[0] != "commit":
            return None
        head, _, message = found[1].decode().partition("\n\n")
        lines = head.splitlines()
        people = {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in lines if "<" in line}
        parents = tuple(line[7:] for line in lines if line.startswith("parent "))
        author, committer = (_person(people[role]) for role in ("author", "committer"))
        return Commit(revision, lines[0][5:], parents, author, committer, message.rstrip("\n"))

    def is_ancestor(self, name: str, ancestor: str, descendant: str) -> bool:
        return self.store(name).is_ancestor(ancestor, descendant)

    def add_commit(
        self,
        name: str,
        branch: str,
        files: Mapping[str, str | None],
        message: str = "A foreign commit",
        author: tuple[str, str] = ("A Stranger", "stranger@example.com"),
        start: str | None = None,
    ) -> str:
        store = self.store(name)
        old = self.head(name, branch)
        parent = old or start
        found = store.commit(parent) if parent else None
        flat = store.flat(found[0]) if found else {}
        for path, content in files.items():
            assert content is not None, "nobody removes a file here"
            flat[path] = ("100644", store.write("blob", content.encode()))
        who = f"{author[0]} <{author[1]}> {int(self.clock.now())} +0000"
        lines = [f"tree {store.write_flat(flat)}", *([f"parent {parent}"] if parent else [])]
        lines += [f"author {who}", f"committer {who}", "", message, ""]
        new = store.write("commit", "\n".join(lines).encode())
        self.update_ref(name, f"refs/heads/{branch}", new, old or ZERO, author[0])
        return new

    def update_ref(self, name: str, ref: str, new: str, old: str, who: str) -> None:
        store = self.store(name)
        if (store.ref(ref) or ZERO) != old:
            raise GitError(f"{ref} isn't at {old}")
        store.set_ref(ref, None if new == ZERO else new)
        kind = "create" if old == ZERO else "delete" if new == ZERO else "update"
        log = self._log[name]
        log.append(RefUpdate(len(log) + 1, self.clock.now(), kind, ref, old, new, "-", who))

    def updates(self, name: str) -> list[RefUpdate]:
        return list(self._log[name])


def _person(text: str) -> tuple[str, str, str]:
    """Name, address and time of an author line."""
    who, _, when = text.partition("> ")
    name, _, mail = who.partition(" <")
    at = datetime.fromtimestamp(int(when.split()[0]), UTC)
    return name, mail, at.strftime("%Y-%m-%dT%H:%M:%SZ")


class SimHost:
    """One host: git by the double of git, the REST API by the fixture forge."""

    def __init__(self, root: Path, now: Callable[[], float], acted: Acted) -> None:
        self.clock = SimClock(now)
        self.repositories = SimRepositories(root / "repositories", self.clock)
        self.state = ForgeState(self.repositories)
        self.tokens = TokenTable(root / "tokens.json", now)
        apps = Apps(root / "apps.json", self.tokens, now, self.state.number)
        self._forge = Forge(self.state, self.tokens, apps)
        self._acted = acted
        self.requests: list[tuple[str, str, int]] = []
        self.pushes: list[tuple[str, str]] = []

    def start(self, files: Mapping[str, str | None]) -> str:
        """Make the repository with one commit, and the token that may push; gives the commit."""
        self.state.create(REPOSITORY, "main", private=True)
        self.tokens.add(
            Token(TOKEN, "upgraderun-bot", REPOSITORY, contents="write", pull_requests="write")
        )
        return self.repositories.add_commit(REPOSITORY, "main", files, "Start")

    @property
    def remotes(self) -> Remotes:
        """What the double of git talks to."""
        return Remotes(self._find, self._push)

    def handle(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Response:
        """One REST call. Whoever was killed sends none."""
        check_alive()
        request = Request(method, target, {k.lower(): v for k, v in headers.items()}, body)
        if method == "POST" and request.path.endswith("/pulls"):
            self._acted("pull", str(request.json().get("head", "")))
        response = self._forge.handle(request, URL)
        self.requests.append((method, request.path.removeprefix(API_PREFIX), response.status))
        return response

    def _find(self, url: str, secret: str) -> Store | None:
        """The repository of a URL, if the credential covers it."""
        check_alive()
        name = urlsplit(url).path.strip("/").removesuffix(".git")
        token = self.tokens.find(secret)
        known = name in self.repositories.names() and token is not None and token.covers(name)
        return self.repositories.store(name) if known else None

    def _push(self, store: Store, url: str, ref: str, commit: str) -> str | None:
        del store
        name = urlsplit(url).path.strip("/").removesuffix(".git")
        self._acted("branch", commit)
        self.pushes.append((ref, commit))
        self.repositories.update_ref(name, ref, commit, ZERO, "upgraderun-bot")
        return None


class SimForgeCalls(ForgeCalls):
    """The operator's calls to the forge, without a wire."""

    def __init__(self, host: SimHost) -> None:
        super().__init__()
        self._host = host

    async def call(
        self,
        caller: Caller,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        accepts: frozenset[int] = frozenset({HTTPStatus.OK, HTTPStatus.NOT_FOUND}),
    ) -> Reply:
        headers = {} if caller.authorization is None else {"authorization": caller.authorization}
        target = f"{urlsplit(caller.api_url).path.rstrip('/')}{path}"
        data = b"" if body is None else json.dumps(body).encode()
        answer = self._host.handle(method, target, headers, data)
        if answer.status not in accepts:
            raise Stop(Unreadable("forge", f"{method} {path}: {answer.status}"))
        return Reply(answer.status, json.loads(answer.body))
