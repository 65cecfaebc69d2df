"""Runs that a test plays through: on the session's API server, with a forge in a process of its own.

Callers: the conftest of each suite that plays pods and people, which imports the fixtures by name.
"""

import base64
import functools
import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from clusterlib.apiserver import ApiServer
from clusterlib.errors import ClusterError
from support.desk import IMAGE, OPERATOR_NAMESPACE, Desk, Make, Play, open_desk
from support.fixtures.launch import Host, host_process
from support.kube import eventually
from support.replicas import install_crds
from upgraderun_operator.answers import AlreadyExists, Ok
from upgraderun_operator.resources import (
    NAMESPACES,
    SECRETS,
    UPGRADE_POLICIES,
    UPGRADE_RUNS,
    Resource,
)

_NUMBERS = itertools.count(1)
TOKEN = "fixture-push-token-0001"


@pytest.fixture(scope="session")
def cluster(api_server: ApiServer) -> ApiServer:
    """The session's server with the CRDs."""
    install_crds(api_server)
    for plural in ("upgraderuns", "upgradepolicies", "upgradeapprovals", "upgradereports"):
        eventually(functools.partial(_is_served, api_server, plural), f"{plural} are served")
    return api_server


def _is_served(server: ApiServer, plural: str) -> bool:
    """A fresh kind answers lists with 429 until the server's own watch has caught up."""
    try:
        server.kubectl("get", f"{plural}.upgraderun.dev", "--all-namespaces", "-o", "name")
    except ClusterError:
        return False
    return True


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A git host and forge; every test makes its own repository on it."""
    with host_process(tmp_path_factory.mktemp("host")) as running:
        yield Host(running.url.replace("127.0.0.1", "localhost"), running.control)


@pytest.fixture
async def desk(cluster: ApiServer, tmp_path: Path) -> AsyncIterator[Desk]:
    """The leader of these tests."""
    async with open_desk(cluster, tmp_path / "store") as opened:
        yield opened


async def put(desk: Desk, resource: Resource, namespace: str | None, **body: Any) -> Any:
    """Create an object, or find it there."""
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    answer = await desk.client.create(resource, namespace, {**head, **body})
    assert isinstance(answer, Ok | AlreadyExists), answer
    return answer.value if isinstance(answer, Ok) else None


@pytest.fixture
def make(desk: Desk, host: Host) -> Make:
    """Make a run in a namespace of its own, with policy, secret and repository."""

    async def make_run(
        *,
        policy: dict[str, Any] | None = None,
        repository: str | None = None,
        name: str = "app",
        **spec: Any,
    ) -> Play:
        number = next(_NUMBERS)
        namespace = f"reconcile-{number}"
        repository = repository or f"team/lib-{number}"
        if repository == f"team/lib-{number}":
            host.control.put_repository(repository)
            host.control.commit(repository, "main", {"README.md": "hello\n"})
            host.control.add_token(TOKEN, "upgraderun-bot", contents="write", pull_requests="write")
        for needed in (namespace, OPERATOR_NAMESPACE):
            await put(desk, NAMESPACES, None, metadata={"name": needed})
        data = {"token": base64.b64encode(TOKEN.encode()).decode()}
        await put(desk, SECRETS, namespace, metadata={"name": "forge"}, data=data)
        known = {
            "repositories": [f"{host.url}/team/*"],
            "forge": {"type": "GitHub", "apiURL": host.api_url},
            "credentials": {"push": {"secretRef": {"name": "forge", "key": "token"}}},
            "images": {"runner": IMAGE, "python": [{"version": "3.11", "image": IMAGE}]},
            "sandbox": {"type": "Inline"},
            "recovery": {"lossGraceSeconds": 10},
            **(policy or {}),
        }
        if policy is None or policy.get("repositories") != []:
            await put(desk, UPGRADE_POLICIES, namespace, metadata={"name": "default"}, spec=known)
        made = await put(
            desk,
            UPGRADE_RUNS,
            namespace,
            metadata={
                "name": name,
                "namespace": namespace,
                "annotations": {"upgraderun.dev/requested-by": "rita"},
            },
            spec={"repository": {"url": host.repository_url(repository), "branch": "main"}, **spec},
        )
        desk.writes.clear()
        desk.reads.clear()
        return Play(desk, host, namespace, name, repository, made["metadata"]["uid"])

    return make_run
