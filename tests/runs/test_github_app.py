"""A whole run with a GitHub App: tokens minted for one repository, given back, kept nowhere (H18, H19)."""

import json
from pathlib import Path

import pytest

from support.apps import APP_ID, SECRET, Installed, install_app, pem
from support.kubeapi import CORE, path_of
from support.platform import Platform
from support.scenarios import load_table
from support.worlds import Outside, Scene, open_scene

ROW = next(row for row in load_table() if row.id == "patch-safe")
APP = {"id": APP_ID, "privateKeyRef": {"name": SECRET, "key": "private-key.pem"}}
TOKEN = b"ghs_4242_"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def opened(name: str, folder: Path, outside: Outside, platform: Platform) -> Scene:
    scene = await open_scene(ROW, name, folder / "scenes", outside, platform)
    await platform.apply_secret(SECRET, {"private-key.pem": pem()})
    await scene.apply(credentials={"app": APP})
    return scene


def effects(outside: Outside, repository: str) -> list[str]:
    """What was minted for a repository, and what was revoked by anybody."""
    rows = outside.servers.host.control.requests()
    said = [effect for row in rows for effect in row["effects"]]
    return [
        one for one in said if one == "token revoked" or one.startswith(f"token for {repository}")
    ]


async def test_a_run_is_published_with_minted_tokens_only(
    platform: Platform, outside: Outside, folder: Path
) -> None:
    name = "minted"
    install_app(outside.servers.host, Installed("fixtures"))
    scene = await opened(name, folder, outside, platform)
    outside.servers.host.control.forget_requests()
    await platform.create_run(name, scene.spec("Rules"))
    await platform.asked(name)
    before = effects(outside, scene.repository)
    pods = await platform.kube.items(path_of(CORE, platform.namespace, "pods"))
    await platform.answer(name)
    status = await platform.finished(name)

    assert "Published" == status["outcome"], platform.story(status)
    reads = f"token for {scene.repository} contents:read,metadata:read"
    writes = f"token for {scene.repository} contents:write,metadata:read,pull_requests:write"
    assert [f"{reads},pull_requests:read", reads, "token revoked"] == before
    after = effects(outside, scene.repository)[len(before) :]
    assert [writes, "token revoked"] == [one for one in after if not one.endswith("requests:read")]
    run = await platform.run(name)
    written = json.dumps([run, await platform.report(name), await platform.events(name), pods])
    kept = [platform.artifacts(run["metadata"]["uid"]), platform.logs]
    assert TOKEN.decode() not in written
    assert [] == [
        path
        for root in kept
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink() and TOKEN in path.read_bytes()
    ]
    assert "PRIVATE KEY" not in written


@pytest.mark.parametrize("dry", [True, False])
async def test_an_app_without_access_is_refused_before_anything_is_made(
    platform: Platform, outside: Outside, folder: Path, dry: bool
) -> None:
    name = f"stranger-{'dry' if dry else 'wet'}"
    install_app(outside.servers.host, Installed("somebody-else"))
    scene = await opened(name, folder, outside, platform)
    publication = {"publication": {"enabled": not dry}}

    await platform.create_run(name, scene.spec("Rules", **publication))
    status = await platform.finished(name)

    assert "DestinationRefused" == status["outcome"], platform.story(status)
    ended = next(c for c in status["conditions"] if c["type"] == "Succeeded")
    assert f"isn't installed on {scene.repository}" in ended["message"]
    assert "attempt" not in status
