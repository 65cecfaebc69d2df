"""What stands before the demo begins: cluster, images, forge, operator, a team's namespace.

Callers: `demolib`. Everything may be repeated: a second showing replaces the first one's world.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clusterlib import images, whole
from clusterlib.kubectl import Kubectl, Manifest
from clusterlib.paths import CHECKOUT
from support.corpus import Case, build_case
from support.hosting import Tokens, publish
from support.installation import Installation, install
from support.kubeapi import Kube
from support.platform import APPROVER, REQUESTER
from support.podplatform import PodPlatform, binding
from support.podservers import open_servers
from support.workloads import namespace
from support.worlds import TOKEN_KEY, Outside, trusted_by_git

RUNS: Final = "demo"
SERVERS: Final = "demo-forge"
SECRETS: Final = {"clone": "forge-read", "push": "forge-write"}
_IMAGES: Final = ("fixtures", "operator", "runner")
_GONE_SECONDS: Final = 180
_STARTED = time.monotonic()


@dataclass(frozen=True, slots=True)
class Stage:
    """The set stage. `repository` is `owner/name` on the forge."""

    case: Case
    repository: str
    tokens: Tokens
    outside: Outside
    platform: PodPlatform

    @property
    def url(self) -> str:
        """What the run names."""
        return f"{self.outside.seen.host_url}/{self.repository}"


def say(text: str) -> None:
    """Tell a step, with the seconds since the start."""
    print(f"{time.monotonic() - _STARTED:5.0f} s  {text}", flush=True)


@asynccontextmanager
async def open_stage(case: Case, folder: Path) -> AsyncIterator[Stage]:
    """Set the stage; cluster, operator and servers stay afterwards, to look at."""
    say("a whole Kubernetes on this machine; the first start builds it, in 10 to 15 minutes")
    kubectl = Kubectl(whole.up(whole.DEFAULT_NAME))
    say("images of operator, runner and forge")
    references = _images()
    say(f"{case.sdist.name} {case.sdist.version} as its maintainers released it, as a repository")
    built = build_case(case)
    say("a forge of its own: smart HTTP, pull requests, TLS")
    _remove(kubectl, SERVERS)
    outside = open_servers(kubectl, SERVERS, references, folder)
    repository = f"demo/{case.sdist.name}"
    with trusted_by_git(outside.bundle):
        tokens = publish(outside.servers.host, repository, built.repository, built.base_commit)
    say("the operator, by helm")
    secrets = tuple(SECRETS.values())
    install(kubectl, Installation(references["operator"], outside.bundle, secrets))
    say(f"a team's namespace, its policy, two people: {REQUESTER} asks, {APPROVER} approves")
    _remove(kubectl, RUNS)
    kubectl.apply(namespace(RUNS))
    kubectl.apply(*_platform_team(tokens, outside.bundle.read_text()))
    async with Kube(kubectl.kubeconfig) as kube:
        platform = PodPlatform(kube, RUNS, outside.policy(), folder, kubectl=kubectl)
        await platform.apply_policy(
            repositories=[f"{outside.seen.host_url}/demo/*"],
            credentials={
                use: {"secretRef": {"name": name, "key": TOKEN_KEY}}
                for use, name in SECRETS.items()
            },
        )
        yield Stage(case, repository, tokens, outside, platform)


def _images() -> dict[str, str]:
    known = images.recipes(extra=None, fixtures=CHECKOUT / "tests" / "support")
    images.build([known[name] for name in _IMAGES])
    return dict(zip(_IMAGES, whole.load(whole.DEFAULT_NAME, _IMAGES), strict=True))


def _remove(kubectl: Kubectl, space: str) -> None:
    kubectl("delete", "namespace", space, "--ignore-not-found", f"--timeout={_GONE_SECONDS}s")


def _platform_team(tokens: Tokens, bundle: str) -> list[Manifest]:
    """Tokens, trust and roles; the operator makes the service accounts of its pods itself."""
    values = {SECRETS["clone"]: tokens.clone, SECRETS["push"]: tokens.push}
    return [
        *(_plain("Secret", name, {"stringData": {TOKEN_KEY: v}}) for name, v in values.items()),
        _plain("ConfigMap", "trust", {"data": {"ca.crt": bundle}}),
        binding(RUNS, REQUESTER, "upgraderun-editor"),
        binding(RUNS, APPROVER, "upgraderun-approver"),
    ]


def _plain(kind: str, name: str, fields: Manifest) -> Manifest:
    metadata = {"name": name, "namespace": RUNS}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}
