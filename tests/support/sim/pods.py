"""Pods of a simulated world: a kubelet that runs the real roles as coroutines, and their wire.

Runner and publisher are the product's own, from the pod's command line on. A killed one leaves its
volume as it stood at that instant; its pod says exit code 137.
"""

import asyncio
import contextvars
import itertools
import shutil
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import httpx

from support.sim.apiserver import PROTECTION, ApiServer, Json, SimClient
from support.sim.ecosystem import SimEcosystem, SimSandbox
from support.sim.forge import TOKEN, SimHost
from support.sim.loop import PROGRAM, Program, SimLoop, check_alive
from support.sim.operator import API_URL, Answer
from support.sim.strikes import Strikes
from upgraderun_operator.answers import Ok
from upgraderun_operator.resources import CLAIMS, PODS
from upgraderun_protocol.effects import Program as Role
from upgraderun_protocol.redact import Redactor
from upgraderun_runner import main as command_line
from upgraderun_runner.client.transport import Seams
from upgraderun_runner.phases.session import Session
from upgraderun_runner.process import Machine, Speaking
from upgraderun_runner.publish import publish_role
from upgraderun_runner.remote import git_settings
from upgraderun_runner.run import run_with
from upgraderun_runner.workspace.git import prepare_git

NODE: Final = "node"
START_SECONDS: Final = 0.5
KILLED_EXIT: Final = 137
_MOUNTS: Final = "/var/run/upgraderun"
_OPERATOR_HOST: Final = httpx.URL(API_URL).host


class Served(Protocol):
    """Whoever serves the runner API now, if anybody does."""

    async def __call__(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> Answer | None:
        """Answer; None: the connection broke. Raises ConnectionError where nobody listens."""
        ...


class _Body(httpx.AsyncByteStream):
    """The body of an answer, as it comes from a connection."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data


class Wire(httpx.AsyncBaseTransport):
    """HTTP of the pods, without sockets: to the operator's API and to the forge."""

    def __init__(self, operator: Served, host: SimHost) -> None:
        self._operator = operator
        self._host = host

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        check_alive()
        assert isinstance(request.stream, httpx.AsyncByteStream)
        body = b"".join([part async for part in request.stream])
        await asyncio.sleep(0)
        check_alive()
        if request.url.host != _OPERATOR_HOST:
            target = request.url.raw_path.decode("ascii")
            said = self._host.handle(request.method, target, request.headers, body)
            return _response(said.status, said.headers, said.body)
        target = request.url.raw_path.decode("ascii")
        try:
            answer = await self._operator(request.method, target, request.headers, body)
        except ConnectionError as error:
            raise httpx.ConnectError(str(error), request=request) from error
        check_alive()
        if answer is None:
            raise httpx.ReadError("the connection broke", request=request)
        return _response(*answer)


def _response(status: int, headers: Mapping[str, str], body: bytes) -> httpx.Response:
    return httpx.Response(status, headers=dict(headers), stream=_Body(body))


@dataclass(slots=True)
class SimPod:
    """One pod that was started."""

    name: str
    uid: str
    role: Role
    program: Program
    log: list[str] = field(default_factory=list)
    task: asyncio.Task[Any] | None = None

    @property
    def lives(self) -> bool:
        """Whether its process runs."""
        return self.task is not None and not self.task.done()


class SimKubelet:
    """Starts pods, tells their states, stops them, and keeps the volumes."""

    def __init__(
        self,
        loop: SimLoop,
        server: ApiServer,
        wire: Wire,
        root: Path,
        strikes: Strikes,
        ids: "itertools.count[int]",
    ) -> None:
        self._loop = loop
        self._client = SimClient(server)
        self._server = server
        self._wire = wire
        self._root = root
        self._strikes = strikes
        self._ids = ids
        self._context = contextvars.copy_context()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._volumes: dict[str, Path] = {}
        self.pods: dict[str, SimPod] = {}

    def see(self, what: str, plural: str, raw: Json) -> None:
        """A change of the world: begin or end what it asks for."""
        if plural == PODS.plural:
            self._see_pod(what, raw)
        elif plural == CLAIMS.plural and raw["metadata"].get("deletionTimestamp"):
            self._spawn(self._let_go(raw))

    def _see_pod(self, what: str, raw: Json) -> None:
        uid = raw["metadata"]["uid"]
        deleted = what == "DELETED" or "deletionTimestamp" in raw["metadata"]
        known = self.pods.get(uid)
        if known is None and not deleted:
            role = (
                Role.RUNNER if raw["spec"]["containers"][0]["args"][0] == "run" else Role.PUBLISHER
            )
            pod = SimPod(raw["metadata"]["name"], uid, role, Program(raw["metadata"]["name"]))
            self.pods[uid] = pod
            self._spawn(self._start(pod, raw))
        elif known is not None and deleted:
            if known.lives:
                self.freeze(uid)
                known.program.kill()
            if what != "DELETED":
                self._spawn(self._remove(raw))

    def _spawn(self, work: Any) -> None:
        """A task of the kubelet's own, whoever's change it is that it saw."""
        task: asyncio.Task[Any] = self._context.copy().run(self._loop.create_task, work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _start(self, pod: SimPod, raw: Json) -> None:
        """Bind the pod, run its process, tell its end."""
        await asyncio.sleep(START_SECONDS)
        found = await self._put(raw["metadata"], {"phase": "Running"}, {"running": {}})
        if found is None:
            return
        context = contextvars.copy_context()
        context.run(PROGRAM.set, pod.program)
        directory = self._root / "pods" / pod.uid
        directory.mkdir(parents=True)
        pod.task = context.run(self._loop.create_task, self._run(pod, raw, directory))
        await asyncio.wait({pod.task})
        self._leave(raw)
        code = KILLED_EXIT
        if not pod.task.cancelled() and not pod.program.dead:
            code = pod.task.result()
        ended = {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}
        message = directory / "termination-log"
        if message.exists():
            ended["message"] = message.read_text()
        phase = {"phase": "Succeeded" if code == 0 else "Failed"}
        await self._put(raw["metadata"], phase, {"terminated": ended})

    async def _put(self, metadata: Json, phase: Json, state: Json) -> Json | None:
        """Write a pod's status as the kubelet does; None if the pod is gone."""
        while True:
            found = await self._client.get(PODS, metadata["namespace"], metadata["name"])
            if not isinstance(found, Ok) or found.value["metadata"]["uid"] != metadata["uid"]:
                return None
            raw = dict(found.value)
            spec = {**raw["spec"], "nodeName": NODE}
            if raw["spec"] != spec:
                await self._client.put(PODS, {**raw, "spec": spec})
                continue
            container = {
                "name": raw["spec"]["containers"][0]["name"],
                "restartCount": 0,
                "ready": False,
                "state": state,
            }
            status = {**phase, "containerStatuses": [container]}
            put = await self._client.put(PODS, {**raw, "status": status}, subresource="status")
            if isinstance(put, Ok):
                return dict(put.value)

    async def _remove(self, raw: Json) -> None:
        """The process has ended: the object goes."""
        pod = self.pods[raw["metadata"]["uid"]]
        if pod.task is not None:
            await asyncio.wait({pod.task})
        metadata = raw["metadata"]
        await self._client.delete(
            PODS, metadata["namespace"], metadata["name"], uid=metadata["uid"], grace_seconds=0
        )

    async def _let_go(self, raw: Json) -> None:
        """Lift a claim's protection once no pod uses it, and drop the volume."""
        metadata = raw["metadata"]
        if any(_claim_of(pod) == metadata["name"] for pod in self._server.items(PODS)):
            await asyncio.sleep(1)
            self._spawn(self._let_go(raw))
            return
        held = [one for one in metadata.get("finalizers", ()) if one != PROTECTION]
        if held != metadata.get("finalizers"):
            shutil.rmtree(self._volumes.pop(metadata["uid"], self._root / "none"), True)
            await self._client.put(CLAIMS, {**raw, "metadata": {**metadata, "finalizers": held}})

    def _volume(self, raw: Json) -> Path | None:
        """The folder of the pod's volume, made at its first use."""
        name = _claim_of(raw)
        if name is None:
            return None
        claim = self._server.find(CLAIMS, raw["metadata"]["namespace"], name)
        assert claim is not None, "a pod starts with its volume"
        uid = claim["metadata"]["uid"]
        if uid not in self._volumes:
            self._volumes[uid] = self._root / "volumes" / f"{next(self._ids)}"
            self._volumes[uid].mkdir(parents=True)
        return self._volumes[uid]

    def killed(self, program: Program) -> None:
        """A process was killed where it stood."""
        for uid, pod in self.pods.items():
            if pod.program is program:
                self.freeze(uid)

    def freeze(self, uid: str) -> None:
        """Keep a killed pod's volume as it stands: what still unwinds writes to a folder that is gone."""
        raw = next((p for p in self._server.items(PODS) if p["metadata"]["uid"] == uid), None)
        name = None if raw is None else _claim_of(raw)
        if raw is None or name is None:
            return
        claim = self._server.find(CLAIMS, raw["metadata"]["namespace"], name)
        assert claim is not None
        old = self._volumes.get(claim["metadata"]["uid"])
        if old is None:
            return
        new = self._root / "volumes" / f"{next(self._ids)}"
        old.rename(new)
        self._volumes[claim["metadata"]["uid"]] = new

    def _leave(self, raw: Json) -> None:
        """A pod's own disk goes with its process; its termination message is read before."""
        shutil.rmtree(self._root / "pods" / raw["metadata"]["uid"] / "private", ignore_errors=True)

    async def _run(self, pod: SimPod, raw: Json, directory: Path) -> int:
        """Be the container: the product's command line, on this world's machine."""
        (directory / "operator").mkdir()
        (directory / "operator" / "token").write_text(f"pod:{pod.uid}")
        (directory / "credential").mkdir()
        (directory / "credential" / "token").write_text(TOKEN)
        volume = self._volume(raw)
        arguments = [
            _here(word, directory, volume) for word in raw["spec"]["containers"][0]["args"]
        ]
        options = command_line._parser().parse_args([*arguments, "--pod-uid", pod.uid])
        settings = command_line._settings(options)
        private = directory / "private"
        private.mkdir(mode=0o700)
        machine = Machine(
            seams=Seams(
                monotonic=self._loop.time,
                now=self._loop.now,
                sleep=asyncio.sleep,
                jitter=lambda: 0.5,
                new_id=lambda: f"{next(self._ids):032x}",
                wire=self._wire,
            ),
            fault=self._strikes.hook(pod.role),
            redactor=Redactor(),
            log=pod.log.append,
            private=private,
        )
        if pod.role is Role.PUBLISHER:
            return await publish_role(settings, machine, None)
        return await run_with(settings, machine, _session, None)


async def _session(speaking: Speaking, root: Path) -> Session:
    """What `run` puts together from an image, from this world's."""
    machine = speaking.machine
    git = git_settings(speaking, None)
    prepare_git(git)
    return Session(
        bundle=speaking.bundle,
        client=speaking.client,
        journal=speaking.journal,
        root=root,
        git=git,
        credential=speaking.credentials.get,
        ecosystem=SimEcosystem(),
        sandbox=SimSandbox(),
        control=speaking,
        redactor=machine.redactor,
        seams=machine.seams,
        fault=machine.fault,
        python="3.11",
    )


def _claim_of(raw: Json) -> str | None:
    """The volume claim that a pod mounts."""
    for volume in raw["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            return str(volume["persistentVolumeClaim"]["claimName"])
    return None


def _here(word: str, directory: Path, volume: Path | None) -> str:
    """A path of the container, where it lies in this world."""
    if word == "/workspace":
        return str(volume)
    if word == "/dev/termination-log":
        return str(directory / "termination-log")
    return word.replace(_MOUNTS, str(directory)) if word.startswith(_MOUNTS) else word
