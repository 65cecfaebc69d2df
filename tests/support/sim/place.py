"""One namespace of an API server, double or original: what the contract tests speak through."""

from typing import Any

from upgraderun_operator.adapters.kubernetes import KubeClient
from upgraderun_operator.answers import Ok
from upgraderun_operator.resources import UPGRADE_RUNS, Resource

Json = dict[str, Any]


class Place:
    """One namespace of a server, double or original."""

    def __init__(self, client: KubeClient, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    async def make(self, resource: Resource, name: str = "one", **body: Any) -> Json:
        """Create an object that isn't there yet."""
        answer = await self.client.create(resource, self.namespace, body_of(resource, name, body))
        assert isinstance(answer, Ok), answer
        return dict(answer.value)

    async def get(self, resource: Resource, name: str = "one") -> Json | None:
        """Read it."""
        answer = await self.client.get(resource, self.namespace, name)
        return dict(answer.value) if isinstance(answer, Ok) else None

    async def delete(self, resource: Resource, raw: Json, **more: Any) -> Any:
        """Delete exactly that one."""
        metadata = raw["metadata"]
        return await self.client.delete(
            resource, self.namespace, metadata["name"], **{"uid": metadata["uid"], **more}
        )

    async def run(self, name: str = "one", **spec: Any) -> Json:
        """A run."""
        repository = {"url": "https://git.example/team/app.git"}
        return await self.make(
            UPGRADE_RUNS, name, spec={"repository": repository, "mode": "Rules", **spec}
        )


def journal_with(head: Json) -> Json:
    """A journal of which only the head matters."""
    return {"entries": [], "bytes": 0, "head": head}


def body_of(resource: Resource, name: str, body: Json) -> Json:
    metadata = {"name": name, **body.pop("metadata", {})}
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**head, "metadata": metadata, **body}
