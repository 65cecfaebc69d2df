"""Replicas of the runner API on a real API server, with the pods and tokens that call them.

`Scene` is one run in a namespace of its own; a test plays the leader by appending what the leader
would. `Replica` serves on a free port of loopback; several share one store folder, as in a cluster.
"""

import contextlib
import io
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from clusterlib.apiserver import ApiServer
from support.journal_story import draft
from upgraderun_operator.adapters.clock import SystemClock
from upgraderun_operator.adapters.forge_http import ForgeCalls
from upgraderun_operator.adapters.forge_tokens import InstallationTokens
from upgraderun_operator.adapters.kubeconfig import from_kubeconfig
from upgraderun_operator.adapters.kubernetes import KubeClient, WriteLimits
from upgraderun_operator.adapters.ports import Clock
from upgraderun_operator.adapters.runs import RunReader
from upgraderun_operator.adapters.store import VolumeStore
from upgraderun_operator.adapters.tokens import TokenReviews
from upgraderun_operator.adapters.writer import StatusWriter
from upgraderun_operator.answers import Ok, Stored
from upgraderun_operator.api.access import Accounts
from upgraderun_operator.api.context import Tools
from upgraderun_operator.api.run_lease import Sightings
from upgraderun_operator.api.server import RunnerApi
from upgraderun_operator.build.claims import run_lease
from upgraderun_operator.build.owner import owner_reference
from upgraderun_operator.journal.planning import Bounds
from upgraderun_operator.journal.run import RunView, ref_of
from upgraderun_operator.journal.writes import Change, Done, WriteResult
from upgraderun_operator.keys import Key
from upgraderun_operator.resources import (
    LEASES,
    NAMESPACES,
    PODS,
    SERVICE_ACCOUNTS,
    UPGRADE_RUNS,
    Resource,
)
from upgraderun_protocol.bundle import RunRef
from upgraderun_protocol.entries import Draft
from upgraderun_protocol.ids import Epoch
from upgraderun_protocol.messages import HEADER_EPOCH, HEADER_PROTOCOL, TOKEN_AUDIENCE
from upgraderun_protocol.redact import Redactor

RUNNER, PUBLISHER = "upgraderun-runner", "upgraderun-publisher"
NONCE = "0123456789abcdef0123456789abcdef"
BUNDLE = b'{"version":1}'
UNLIMITED = WriteLimits(None, 1, None, 1)
REPOSITORY = Path(__file__).parents[2]


@dataclass(slots=True)
class Counts:
    """What the API counted, and whom it woke."""

    answers: list[tuple[str, str]] = field(default_factory=list)
    fences: list[str] = field(default_factory=list)
    rung: list[Key] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)

    def answered(self, endpoint: str, code: str) -> None:
        """Remember one call."""
        self.answers.append((endpoint, code))

    def fenced(self, check: str) -> None:
        """Remember one fence."""
        self.fences.append(check)

    def minted(self, purpose: str) -> None:
        """Remember one token."""
        self.tokens.append(purpose)

    def ring(self, key: Key) -> None:
        """Remember a wake-up."""
        self.rung.append(key)


class JumpingClock(SystemClock):
    """The machine's clock, plus what a test lets pass; frozen, nothing else passes."""

    def __init__(self, *, frozen: bool = False) -> None:
        self.jumped = 0.0
        self._start = super().monotonic() if frozen else None

    def monotonic(self) -> float:
        """Real seconds and jumped ones."""
        real = super().monotonic() if self._start is None else self._start
        return real + self.jumped


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a replica."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.content)

    @property
    def code(self) -> str:
        """Code of a refusal; an answer that is none fails the test."""
        assert "error" in self.json, f"{self.status} is no refusal"
        return str(self.json["error"]["code"])


@dataclass(slots=True)
class Replica:
    """One process's worth of operator: client, reader, writer, store and the served API."""

    client: KubeClient
    reader: RunReader
    writer: StatusWriter
    store: VolumeStore
    sightings: Sightings
    counts: Counts
    clock: Clock
    url: str
    session: aiohttp.ClientSession

    async def call(
        self,
        method: str,
        url: str,
        token: str | None,
        *,
        data: bytes | None = None,
        epoch: int | None = None,
        protocol: str = "1",
    ) -> Answer:
        """Send one request, once."""
        headers = {HEADER_PROTOCOL: protocol}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        headers |= {HEADER_EPOCH: str(epoch)} if epoch is not None else {}
        async with self.session.request(
            method, self.url + url, data=data and io.BytesIO(data), headers=headers
        ) as answer:
            return Answer(answer.status, dict(answer.headers), await answer.read())


@contextlib.asynccontextmanager
async def serve(
    server: ApiServer,
    root: Path,
    *,
    clock: Clock | None = None,
    bounds: Bounds | None = None,
    tls: ssl.SSLContext | None = None,
    call_seconds: float = 10.0,
    through: Callable[[Tools], Tools] = lambda tools: tools,
) -> AsyncIterator[Replica]:
    """Run one replica on a free port until the block ends; `through` may spoil its tools."""
    clock = clock or SystemClock()
    async with (
        KubeClient(from_kubeconfig(server.kubeconfig), clock, UNLIMITED, call_seconds) as client,
        ForgeCalls() as calls,
        aiohttp.ClientSession(auto_decompress=False) as session,
    ):
        store = VolumeStore(root, clock)
        reader = RunReader(client, store)
        writer = StatusWriter(client, reader, store, clock, "replica", bounds)
        counts, sightings = Counts(), Sightings()
        minting = InstallationTokens(calls, clock)
        tools = through(Tools(client, reader, writer, store, clock, counts, counts, minting))
        tokens = TokenReviews(client, clock)
        api = RunnerApi(tools, tokens, Accounts(RUNNER, PUBLISHER), Redactor(), sightings)
        runner = web.AppRunner(api.application(), access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        port = runner.addresses[0][1]
        scheme = "https" if tls else "http"
        try:
            yield Replica(
                client,
                reader,
                writer,
                store,
                sightings,
                counts,
                clock,
                f"{scheme}://127.0.0.1:{port}",
                session,
            )
        finally:
            await runner.cleanup()


@dataclass(slots=True)
class Scene:
    """One run in its namespace, through one replica. `pods` are the created pods by name."""

    replica: Replica
    ref: RunRef
    pods: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Path of the run in the runner API."""
        return f"/runner/{self.ref.namespace}/{self.ref.name}/{self.ref.uid}"

    async def view(self) -> RunView:
        """The run now, by a live read."""
        found = await self.replica.reader.read_ref(self.ref)
        assert isinstance(found, RunView), found
        return found

    async def write(self, *drafts: Draft, epoch: int | None = None) -> WriteResult:
        """Append as the leader would."""
        change = Change(drafts, None if epoch is None else Epoch(epoch))
        return await self.replica.writer.guarded_write(self.ref, (), change)

    async def append(self, *drafts: Draft, epoch: int | None = None) -> RunView:
        """Append as the leader would; it must succeed."""
        result = await self.write(*drafts, epoch=epoch)
        assert isinstance(result, Done), result
        return result.view

    async def create(self, resource: Resource, body: dict[str, Any]) -> Any:
        """Create an object in the run's namespace."""
        answer = await self.replica.client.create(resource, self.ref.namespace, body)
        assert isinstance(answer, Ok), answer
        return answer.value

    async def pod(self, tag: str, account: str = RUNNER, *, mounted: bool = True) -> None:
        """Plan, create and record a pod, as the leader does; its bundle is stored before.

        `mounted`: the policy's static token is a file of the pod.
        """
        credential = ["--clone-token-file", "/t"] if mounted else []
        stored = await self.replica.store.put_bytes(self.ref.uid, BUNDLE)
        assert isinstance(stored, Stored)
        kind = "delivery" if tag.startswith("d") else "attempt"
        name = f"{self.ref.name}-{tag}"
        await self.append(draft(tag, kind, "intent", {"bundle": stored.sha256}, pod=name))  # type: ignore[dict-item]  # a digest
        made = await self.create(
            PODS,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "ownerReferences": [owner_reference(self.ref)]},
                "spec": {
                    "serviceAccountName": account,
                    "automountServiceAccountToken": False,
                    "containers": [{"name": "main", "image": "x", "args": ["run", *credential]}],
                },
            },
        )
        self.pods[tag] = made
        await self.append(draft(tag, kind, podUID=made["metadata"]["uid"]))

    async def token(self, tag: str, **spec: Any) -> str:
        """A token bound to that pod, as the kubelet would project it."""
        pod = self.pods[tag]
        wanted = {
            "audiences": [TOKEN_AUDIENCE],
            "expirationSeconds": 3600,
            "boundObjectRef": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": pod["metadata"]["name"],
                "uid": pod["metadata"]["uid"],
            },
            **spec,
        }
        answer = await self.replica.client.create_token(
            self.ref.namespace, pod["spec"]["serviceAccountName"], wanted
        )
        assert isinstance(answer, Ok), answer
        return str(answer.value["status"]["token"])

    async def delete_pod(self, tag: str) -> None:
        """Delete a pod; without a kubelet it is gone at once."""
        metadata = self.pods[tag]["metadata"]
        answer = await self.replica.client.delete(
            PODS, self.ref.namespace, metadata["name"], uid=metadata["uid"]
        )
        assert isinstance(answer, Ok), answer

    async def hello(
        self, token: str, *, replica: Replica | None = None, nonce: str = NONCE
    ) -> Answer:
        """Say hello."""
        message = {"protocol": {"min": 1, "max": 1}, "bootNonce": nonce, "version": "0.1.0"}
        return await self.send("POST", "hello", token, message, replica=replica)

    async def send(
        self,
        method: str,
        endpoint: str,
        token: str | None,
        message: Any = None,
        *,
        epoch: int | None = None,
        replica: Replica | None = None,
    ) -> Answer:
        """Call an endpoint of this run; `message` is JSON, or bytes as they are."""
        data = message if isinstance(message, bytes | None) else json.dumps(message).encode()
        return await (replica or self.replica).call(
            method, f"{self.path}/{endpoint}", token, data=data, epoch=epoch
        )


async def make_run(
    replica: Replica, namespace: str, name: str = "app", spec: Mapping[str, Any] | None = None
) -> RunRef:
    """Create a run object."""
    body = {
        "apiVersion": UPGRADE_RUNS.api_version,
        "kind": UPGRADE_RUNS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "repository": {"url": "https://git.example/team/app.git"},
            "mode": "Rules",
            "publication": {"enabled": True},
            **(spec or {}),
        },
    }
    answer = await replica.client.create(UPGRADE_RUNS, namespace, body)
    assert isinstance(answer, Ok), answer
    return ref_of(answer.value)


async def make_scene(
    replica: Replica, namespace: str, spec: Mapping[str, Any] | None = None
) -> Scene:
    """A namespace with service accounts, a run and its Lease."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    assert isinstance(await replica.client.create(NAMESPACES, None, body), Ok)
    for account in (RUNNER, PUBLISHER):
        made = await replica.client.create(
            SERVICE_ACCOUNTS,
            namespace,
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}},
        )
        assert isinstance(made, Ok), made
    scene = Scene(replica, await make_run(replica, namespace, spec=spec))
    await scene.create(LEASES, dict(run_lease(scene.ref)))
    return scene


def install_crds(server: ApiServer) -> None:
    """Apply the generated CRDs and wait until they are served."""
    server.kubectl("apply", "--server-side", "-f", str(REPOSITORY / "crds"))
    server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
