"""The Kubernetes client against a real API server: typed answers, UIDs, chunks, watches."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from clusterlib.apiserver import ApiServer
from support.journal_story import FINALIZED, admit, outcome
from support.replicas import Replica, Scene
from upgraderun_operator.adapters import kubernetes as client_module
from upgraderun_operator.adapters.clock import SystemClock
from upgraderun_operator.adapters.kubeconfig import (
    ClusterConfig,
    ConfigError,
    from_kubeconfig,
    in_cluster,
)
from upgraderun_operator.adapters.kubernetes import KubeClient
from upgraderun_operator.adapters.listing import RunListing
from upgraderun_operator.answers import (
    AlreadyExists,
    Conflict,
    Denied,
    NotFound,
    Ok,
    Unknown,
)
from upgraderun_operator.keys import Key
from upgraderun_operator.resources import CONFIG_MAPS, NAMESPACES, UPGRADE_RUNS

pytestmark = pytest.mark.api


def config_map(name: str, **labels: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels},
        "data": {"a": "1"},
    }


@contextlib.asynccontextmanager
async def lagging() -> AsyncIterator[KubeClient]:
    """A client of a server whose own cache lags: only what names no version is answered afresh.

    The semantics of `resourceVersion=0`: any version will do (reliability.md §2).
    """

    async def answer(request: web.Request) -> web.Response:
        item = {"data": {"a": "old" if "resourceVersion" in request.query else "new"}}
        return web.json_response(
            {"metadata": {}, "items": [item]} if "limit" in request.query else item
        )

    application = web.Application()
    application.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server = ClusterConfig(
        f"http://127.0.0.1:{runner.addresses[0][1]}", ssl.create_default_context()
    )
    try:
        async with KubeClient(server, SystemClock()) as client:
            yield client
    finally:
        await runner.cleanup()


class TestQuorum:
    """An effect rests on what the API server's store holds, never on what some server remembers."""

    async def test_an_object_isnt_read_from_a_servers_cache(self) -> None:
        async with lagging() as client:
            found = await client.get(CONFIG_MAPS, "team", "one")

        assert Ok({"data": {"a": "new"}}) == found

    async def test_a_list_isnt_read_from_a_servers_cache(self) -> None:
        async with lagging() as client:
            found = await client.list(CONFIG_MAPS, "team")

        assert isinstance(found, Ok)
        assert ({"data": {"a": "new"}},) == found.value.items


class TestAnswers:
    """Each answer says what is known, and only that."""

    async def test_create_get_put_delete(self, scene: Scene) -> None:
        client, namespace = scene.replica.client, scene.ref.namespace
        made = await client.create(CONFIG_MAPS, namespace, config_map("one"))
        again = await client.create(CONFIG_MAPS, namespace, config_map("one"))
        assert isinstance(made, Ok)
        uid = made.value["metadata"]["uid"]
        put = await client.put(CONFIG_MAPS, {**made.value, "data": {"a": "2"}})
        stale = await client.put(CONFIG_MAPS, {**made.value, "data": {"a": "3"}})
        got = await client.get(CONFIG_MAPS, namespace, "one")
        other = await client.delete(CONFIG_MAPS, namespace, "one", uid="another")
        gone = await client.delete(CONFIG_MAPS, namespace, "one", uid=uid, grace_seconds=0)
        absent = await client.delete(CONFIG_MAPS, namespace, "one", uid=uid)

        assert isinstance(again, AlreadyExists)
        assert isinstance(put, Ok)
        assert isinstance(stale, Conflict)
        assert isinstance(got, Ok)
        assert got.value["data"] == {"a": "2"}
        assert isinstance(other, Conflict)
        assert gone == Ok(None)
        assert absent == NotFound()
        assert await client.get(CONFIG_MAPS, namespace, "one") == NotFound()
        assert await client.put(CONFIG_MAPS, made.value) == NotFound()

    async def test_refusals_are_for_good(self, scene: Scene, cluster: ApiServer) -> None:
        stranger = cluster.add_user("stranger")
        async with KubeClient(from_kubeconfig(stranger), SystemClock()) as client:
            read = await client.get(CONFIG_MAPS, scene.ref.namespace, "one")
            listed = await client.list(CONFIG_MAPS, scene.ref.namespace)
            created = await client.create(CONFIG_MAPS, scene.ref.namespace, config_map("x"))
        odd = await scene.replica.client.create(
            UPGRADE_RUNS,
            scene.ref.namespace,
            {
                "apiVersion": UPGRADE_RUNS.api_version,
                "kind": "UpgradeRun",
                "metadata": {"name": "odd"},
                "spec": {"mode": "Odd"},
            },
        )

        for answer in (read, listed, created):
            assert isinstance(answer, Denied)
            assert answer.status == 403
        assert isinstance(odd, Denied)
        assert odd.status == 422

    async def test_silence_is_unknown(self, cluster: ApiServer) -> None:
        config = from_kubeconfig(cluster.kubeconfig)
        async with KubeClient(config, SystemClock(), call_seconds=0.000001) as hasty:
            late = await hasty.get(NAMESPACES, None, "default")
        nowhere = ClusterConfig("https://127.0.0.1:1", config.tls)
        async with KubeClient(nowhere, SystemClock()) as lost:
            refused = await lost.get(NAMESPACES, None, "default")
            listed = await lost.list(NAMESPACES)

        assert isinstance(late, Unknown)
        assert isinstance(refused, Unknown)
        assert isinstance(listed, Unknown)


class TestLists:
    """Chunked, of one version; metadata only where bodies aren't needed."""

    async def test_chunks_make_one_list(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client, namespace = scene.replica.client, scene.ref.namespace
        for number in range(7):
            await client.create(
                CONFIG_MAPS, namespace, config_map(f"m{number}", odd=str(number % 2))
            )
        monkeypatch.setattr(client_module, "LIST_CHUNK", 3)

        every = await client.list(CONFIG_MAPS, namespace)
        odd = await client.list(CONFIG_MAPS, namespace, labels="odd=1")
        named = await client.list(CONFIG_MAPS, namespace, fields="metadata.name=m3")
        bare = await client.list(CONFIG_MAPS, namespace, metadata_only=True)

        assert isinstance(every, Ok)
        assert [item["metadata"]["name"] for item in every.value.items] == [
            f"m{number}" for number in range(7)
        ]
        assert every.value.resource_version
        assert isinstance(odd, Ok)
        assert len(odd.value.items) == 3
        assert isinstance(named, Ok)
        assert len(named.value.items) == 1
        assert isinstance(bare, Ok)
        assert all("data" not in item for item in bare.value.items)

    async def test_conflicts_are_counted_as_metrics_label_them(self, scene: Scene) -> None:
        await scene.append(admit())
        conflict = {"conflict": "foreign_branch", "expected": "a", "observed": "b"}
        await scene.append(outcome("publication_conflict", **conflict), FINALIZED)

        listing = RunListing(scene.replica.client, (scene.ref.namespace,))

        key = Key(scene.ref.namespace, scene.ref.name)
        assert {key: "foreign_branch"} == await listing.conflicts()
        assert [keys async for keys in listing.unfinished()] == [()]

    async def test_the_youngest_unfinished_run_comes_first(self, scene: Scene) -> None:
        client, namespace = scene.replica.client, scene.ref.namespace
        made = await client.get(UPGRADE_RUNS, namespace, scene.ref.name)
        assert isinstance(made, Ok)
        since = made.value["metadata"]["creationTimestamp"]
        names = [scene.ref.name]
        async with asyncio.timeout(30):
            while True:
                # The API server's clock of creations shows whole seconds.
                body = {**made.value, "metadata": {"name": f"later-{len(names)}"}}
                later = await client.create(UPGRADE_RUNS, namespace, body)
                assert isinstance(later, Ok)
                names.append(later.value["metadata"]["name"])
                if later.value["metadata"]["creationTimestamp"] != since:
                    break

        chunks = [keys async for keys in RunListing(client, (namespace,)).unfinished()]

        listed = [key.name for keys in chunks for key in keys]
        assert set(names) == set(listed)
        assert names[-1] == listed[0]


class TestWatch:
    """Changes after a version, in order; any end is silent."""

    async def test_changes_come_in_order(self, scene: Scene) -> None:
        client, namespace = scene.replica.client, scene.ref.namespace
        listing = await client.list(CONFIG_MAPS, namespace)
        assert isinstance(listing, Ok)
        made = await client.create(CONFIG_MAPS, namespace, config_map("one"))
        assert isinstance(made, Ok)
        await client.put(CONFIG_MAPS, {**made.value, "data": {"a": "2"}})
        await client.delete(CONFIG_MAPS, namespace, "one", uid=made.value["metadata"]["uid"])

        seen = []
        async with asyncio.timeout(30):
            async for event in client.watch(
                CONFIG_MAPS, namespace, resource_version=listing.value.resource_version
            ):
                seen.append(event.type)
                if event.type == "DELETED":
                    break

        assert seen == ["ADDED", "MODIFIED", "DELETED"]

    async def test_a_version_that_is_too_old_or_odd_ends_it(self, replica: Replica) -> None:
        events = replica.client.watch(CONFIG_MAPS, "default", resource_version="odd")

        assert [event async for event in events] == []

    async def test_a_server_that_is_gone_ends_it(self, cluster: ApiServer) -> None:
        config = from_kubeconfig(cluster.kubeconfig)
        nowhere = ClusterConfig("https://127.0.0.1:1", config.tls)
        async with KubeClient(nowhere, SystemClock()) as lost:
            events = lost.watch(CONFIG_MAPS, None, resource_version="1")

            assert [event async for event in events] == []


class TestConfiguration:
    """From a pod or from a kubeconfig; a renewed token is read again."""

    async def test_a_pod_s_token_is_read_from_its_file(
        self, scene: Scene, cluster: ApiServer, tmp_path: Path
    ) -> None:
        await scene.append()
        answer = await scene.replica.client.create_token(
            scene.ref.namespace, "upgraderun-runner", {"expirationSeconds": 600}
        )
        assert isinstance(answer, Ok)
        (tmp_path / "token").write_text(answer.value["status"]["token"])
        (tmp_path / "ca.crt").write_bytes(cluster.ca.read_bytes())
        host, _, port = cluster.url.removeprefix("https://").partition(":")
        config = in_cluster(
            {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}, tmp_path
        )
        async with KubeClient(config, SystemClock()) as client:
            known = await client.get(CONFIG_MAPS, scene.ref.namespace, "one")
        (tmp_path / "token").write_text("odd")
        async with KubeClient(config, SystemClock()) as client:
            unknown = await client.get(CONFIG_MAPS, scene.ref.namespace, "one")

        assert isinstance(known, Denied)
        assert known.status == 403
        assert "system:serviceaccount" in known.message
        assert isinstance(unknown, Denied)
        assert unknown.status == 401

    def test_outside_of_a_pod(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="not in a pod"):
            in_cluster({}, tmp_path)
        with pytest.raises(ConfigError, match="not in a pod"):
            in_cluster({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path)

    def test_an_ipv6_service_is_bracketed(self, cluster: ApiServer, tmp_path: Path) -> None:
        (tmp_path / "token").write_text("t")
        (tmp_path / "ca.crt").write_bytes(cluster.ca.read_bytes())

        assert in_cluster({"KUBERNETES_SERVICE_HOST": "fd00::1"}, tmp_path).server == (
            "https://[fd00::1]:443"
        )

    @pytest.mark.parametrize(
        "text", ["", "a: [", "current-context: x", "current-context: x\ncontexts: []"]
    )
    def test_an_unusable_kubeconfig_says_so(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "config").write_text(text)

        with pytest.raises(ConfigError, match="no usable current context"):
            from_kubeconfig(tmp_path / "config")

    def test_plugins_aren_t_supported(self, cluster: ApiServer, tmp_path: Path) -> None:
        config = json.loads(cluster.kubeconfig.read_text())
        config["users"][0]["user"] = {"exec": {}}
        (tmp_path / "config").write_text(json.dumps(config))

        with pytest.raises(ConfigError, match="credential plugins aren't supported"):
            from_kubeconfig(tmp_path / "config")

    def test_files_and_token_files_lie_beside_it(self, cluster: ApiServer, tmp_path: Path) -> None:
        (tmp_path / "ca.crt").write_bytes(cluster.ca.read_bytes())
        (tmp_path / "config").write_text(
            "current-context: c\n"
            "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
            "clusters: [{name: k, cluster: {server: 'https://h/', certificate-authority: ca.crt}}]\n"
            "users: [{name: u, user: {tokenFile: token}}]\n"
        )

        config = from_kubeconfig(tmp_path / "config")

        assert (config.server, config.token_file) == ("https://h", tmp_path / "token")
