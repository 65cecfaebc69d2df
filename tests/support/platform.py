"""A platform in processes: API server, operators, pods as processes; whole runs in seconds.

Callers: tests of whole runs. It acts as the people around the operator: the platform team that
applies a policy, a requester, an approver. What it knows of the operator is what they know: the
kinds, their status, the Events.
"""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

import manifests
from clusterlib.apiserver import ApiServer
from support.kubeapi import CORE, LEASES, OURS, Json, Kube, path_of
from support.kubelet import ProcessKubelet
from support.operators import OperatorProcess
from support.ordinary_user import ROOT, RunnerEnvironment

OPERATOR_NAMESPACE: Final = "upgraderun-system"
REQUESTER: Final = "alice"
APPROVER: Final = "bob"
IMAGE: Final = "runner@sha256:" + "1" * 64
RUN_SECONDS: Final = 300


async def install_kinds(kube: Kube) -> None:
    """Apply the CRDs and wait until they are served."""
    names = []
    for file in sorted((ROOT / "crds").glob("*.yaml")):
        manifest = manifests.read(file.read_text())
        names.append(manifest["metadata"]["name"])
        await kube.apply(manifest)
    for name in names:
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        await until(partial(_established, kube, path), f"{name} is served")
    await ensure_namespace(kube, OPERATOR_NAMESPACE)
    metadata = {"name": "upgraderun-operator-tls", "namespace": OPERATOR_NAMESPACE}
    await kube.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})


async def _established(kube: Kube, path: str) -> bool:
    # A young one has `conditions: null`.
    conditions = (await kube.get(path)).get("status", {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


async def ensure_namespace(kube: Kube, name: str) -> None:
    """Make a namespace if it isn't there."""
    await kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


async def until(
    holds: Callable[[], Any], what: str, seconds: float = 30, every: float = 0.1
) -> None:
    """Wait for a state of the world with a deadline; `holds` asks the world each time."""
    try:
        async with asyncio.timeout(seconds):
            while not await holds():  # noqa: ASYNC110 - the world rings no bell for a predicate
                await asyncio.sleep(every)
    except TimeoutError:
        raise AssertionError(f"after {seconds:.0f} s still not: {what}") from None


def world_folder() -> Path:
    """Make a folder that the ordinary user may pass through, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="upgraderun-"))
    folder.chmod(0o755)
    return folder


@dataclass(slots=True)
class Platform:
    """One namespace of a platform: its policy, its runs, its pods."""

    kube: Kube
    namespace: str
    policy: Json
    logs: Path
    operators: tuple[OperatorProcess, ...] = ()

    def acting_as(self, user: str) -> Kube:
        """The client of a person; here the administrator's, who may name anybody in annotations."""
        return self.kube

    def artifacts(self, uid: str) -> Path:
        """Folder of what the artifact store has of the run with that UID."""
        root = self.operators[0].artifacts
        return next(root.rglob(uid), root)

    def path(self, plural: str, name: str | None = None) -> str:
        """Path of one of our kinds in this namespace."""
        return path_of(OURS, self.namespace, plural, name)

    async def apply_policy(self, **changes: Any) -> None:
        """Apply the default policy with top-level fields of its spec changed."""
        await self.apply_named_policy("default", {**self.policy, **changes})

    async def apply_named_policy(self, name: str, spec: Json) -> None:
        """Apply a policy."""
        await self.kube.apply(
            {
                "apiVersion": "upgraderun.dev/v1alpha1",
                "kind": "UpgradePolicy",
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": spec,
            }
        )

    async def apply_config(self, name: str, data: Mapping[str, str]) -> None:
        """Apply a ConfigMap."""
        metadata = {"name": name, "namespace": self.namespace}
        await self.kube.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}
        )

    async def apply_secret(self, name: str, data: Mapping[str, str]) -> None:
        """Apply a Secret."""
        metadata = {"name": name, "namespace": self.namespace}
        await self.kube.apply(
            {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": dict(data)}
        )

    async def create_run(self, name: str, spec: Json, requester: str | None = REQUESTER) -> Json:
        """Create a run as the requester."""
        annotations = {"upgraderun.dev/requested-by": requester} if requester else {}
        return await self.acting_as(requester or "").create(
            self.path("upgraderuns"),
            {
                "apiVersion": "upgraderun.dev/v1alpha1",
                "kind": "UpgradeRun",
                "metadata": {"name": name, "annotations": annotations},
                "spec": spec,
            },
        )

    async def run(self, name: str) -> Json:
        """Read a run."""
        return await self.kube.get(self.path("upgraderuns", name))

    async def status(self, name: str) -> Json:
        """Read a run's status."""
        return dict((await self.run(name)).get("status") or {})

    async def wait_for(
        self, name: str, holds: Callable[[Json], bool], what: str, seconds: float = RUN_SECONDS
    ) -> Json:
        """Follow a run's status until a predicate holds; a failure shows status and logs."""
        status: Json = {}
        path = self.path("upgraderuns")
        selector = {"fieldSelector": f"metadata.name={name}"}
        try:
            async with asyncio.timeout(seconds):
                while True:
                    run = await self.run(name)
                    version = run["metadata"]["resourceVersion"]
                    status = run.get("status") or {}
                    if holds(status):
                        return status
                    async for event in self.kube.watch(path, version, **selector):
                        if event["type"] not in {"ADDED", "MODIFIED"}:
                            break
                        status = event["object"].get("status") or {}
                        if holds(status):
                            return status
        except TimeoutError:
            raise AssertionError(
                f"{name}: after {seconds:.0f} s still not: {what}\n{self.story(status)}"
            ) from None

    async def finished(self, name: str, seconds: float = RUN_SECONDS) -> Json:
        """Wait for the end of a run, finalization included."""
        return await self.wait_for(name, lambda s: bool(s.get("finished")), "finished", seconds)

    async def asked(
        self, name: str, kind: str = "Publication", seconds: float = RUN_SECONDS
    ) -> Json:
        """Wait for the request to people; returns `pendingApproval`. Fails if the run ends."""
        status = await self.wait_for(
            name,
            lambda s: bool(s.get("pendingApproval", {}).get("kind") == kind or s.get("outcome")),
            f"asks for approval of kind {kind}",
            seconds,
        )
        assert status.get("pendingApproval"), f"ended instead of asking\n{self.story(status)}"
        return dict(status["pendingApproval"])

    async def answer(
        self,
        name: str,
        decision: str = "Approve",
        *,
        approver: str = APPROVER,
        digest: str | None = None,
        comment: str | None = None,
    ) -> Json:
        """Answer a run's pending request as an approver; `digest` overrides the asked one."""
        run = await self.run(name)
        pending = run["status"].get("pendingApproval") or {}
        spec = {
            "runRef": {"name": name, "uid": run["metadata"]["uid"]},
            "kind": pending.get("kind", "Publication"),
            "digest": digest or pending["digest"],
            "decision": decision,
            "approver": approver,
            **({"comment": comment} if comment else {}),
        }
        annotations = {"upgraderun.dev/requester": REQUESTER}
        return await self.acting_as(approver).create(
            self.path("upgradeapprovals"),
            {
                "apiVersion": "upgraderun.dev/v1alpha1",
                "kind": "UpgradeApproval",
                "metadata": {"generateName": f"{name}-", "annotations": annotations},
                "spec": spec,
            },
        )

    async def report(self, name: str) -> Json:
        """Read a run's report."""
        return await self.kube.get(self.path("upgradereports", name))

    async def events(self, name: str) -> list[Json]:
        """Events about a run, in order."""
        found = await self.kube.items(
            path_of(CORE, self.namespace, "events"), fieldSelector=f"involvedObject.name={name}"
        )
        return sorted(found, key=lambda event: event["metadata"]["creationTimestamp"])

    async def leftovers(self) -> list[str]:
        """Names of pods, claims and run Leases that are still there."""
        kinds = ((CORE, "pods"), (CORE, "persistentvolumeclaims"), (LEASES, "leases"))
        return [
            f"{plural}/{item['metadata']['name']}"
            for prefix, plural in kinds
            for item in await self.kube.items(path_of(prefix, self.namespace, plural))
        ]

    def story(self, status: Json) -> str:
        """Status without the journal's digests, and the ends of all logs: a failure's message."""
        journal = status.get("journal", {}).get("entries", [])
        lines = [
            f"{e['seq']:>3} {e['id']:<18} {e['state']:<11} {e.get('data', {})}" for e in journal
        ]
        rest = {k: v for k, v in status.items() if k != "journal"}
        logs = [f"--- {f.name}\n{_tail(f)}" for f in sorted(self.logs.glob("**/*.log"))]
        return "\n".join([yaml.safe_dump(rest, sort_keys=False), *lines, *logs])


def has_a_baseline(status: Json) -> bool:
    """Whether the first baseline has passed; a predicate of `Platform.wait_for`."""
    entries = status.get("journal", {}).get("entries", [])
    return any(e["id"] == "baseline/1" and e["state"] == "done" for e in entries)


def _tail(file: Path, lines: int = 30) -> str:
    return "\n".join(file.read_text(errors="replace").splitlines()[-lines:])


@asynccontextmanager
async def watching_pods(
    platform: Platform, note: Callable[[Json], Awaitable[None]]
) -> AsyncIterator[None]:
    """Show every state of every pod of the namespace to `note` while the block runs."""

    async def watch() -> None:
        while True:
            async for event in platform.kube.watch(path_of(CORE, platform.namespace, "pods")):
                await note(event["object"])

    watcher = asyncio.create_task(watch())
    try:
        yield
    finally:
        watcher.cancel()
        await asyncio.gather(watcher, return_exceptions=True)


@asynccontextmanager
async def open_namespace(
    kube: Kube,
    namespace: str,
    runner: RunnerEnvironment,
    policy: Json,
    folder: Path,
    operators: tuple[OperatorProcess, ...] = (),
) -> AsyncIterator[Platform]:
    """Make a namespace with its service accounts and a kubelet for its pods."""
    await ensure_namespace(kube, namespace)
    for account in ("upgraderun-runner", "upgraderun-publisher"):
        await kube.apply(
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": account, "namespace": namespace},
            }
        )
    logs = folder / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    async with ProcessKubelet(kube, namespace, folder, runner):
        yield Platform(kube, namespace, policy, folder, operators)


@asynccontextmanager
async def operators_of(
    server: ApiServer, folder: Path, count: int = 1, **variables: str
) -> AsyncIterator[tuple[OperatorProcess, ...]]:
    """Start replicas that share artifacts and Leases."""
    artifacts = folder / "artifacts"
    artifacts.mkdir(parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        replicas = [
            OperatorProcess(
                f"replica-{n}",
                server.kubeconfig,
                OPERATOR_NAMESPACE,
                artifacts,
                folder / "logs",
                variables,
            )
            for n in range(count)
        ]
        for replica in replicas:
            await stack.enter_async_context(replica)
        yield tuple(replicas)


def remove(folder: Path) -> None:
    """Remove a world's folder, whoever owns what is in it."""
    shutil.rmtree(folder, ignore_errors=True)
