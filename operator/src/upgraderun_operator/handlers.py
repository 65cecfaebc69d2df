"""What kopf calls: each handler puts a key into our queue and returns None, nothing else.

kopf lists and watches; pace, back-off, deadlines and every write are ours (DESIGN §6a). No
handler reads more than names and versions: the pass that follows reads the world itself.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

import kopf

from upgraderun_operator.engine.supervisor import StopFlag
from upgraderun_operator.keys import Key, News, of_pod

GROUP: Final = "upgraderun.dev"
VERSION: Final = "v1alpha1"
RUN_LABEL: Final = "upgraderun.dev/run"

Handoff = Callable[[Key, News], None]
"""Thread-safe: hands a key over to the loop that owns the queue."""


def build_registry(handoff: Handoff) -> kopf.OperatorRegistry:
    """Register the kinds: runs, approvals (their run), pods with our label (their run)."""
    registry = kopf.OperatorRegistry()

    @kopf.on.event(GROUP, VERSION, "upgraderuns", registry=registry)
    async def on_run(
        namespace: str | None, name: str | None, event: Mapping[str, Any], **_: Any
    ) -> None:
        if namespace and name:
            is_new = "journal" not in (event["object"].get("status") or {})
            handoff(Key(namespace, name), News(_version(event), is_new))

    @kopf.on.event(GROUP, VERSION, "upgradeapprovals", registry=registry)
    async def on_approval(namespace: str | None, spec: Mapping[str, Any], **_: Any) -> None:
        run = (spec.get("runRef") or {}).get("name")
        if namespace and run:
            handoff(Key(namespace, str(run)), News())

    @kopf.on.event("", "v1", "pods", registry=registry)
    async def on_pod(
        namespace: str | None, meta: Mapping[str, Any], event: Mapping[str, Any], **_: Any
    ) -> None:
        version = _version(event)
        news = News() if version is None else News(of_pod(version))
        for owner in meta.get("ownerReferences") or ():
            if owner.get("kind") == "UpgradeRun" and namespace:
                handoff(Key(namespace, str(owner.get("name"))), news)

    return registry


def _version(event: Mapping[str, Any]) -> str | None:
    """Version of what was told; a deletion is always news."""
    deleted = event["type"] == "DELETED"
    return None if deleted else event["object"]["metadata"]["resourceVersion"]


def build_settings() -> kopf.OperatorSettings:
    """Make kopf's settings; each deviation from its defaults is one of DESIGN §6a."""
    settings = kopf.OperatorSettings()
    settings.process.ultimate_exiting_timeout = None
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.networking.error_backoffs = _Endless()
    settings.networking.request_timeout = 60.0
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 330
    settings.watching.inactivity_timeout = 70.0
    settings.watching.chunk_size = 500
    settings.queueing.idle_timeout = 0.5
    settings.watching.label_selectors["", "v1", "pods"] = RUN_LABEL
    settings.watching.field_selectors[GROUP, VERSION, "upgraderuns"] = "status.finished!=true"
    return settings


class _Endless:
    """Back-offs without end, capped at 15 s: an API server that is away isn't an error."""

    def __iter__(self) -> Any:
        yield from (1.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0)
        while True:
            yield 15.0


def watch(
    flag: StopFlag,
    handoff: Handoff,
    namespaces: tuple[str, ...],
    login: Callable[..., Awaitable[kopf.AiohttpSession]],
    identity: str,
) -> None:
    """Run kopf in the calling thread until the flag is set or kopf ends by itself.

    `identity` must be given: left alone, kopf asks for the name of the process's user, and the
    image's user has none.
    """
    registry = build_registry(handoff)
    kopf.on.login(registry=registry)(login)
    asyncio.run(_operate(flag, registry, namespaces, identity))


async def _operate(
    flag: StopFlag,
    registry: kopf.OperatorRegistry,
    namespaces: tuple[str, ...],
    identity: str,
) -> None:
    await kopf.operator(
        registry=registry,
        settings=build_settings(),
        standalone=True,
        clusterwide=not namespaces,
        namespaces=namespaces,
        identity=cast("Any", identity),  # its string type isn't exported
        stop_flag=flag.event(),
    )
