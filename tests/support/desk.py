"""The operator's loop on a real API server: one process's reconciler, and a test that plays the rest.

`Desk` is one leader (client, writer, store, reconciler); a second one on the same folder is the next
leader or a restarted process. `Play` is one run: the test speaks for its pods, its people and the
kubelet. Time is the machine's plus what a test lets pass; nothing sleeps.
"""

import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from clusterlib.apiserver import ApiServer
from support.fixtures.launch import Host
from support.journal_story import draft
from support.replicas import UNLIMITED
from upgraderun_operator.adapters.clock import SystemClock
from upgraderun_operator.adapters.forge import GitHubReader
from upgraderun_operator.adapters.forge_http import ForgeCalls
from upgraderun_operator.adapters.forge_tokens import InstallationTokens
from upgraderun_operator.adapters.kubeconfig import from_kubeconfig
from upgraderun_operator.adapters.kubernetes import KubeClient
from upgraderun_operator.adapters.runs import RunReader
from upgraderun_operator.adapters.store import VolumeStore
from upgraderun_operator.adapters.writer import StatusWriter
from upgraderun_operator.answers import (
    CreateAnswer,
    DeleteAnswer,
    GetAnswer,
    KubeObject,
    NotFound,
    Ok,
    PutAnswer,
)
from upgraderun_operator.build.context import BuildOptions
from upgraderun_operator.journal.run import RunView
from upgraderun_operator.journal.writes import Change, Done
from upgraderun_operator.keys import Key, Wake
from upgraderun_operator.observe.seen import SeenVersions
from upgraderun_operator.observe.world import World
from upgraderun_operator.operating import build_reconciler
from upgraderun_operator.resources import (
    CLAIMS,
    EVENTS,
    LEASES,
    PODS,
    UPGRADE_APPROVALS,
    UPGRADE_REPORTS,
    UPGRADE_RUNS,
    Resource,
)
from upgraderun_protocol.effects import FaultPoint, no_fault
from upgraderun_protocol.entries import Draft
from upgraderun_protocol.ids import Epoch, Sha256
from upgraderun_protocol.records import to_bytes
from upgraderun_protocol.redact import Redactor
from upgraderun_protocol.report import ReportRecord, ReportTarget

OPERATOR_NAMESPACE: Final = "upgraderun"
IMAGE: Final = "registry.example/runner@sha256:" + "1" * 64
RECORD: Final = ReportRecord(
    version=1,
    outcome="proposal_prepared",
    message="one commit is frozen",
    target=ReportTarget("lib", "1.0", "1.1"),
    patch="--- a/uv.lock\n+++ b/uv.lock\n",
)
PROPOSAL: Final = b'{"proposal":"record"}'


class MovedClock(SystemClock):
    """The machine's clock, plus seconds that a test lets pass for both of its faces."""

    def __init__(self) -> None:
        self.passed = 0.0
        self._stopped: tuple[datetime, float] | None = None

    def stop(self) -> None:
        """Let only `passed` move it from now on, however slow the machine is."""
        self._stopped = super().now(), super().monotonic()

    def now(self) -> datetime:
        """Wall clock, moved."""
        start = super().now() if self._stopped is None else self._stopped[0]
        return start + timedelta(seconds=self.passed)

    def monotonic(self) -> float:
        """Monotonic clock, moved alike."""
        start = super().monotonic() if self._stopped is None else self._stopped[1]
        return start + self.passed


class CountingClient(KubeClient):
    """Counts what leaves this process: writes by verb and kind, reads of single objects by kind.

    `meanwhile`: what happens in the world right before the next read of a kind, once.
    """

    writes: Counter[str]
    reads: Counter[str]
    meanwhile: dict[str, Callable[[], Awaitable[None]]]

    async def get(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        timeout_seconds: float | None = None,
    ) -> GetAnswer:
        """Count, let happen what shall, then read."""
        self.reads[resource.plural] += 1
        happens = self.meanwhile.pop(resource.plural, None)
        if happens is not None:
            await happens()
        return await super().get(resource, namespace, name, timeout_seconds=timeout_seconds)

    async def create(
        self,
        resource: Resource,
        namespace: str | None,
        body: KubeObject,
        *,
        timeout_seconds: float | None = None,
    ) -> CreateAnswer:
        """Count, then create."""
        self.writes[f"create {resource.plural}"] += 1
        return await super().create(resource, namespace, body, timeout_seconds=timeout_seconds)

    async def put(
        self,
        resource: Resource,
        body: KubeObject,
        *,
        subresource: str = "",
        timeout_seconds: float | None = None,
    ) -> PutAnswer:
        """Count, then put."""
        self.writes[f"put {resource.plural}{'/' * bool(subresource)}{subresource}"] += 1
        return await super().put(
            resource, body, subresource=subresource, timeout_seconds=timeout_seconds
        )

    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str,
        grace_seconds: int | None = None,
    ) -> DeleteAnswer:
        """Count, then delete."""
        self.writes[f"delete {resource.plural}"] += 1
        return await super().delete(resource, namespace, name, uid=uid, grace_seconds=grace_seconds)


@dataclass(slots=True)
class FixedLeader:
    """Leadership as a test gives it; `raised` notes what it was asked to get above."""

    epoch: Epoch | None
    raised: list[Epoch] = field(default_factory=list)

    def raise_above(self, seen: Epoch) -> None:
        """Note it: the epoch itself comes with a renewal, which the test plays."""
        self.raised.append(seen)


@dataclass(slots=True)
class Desk:
    """One operator process without its engine: a test says which key is next."""

    client: CountingClient
    reader: RunReader
    writer: StatusWriter
    store: VolumeStore
    clock: MovedClock
    leader: FixedLeader
    world: World
    ended: list[tuple[str, str | None]]
    phases: list[str | None]
    reconcile: Any
    seen_versions: SeenVersions

    @property
    def writes(self) -> Counter[str]:
        """Writes so far."""
        return self.client.writes

    @property
    def reads(self) -> Counter[str]:
        """Reads of single objects so far."""
        return self.client.reads


@contextlib.asynccontextmanager
async def open_desk(
    server: ApiServer,
    folder: Path,
    *,
    epoch: int = 1,
    clock: MovedClock | None = None,
    fault: FaultPoint = no_fault,
) -> AsyncIterator[Desk]:
    """Be one leader until the block ends."""
    clock = clock or MovedClock()
    client = CountingClient(from_kubeconfig(server.kubeconfig), clock, UNLIMITED)
    client.writes, client.reads, client.meanwhile = Counter(), Counter(), {}
    leader = FixedLeader(Epoch(epoch))
    async with client, ForgeCalls() as calls:
        store = VolumeStore(folder, clock)
        reader = RunReader(client, store)
        writer = StatusWriter(client, reader, store, clock, "operator-0")
        options = BuildOptions(
            operator_namespace=OPERATOR_NAMESPACE,
            operator_url="https://upgraderun-operator.upgraderun.svc:8443",
            authority="-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
            runner_account="upgraderun-runner",
            publisher_account="upgraderun-publisher",
            allow_inline=True,
        )
        world = World(
            cluster=client,
            runs=reader,
            writer=writer,
            artifacts=store,
            forge=GitHubReader(calls),
            tokens=InstallationTokens(calls, clock),
            clock=clock,
            leader=leader,
            redactor=Redactor(),
            options=lambda: options,
            identity="operator-0",
            fault=fault,
        )
        ended: list[tuple[str, str | None]] = []
        phases: list[str | None] = []
        reconciler = build_reconciler(
            world,
            lambda _run, name, kind: ended.append((name, kind)),
            lambda _run, phase: phases.append(phase),
        )
        yield Desk(
            client,
            reader,
            writer,
            store,
            clock,
            leader,
            world,
            ended,
            phases,
            reconciler.reconcile,
            reconciler.seen_versions,
        )


@dataclass(slots=True)
class Play:
    """One run. `desk` is the present leader; a test may put another one in its place."""

    desk: Desk
    host: Host
    namespace: str
    name: str
    repository: str
    uid: str = ""
    commit: str = "c" * 40
    said: int = field(default=0)

    @property
    def key(self) -> Key:
        """What the queue would hand out."""
        return Key(self.namespace, self.name)

    async def go(self) -> Wake:
        """One call of the loop, as a worker makes it."""
        wake = await self.desk.reconcile(self.key)
        assert isinstance(wake, Wake)
        return wake

    async def view(self) -> RunView:
        """The run now, by a live read."""
        found = await self.desk.reader.read(self.namespace, self.name)
        assert isinstance(found, RunView), found
        return found

    async def status(self) -> Mapping[str, Any]:
        """Its status as people read it."""
        return (await self.view()).status

    async def entries(self) -> list[str]:
        """The journal in short."""
        return [f"{entry.id} {entry.state.value}" for entry in (await self.view()).state.fold]

    async def get(self, resource: Resource, name: str) -> Any:
        """One object of the run's namespace, None if it isn't there."""
        answer = await self.desk.client.get(resource, self.namespace, name)
        return answer.value if isinstance(answer, Ok) else None

    async def listed(self, resource: Resource) -> list[Any]:
        """All objects of a kind in the run's namespace."""
        answer = await self.desk.client.list(resource, self.namespace)
        assert isinstance(answer, Ok), answer
        return list(answer.value.items)

    async def left(self) -> list[str]:
        """What stands beside the run, but Events: kind and name.

        No controller lifts the protection of a volume claim here: one that is being deleted is gone.
        """
        found = []
        for resource in (PODS, CLAIMS, LEASES, UPGRADE_REPORTS):
            metadata = [one["metadata"] for one in await self.listed(resource)]
            found += [
                f"{resource.kind} {one['name']}"
                for one in metadata
                if "deletionTimestamp" not in one
            ]
        return found

    async def reasons(self) -> list[str]:
        """Reasons of the Events about the run, in order of creation."""
        events = await self.listed(EVENTS)
        mine = [one for one in events if one["regarding"]["name"] == self.name]
        return [
            one["reason"]
            for one in sorted(mine, key=lambda one: str(one["metadata"]["creationTimestamp"]))
        ]

    async def wish(self, **spec: Any) -> None:
        """Change the spec, as its author does."""
        raw = await self.get(UPGRADE_RUNS, self.name)
        body = {**raw, "spec": {**raw["spec"], **spec}}
        assert isinstance(await self.desk.client.put(UPGRADE_RUNS, body), Ok)

    async def say(self, *drafts: Draft, epoch: int) -> None:
        """Append as the API does for the pod that may write."""
        view = await self.view()
        result = await self.desk.writer.guarded_write(view.ref, (), Change(drafts, Epoch(epoch)))
        assert isinstance(result, Done), result
        self.said += 1

    async def hello(self, tag: str) -> int:
        """The pod's process takes the run; gives its epoch."""
        view = await self.view()
        pod = view.state.last_pod
        assert pod is not None
        epoch = view.state.epoch + 1
        entry = draft(
            f"{tag}/i{epoch}",
            "incarnation",
            podUID=str(pod.pod_uid),
            nonce="a" * 64,
            protocol="1",
        )
        await self.say(entry, epoch=epoch)
        return int(epoch)

    async def store(self, data: bytes) -> Sha256:
        """Put an artifact, as the API does for a pod."""
        stored = await self.desk.store.put_bytes((await self.view()).uid, data)
        return Sha256(stored.sha256)  # type: ignore[union-attr]  # the store of a test answers

    async def freeze(self, tag: str = "a1") -> None:
        """The runner freezes one commit and ends by its verdict."""
        epoch = await self.hello(tag)
        proposal = await self.store(PROPOSAL)
        report = await self.store(to_bytes(RECORD))
        recipe = await self.store(b"{}")
        view = await self.view()
        admission, pod = view.state.admission, view.state.attempt
        assert admission is not None
        assert pod is not None
        intent = draft(
            "proposal/s3",
            "proposal",
            "intent",
            {"recipe": recipe},
            proposal="p-s3",
            commit=self.commit,
            tree="b" * 40,
            ref="refs/upgraderun/proposals/p-s3",
        )
        done = draft(
            "proposal/s3",
            "proposal",
            "done",
            {"record": proposal, "report": report},
            name="lib",
            from_="1.0",
            to="1.1",
            files="2",
            added="3",
            removed="1",
        )
        base = draft("base", "base", commit=admission.base_commit or "a" * 40, tree="b" * 40)
        end = draft(
            f"{tag}/end",
            "end",
            "done",
            {"report": report},
            cause="verdict",
            podUID=str(pod.pod_uid),
            outcome="proposal_prepared",
            verdictId="v1",
        )
        await self.say(base, intent, done, end, epoch=epoch)
        await self.exits(tag, 0)

    async def publish(self, tag: str = "d1") -> None:
        """The publisher pushes, opens the pull request and ends the run."""
        epoch = await self.hello(tag)
        view = await self.view()
        push = view.state.push
        assert push is not None
        pr: dict[str, str] = {"branch": str(push.branch), "commit": self.commit}
        await self.say(
            draft(push.id, "push", commit=self.commit),
            draft("pr/1", "pullRequest", "intent", **pr),
            epoch=epoch,
        )
        url = f"{self.host.url}/{self.repository}/pull/1"
        await self.say(
            draft("pr/1", "pullRequest", number="1", state="open", commit=self.commit, url=url),
            draft(f"{tag}/end", "end", cause="verdict", outcome="proposal_published"),
            draft("outcome", "outcome", outcome="proposal_published", message=url),
            epoch=epoch,
        )
        await self.exits(tag, 0)

    async def approve(self, name: str = "yes", **fields: Any) -> None:
        """Somebody else than the requester answers the open question."""
        request = (await self.view()).state.pending_request
        spec = {
            "runRef": {"name": self.name, "uid": (await self.view()).uid},
            "kind": "Publication",
            "digest": request.digest if request else "0" * 64,
            "decision": "Approve",
            "approver": "anna",
            **fields,
        }
        body = {
            "apiVersion": UPGRADE_APPROVALS.api_version,
            "kind": UPGRADE_APPROVALS.kind,
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "annotations": {"upgraderun.dev/requester": "rita"},
            },
            "spec": spec,
        }
        made = await self.desk.client.create(UPGRADE_APPROVALS, self.namespace, body)
        assert isinstance(made, Ok), made

    async def pod_of(self, tag: str) -> Any:
        """The pod object of that tag, None if it isn't there."""
        state = (await self.view()).state
        pods = {pod.tag: pod.pod_name for pod in (*state.attempts, *state.deliveries)}
        return await self.get(PODS, pods[tag])  # type: ignore[index]  # tags are strings

    async def shows(self, tag: str, phase: str, state: Mapping[str, Any]) -> None:
        """Say as the kubelet what the one container does; a pod that is gone says nothing."""
        raw = await self.pod_of(tag)
        if raw is None:
            return
        container = {
            "name": raw["spec"]["containers"][0]["name"],
            "image": IMAGE,
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": state,
        }
        status = {"phase": phase, "containerStatuses": [container]}
        answer = await self.desk.client.put(PODS, {**raw, "status": status}, subresource="status")
        assert isinstance(answer, Ok), answer

    async def runs(self, tag: str) -> None:
        """The container runs."""
        started = self.desk.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        await self.shows(tag, "Running", {"running": {"startedAt": started}})

    async def exits(self, tag: str, code: int, message: str = "") -> None:
        """The container ended."""
        ended = {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}
        phase = "Succeeded" if code == 0 else "Failed"
        await self.shows(tag, phase, {"terminated": {**ended, "message": message}})

    async def vanishes(self, tag: str) -> None:
        """The pod is deleted by somebody else, at once."""
        raw = await self.pod_of(tag)
        metadata = raw["metadata"]
        answer = await self.desk.client.delete(
            PODS, self.namespace, metadata["name"], uid=metadata["uid"], grace_seconds=0
        )
        assert isinstance(answer, Ok | NotFound), answer


Make = Callable[..., Awaitable[Play]]
"""The fixture that makes runs."""
