"""A whole run on virtual time: API server, host, operator, pods and people in one process (Q3).

`play` runs one history: `patch-safe` with the given strikes, to its end and a while beyond. The same
strikes give the same history: there is no thread, no socket and no chance in it.
"""

import asyncio
import base64
import itertools
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from support.sim.apiserver import ApiServer, Json
from support.sim.ecosystem import REPOSITORY_FILES
from support.sim.forge import REPOSITORY, TOKEN, URL, SimHost
from support.sim.git import SimGit
from support.sim.invariants import Invariants
from support.sim.loop import Killed, SimLoop
from support.sim.operator import NAMESPACE, Answer, SimOperator
from support.sim.pods import SimKubelet, Wire
from support.sim.strikes import Strike, Strikes
from upgraderun_operator.answers import Ok
from upgraderun_operator.journal.run import view_of
from upgraderun_operator.resources import (
    CLAIMS,
    LEASES,
    NAMESPACES,
    PODS,
    SECRETS,
    UPGRADE_APPROVALS,
    UPGRADE_POLICIES,
    UPGRADE_REPORTS,
    UPGRADE_RUNS,
    Resource,
)
from upgraderun_protocol.effects import Program as Role
from upgraderun_protocol.entries import Entry
from upgraderun_protocol.ids import Sha256

TEAM: Final = "team"
NAME: Final = "app"
IMAGE: Final = "registry.example/runner@sha256:" + "1" * 64
RESTART_SECONDS: Final = 1.0
THINKING_SECONDS: Final = 120.0
"""People are slower than any recovery here: an approval that comes first is another scenario."""
END_SECONDS: Final = 3600.0
BEYOND_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class End:
    """What people see of a run that is over, and what it left."""

    outcome: str
    exit_code: int
    conditions: frozenset[tuple[str, str, str]]
    finalizers: tuple[str, ...]
    left: tuple[str, ...]
    branches: tuple[str, ...]
    tree: str
    pulls: tuple[tuple[int, str, str, str], ...]
    pushes: int
    creates: int


@dataclass(frozen=True, slots=True)
class History:
    """One history: what was struck and passed, how it ended, what was written on the way."""

    hit: tuple[Strike, ...]
    followed: tuple[tuple[Role, str], ...]
    passed: Mapping[tuple[Role, str], int]
    end: End
    entries: tuple[Entry, ...]
    written: Mapping[str, int]
    seconds: float
    quiet: Mapping[str, int]


class Unfinished(AssertionError):  # noqa: N818 - says what a history came to
    """A history that didn't end in time, with its journal."""


@dataclass(slots=True)
class World:
    """One history in the making."""

    loop: SimLoop
    root: Path
    strikes: Strikes
    server: ApiServer = field(init=False)
    host: SimHost = field(init=False)
    kubelet: SimKubelet = field(init=False)
    invariants: Invariants = field(init=False)
    operator: SimOperator | None = None
    written: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    _ids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    _starts: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        uids = itertools.count(1)
        self.server = ApiServer(self.loop.now, lambda: f"00000000-0000-4000-8000-{next(uids):012x}")
        self.host = SimHost(self.root, lambda: self.loop.now().timestamp(), self._acted)
        self.loop.runs = SimGit(self.host.remotes)
        wire = Wire(self._serve, self.host)
        self.kubelet = SimKubelet(self.loop, self.server, wire, self.root, self.strikes, self._ids)
        self.invariants = Invariants(self.server, self.kubelet)
        self.server.watchers += [self._count, self.invariants.see, self.kubelet.see]
        self.strikes.on_kill = self.kubelet.killed
        self.loop.set_exception_handler(self._failed)

    async def play(self, beyond: float) -> History:
        """From the apply to the end, and a while beyond."""
        self._begin()
        life = [self.loop.create_task(self._deploy()), self.loop.create_task(self._people())]
        try:
            while not self._over():
                if self.loop.time() > END_SECONDS or self.invariants.broken:
                    raise Unfinished(f"{self.invariants.broken[:1]} {self.story()}")
                await asyncio.sleep(1)
            ended = self.loop.time()
            before = Counter(self.written)
            await asyncio.sleep(beyond)
        finally:
            for task in life:
                task.cancel()
        self.errors += self.operator.bugs() if self.operator is not None else []
        self.invariants.at_the_end(self._run(), self.host)
        assert not self.invariants.broken, self.invariants.broken
        assert not self.errors, self.errors
        return History(
            hit=tuple(self.strikes.hit),
            followed=self.strikes.followed(len(self.strikes.hit)),
            passed=Counter(self.strikes.passed),
            end=self._end(),
            entries=self.entries(),
            written=dict(self.written),
            seconds=ended,
            quiet=dict(self.written - before),
        )

    def entries(self) -> tuple[Entry, ...]:
        """The journal, compacted segments included."""
        raw = self._run()
        folder = self.root / "store" / raw["metadata"]["uid"] / "sha256"
        names = ((raw.get("status") or {}).get("journal") or {}).get("compacted") or {}
        segments = {Sha256(one): (folder / one).read_bytes() for one in names.get("segments") or ()}
        return tuple(view_of(raw, segments, None).state.fold)

    def story(self) -> list[str]:
        """The journal in short."""
        return [f"{entry.id} {entry.state.value}" for entry in self.entries()]

    def _begin(self) -> None:
        """What stands before the run: policy, secret, repository; then somebody applies it."""
        for namespace in (NAMESPACE, TEAM):
            self._make(NAMESPACES, None, namespace)
        token = base64.b64encode(TOKEN.encode()).decode()
        self._make(SECRETS, TEAM, "forge", data={"token": token})
        self.host.start(REPOSITORY_FILES)
        reference = {"secretRef": {"name": "forge", "key": "token"}}
        policy = {
            "repositories": [f"{URL}/team/*"],
            "forge": {"type": "GitHub", "apiURL": f"{URL}/api/v3"},
            "credentials": {"clone": reference, "push": reference},
            "images": {"runner": IMAGE, "python": [{"version": "3.11", "image": IMAGE}]},
            "sandbox": {"type": "Inline"},
            "recovery": {"lossGraceSeconds": 10},
        }
        self._make(UPGRADE_POLICIES, TEAM, "default", spec=policy)
        annotations = {"upgraderun.dev/requested-by": "rita"}
        spec = {
            "repository": {"url": f"{URL}/{REPOSITORY}", "branch": "main"},
            "mode": "Rules",
            "publication": {"enabled": True, "labels": ["dependencies"]},
        }
        self._make(UPGRADE_RUNS, TEAM, NAME, annotations=annotations, spec=spec)

    def _make(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        annotations: Mapping[str, str] | None = None,
        **body: Any,
    ) -> None:
        metadata = {"name": name, "annotations": dict(annotations or {})}
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        made = self.server.create(resource, namespace, {**head, "metadata": metadata, **body})
        assert isinstance(made, Ok), made

    async def _deploy(self) -> None:
        """The Deployment: one operator process, and another one where it died."""
        while True:
            number = next(self._starts)
            self.operator = SimOperator(
                self.loop,
                self.server,
                self.host,
                self.root / "store",
                self.strikes.hook(Role.OPERATOR),
                self._ids,
                number,
            )
            self.operator.start()
            await self.operator.program.ended.wait()
            self.errors += self.operator.bugs()
            self.operator = None
            await asyncio.sleep(RESTART_SECONDS)

    async def _people(self) -> None:
        """Somebody else than the requester reads the question, thinks, and approves."""
        answered: set[str] = set()
        while True:
            await asyncio.sleep(1)
            pending = (self._run().get("status") or {}).get("pendingApproval")
            if not pending or pending["digest"] in answered:
                continue
            await asyncio.sleep(THINKING_SECONDS)
            answered.add(pending["digest"])
            spec = {
                "runRef": {"name": NAME, "uid": self._run()["metadata"]["uid"]},
                "kind": "Publication",
                "digest": pending["digest"],
                "decision": "Approve",
                "approver": "anna",
            }
            annotations = {"upgraderun.dev/requester": "rita"}
            name = f"yes-{len(answered)}"
            self._make(UPGRADE_APPROVALS, TEAM, name, annotations=annotations, spec=spec)

    async def _serve(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> Answer | None:
        operator = self.operator
        if operator is None or operator.program.dead:
            raise ConnectionError("nobody listens")
        return await operator.serve(method, target, headers, body)

    def _acted(self, what: str, commit: str) -> None:
        self.invariants.acts(what, commit, self._run())

    def _count(self, what: str, plural: str, raw: Json) -> None:
        """Changes that stand, by kind; a Lease that is renewed isn't one."""
        if plural != LEASES.plural or what != "MODIFIED":
            self.written[f"{what} {plural}"] += 1
        del raw

    def _failed(self, _loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        """What nobody awaited; a kill is none."""
        error = context.get("exception")
        if isinstance(error, BaseExceptionGroup):
            error = error.split(Killed)[1]
        if error is not None and not isinstance(error, Killed):
            self.errors.append(f"{context.get('message')}: {error!r}")

    def _run(self) -> Json:
        found = self.server.find(UPGRADE_RUNS, TEAM, NAME)
        assert found is not None, "nobody deletes the run"
        return found

    def _left(self) -> list[str]:
        kinds = (PODS, CLAIMS, LEASES, UPGRADE_REPORTS)
        return [one.kind for one in kinds for _ in self.server.items(one, TEAM)]

    def _over(self) -> bool:
        raw = self._run()
        done = (raw.get("status") or {}).get("finished") is True
        held = raw["metadata"].get("finalizers")
        return done and not held and self._left() == [UPGRADE_REPORTS.kind]

    def _end(self) -> End:
        raw = self._run()
        status = raw["status"]
        repositories, state = self.host.repositories, self.host.state.find(REPOSITORY)
        assert state is not None
        refs = repositories.refs(REPOSITORY, "refs/heads")
        ours = {name: at for name, at in refs.items() if name != "refs/heads/main"}
        commits = [repositories.commit(REPOSITORY, at) for at in ours.values()]
        return End(
            outcome=status["outcome"],
            exit_code=status["exitCode"],
            conditions=frozenset(
                (one["type"], one["status"], one["reason"]) for one in status["conditions"]
            ),
            finalizers=tuple(raw["metadata"].get("finalizers") or ()),
            left=tuple(self._left()),
            branches=tuple(ours),
            tree=" ".join(commit.tree for commit in commits if commit is not None),
            pulls=tuple((p.number, p.state, p.title, ",".join(p.labels)) for p in state.pulls),
            pushes=len(self.host.pushes),
            creates=sum(
                method == "POST" and path.endswith("/pulls")
                for method, path, _ in self.host.requests
            ),
        )


def play(strikes: Sequence[Strike] = (), *, beyond: float = BEYOND_SECONDS) -> History:
    """Play one history. Raises AssertionError where an invariant breaks or it doesn't end."""
    root = Path(tempfile.mkdtemp(prefix="upgraderun-sim-"))
    loops: list[SimLoop] = []

    def make() -> SimLoop:
        loops.append(SimLoop())
        return loops[0]

    try:
        with asyncio.Runner(loop_factory=make) as runner:
            return runner.run(_play(Strikes(list(strikes)), root, beyond, loops))
    finally:
        shutil.rmtree(root, ignore_errors=True)


async def _play(strikes: Strikes, root: Path, beyond: float, loops: list[SimLoop]) -> History:
    return await World(loops[0], root, strikes).play(beyond)
