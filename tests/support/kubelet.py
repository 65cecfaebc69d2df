"""A kubelet without containers: each of our pods becomes a process of an ordinary user.

With a real API server and real operator processes it lets whole runs happen in seconds, with real
git and uv, and with pods that can be killed, silenced and woken. What it can't show (images,
security contexts, networks) the cluster suite shows.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

from support.kubeapi import CORE, Json, Kube, KubeError, path_of
from support.ordinary_user import RunnerEnvironment, as_ordinary_user, owned_by_ordinary_user
from support.volumes import Volumes

NODE: Final = "process-node"
PROTECTION: Final = "kubernetes.io/pvc-protection"
ENTRYPOINT: Final = ("-I", "-m", "upgraderun_runner")
"""What the runner image's entry point gives to its Python."""


@dataclass(slots=True)
class PodProcess:
    """One pod that runs as a process. `log` holds its output."""

    name: str
    uid: str
    directory: Path
    log: Path
    process: asyncio.subprocess.Process | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and its children, if it still lives."""
        if self.process is not None and self.process.returncode is None:
            os.killpg(self.process.pid, number)


class ProcessKubelet:
    """Runs the pods of one namespace until `close`. `environment` adds variables to each pod."""

    def __init__(
        self,
        kube: Kube,
        namespace: str,
        directory: Path,
        runner: RunnerEnvironment,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._kube = kube
        self._namespace = namespace
        self._directory = directory
        self._runner = runner
        self.environment = dict(environment or {})
        self.pods: dict[str, PodProcess] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._watchers: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._watchers = [
            asyncio.create_task(self._watch(self._pods_path, self._see)),
            asyncio.create_task(self._watch(self._claims_path, self._see_claim)),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for pod in self.pods.values():
            pod.signal(signal.SIGKILL)
        tasks = [*self._tasks, *self._watchers]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def _pods_path(self) -> str:
        return path_of(CORE, self._namespace, "pods")

    @property
    def _claims_path(self) -> str:
        return path_of(CORE, self._namespace, "persistentvolumeclaims")

    async def _watch(self, path: str, see: Callable[[Json], None]) -> None:
        while True:
            answer = await self._kube.get(path)
            for item in answer["items"]:
                see(item)
            version = answer["metadata"]["resourceVersion"]
            async for event in self._kube.watch(path, version):
                if event["type"] in {"ADDED", "MODIFIED"}:
                    see(event["object"])
                elif event["type"] == "ERROR":
                    break

    def _see(self, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        if uid not in self.pods:
            if pod["metadata"].get("deletionTimestamp"):
                return
            name = pod["metadata"]["name"]
            directory = self._directory / "pods" / uid
            self.pods[uid] = PodProcess(name, uid, directory, self._directory / f"{name}.log")
            self._spawn(self._run_or_tell(pod, self.pods[uid]))
        elif pod["metadata"].get("deletionTimestamp"):
            self._spawn(self._stop(self.pods[uid]))

    def _see_claim(self, claim: Json) -> None:
        """Let a deleted claim go, as the cluster's own controller does once no pod uses it."""
        metadata = claim["metadata"]
        if metadata.get("deletionTimestamp") and PROTECTION in metadata.get("finalizers", []):
            self._spawn(self._let_go(metadata["name"]))

    async def _let_go(self, claim: str) -> None:
        for pod in await self._kube.items(self._pods_path):
            volumes = pod["spec"].get("volumes", [])
            used = [v.get("persistentVolumeClaim", {}).get("claimName") for v in volumes]
            mine = self.pods.get(pod["metadata"]["uid"])
            if claim in used and mine is not None:
                await mine.gone.wait()
        path = f"{self._claims_path}/{claim}"
        try:
            await self._kube.patch(path, {"metadata": {"finalizers": None}})
        except KubeError as error:
            if error.status != 404:
                raise

    def _spawn(self, body: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(body)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_or_tell(self, pod: Json, mine: PodProcess) -> None:
        """Run the pod; what keeps it from starting stands in its log, where a test looks."""
        try:
            await self._run(pod, mine)
        except (OSError, AssertionError, KeyError) as error:
            with mine.log.open("a") as log:
                log.write(f"kubelet: {type(error).__name__}: {error}\n")
            raise

    async def _run(self, pod: Json, mine: PodProcess) -> None:
        path = f"{self._pods_path}/{mine.name}"
        await self._kube.create(
            f"{path}/binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": mine.name},
                "target": {"apiVersion": "v1", "kind": "Node", "name": NODE},
            },
        )
        container = pod["spec"]["containers"][0]
        mine.directory.mkdir(parents=True)
        volumes = Volumes(self._kube, pod, mine.directory, self._directory / "claims")
        mounts = await volumes.mounts(container)
        termination = mine.directory / "termination-log"
        termination.touch()
        termination.chmod(0o666)
        argv = self._argv(container, mounts, termination)
        with mine.log.open("ab") as log:
            mine.process = await asyncio.create_subprocess_exec(
                *as_ordinary_user(argv),
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=self._environment(container, mounts, mine.directory),
                cwd="/",
            )
        running = {"running": {"startedAt": _now()}}
        await self._report(path, container, "Running", running)
        code = await mine.process.wait()
        message = termination.read_text(errors="replace")[:4096]
        state = {
            "terminated": {
                "exitCode": code if code >= 0 else 128 - code,
                "reason": "Completed" if code == 0 else "Error",
                "message": message,
                "startedAt": _now(),
                "finishedAt": _now(),
            }
        }
        await self._report(path, container, "Succeeded" if code == 0 else "Failed", state)
        mine.ended.set()

    async def _stop(self, mine: PodProcess) -> None:
        """Do what a kubelet does for a deleted pod: SIGTERM, grace, SIGKILL, then remove it."""
        mine.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(5):
                await mine.ended.wait()
        except TimeoutError:
            mine.signal(signal.SIGKILL)
            await mine.ended.wait()
        await self._kube.delete(f"{self._pods_path}/{mine.name}", grace=0)
        mine.gone.set()

    async def _report(self, path: str, container: Json, phase: str, state: Json) -> None:
        ready = phase == "Running"
        status = {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": str(ready)}],
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": container["image"],
                    "ready": ready,
                    "restartCount": 0,
                    "state": state,
                }
            ],
        }
        try:
            await self._kube.patch(f"{path}/status", {"status": status})
        except KubeError as error:
            if error.status != 404:
                raise

    def _argv(
        self, container: Json, mounts: Mapping[str, Path], termination: Path
    ) -> Sequence[str]:
        rewritten = [_rewrite(argument, mounts) for argument in container["args"]]
        command = [str(self._runner.python), *ENTRYPOINT, *rewritten]
        return [*command, "--termination-log", str(termination)]

    def _environment(
        self, container: Json, mounts: Mapping[str, Path], directory: Path
    ) -> dict[str, str]:
        declared = {
            item["name"]: _rewrite(item.get("value", ""), mounts)
            for item in container.get("env", [])
        }
        path = f"{self._runner.directory / 'bin'}:/usr/bin:/bin"
        # A container's own /tmp goes with it, also when it was killed.
        temporary = owned_by_ordinary_user(directory / "tmp")
        fixed = {"PATH": path, "LANG": "C.UTF-8", "TMPDIR": str(temporary)}
        return {**declared, **fixed, **self.environment}


def _rewrite(text: str, mounts: Mapping[str, Path]) -> str:
    """Replace a mount path at the start of an argument by this machine's folder."""
    for mount in sorted(mounts, key=len, reverse=True):
        if text == mount or text.startswith(mount + "/"):
            return str(mounts[mount]) + text[len(mount) :]
    return text


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
