"""Where the tokens of a whole run are, and where they aren't (security.md H17, H18, H19)."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from support.kubeapi import Json
from support.platform import Platform, watching_pods
from support.scenarios import load_table
from support.worlds import Outside, Scene, open_scene
from upgraderun_operator.model.names import ROLE_LABEL

ROW = next(row for row in load_table() if row.id == "patch-safe")
NAME = "canaries"
pytestmark = pytest.mark.asyncio(loop_scope="session")


@asynccontextmanager
async def manifests(platform: Platform) -> AsyncIterator[dict[str, Json]]:
    """Every pod of the namespace that is seen while the block runs, by name, as it was made."""
    seen: dict[str, Json] = {}

    async def note(pod: Json) -> None:
        seen.setdefault(pod["metadata"]["name"], pod)

    async with watching_pods(platform, note):
        yield seen


async def test_tokens_are_mounted_where_they_are_needed_and_written_nowhere(
    platform: Platform, outside: Outside, folder: Path
) -> None:
    scene = await open_scene(ROW, NAME, folder / "scenes", outside, platform)
    async with manifests(platform) as pods:
        await platform.create_run(NAME, scene.spec("Rules"))
        await platform.asked(NAME)
        volume = list(workspaces(platform))
        in_volume = tokens_below(scene, *volume)
        before_approval = dict(pods)
        await platform.answer(NAME)
        await platform.finished(NAME)
    run, report = await platform.run(NAME), await platform.report(NAME)
    events = await platform.events(NAME)

    mine = {name: pod for name, pod in pods.items() if name.startswith(f"{NAME}-")}
    assert volume, "the workspace was there to be searched"
    assert tokens_below(scene, platform.logs / "pods"), "the search finds what a kubelet mounted"
    assert [] == in_volume
    assert [f"{NAME}-clone"] == secrets_of(mine, "runner")
    assert [f"{NAME}-push"] == secrets_of(mine, "publisher")
    assert [] == secrets_of(before_approval, "publisher")
    written = json.dumps([run, report, events, mine])
    assert [] == [token for token in tokens(scene) if token in written]
    kept = [platform.artifacts(run["metadata"]["uid"]), *platform.logs.glob("*.log")]
    assert [] == tokens_below(scene, *kept)


def tokens(scene: Scene) -> tuple[str, str]:
    return scene.built.clone_token, scene.built.push_token


def workspaces(platform: Platform) -> Iterator[Path]:
    """Volumes of this run, as folders of this machine."""
    return (platform.logs / "claims").glob(f"*{NAME}*")


def tokens_below(scene: Scene, *roots: Path) -> list[Path]:
    """Files that hold a token, under any name and in any part of them."""
    needles = [token.encode() for token in tokens(scene)]
    return [
        path
        for root in roots
        for path in (root, *root.rglob("*"))
        if path.is_file() and not path.is_symlink() and any(n in path.read_bytes() for n in needles)
    ]


def secrets_of(pods: dict[str, Json], role: str) -> list[str]:
    """Names of the Secrets that pods of a role mount, once each."""
    return sorted(
        {
            volume["secret"]["secretName"]
            for pod in pods.values()
            if pod["metadata"]["labels"][ROLE_LABEL] == role
            for volume in pod["spec"]["volumes"]
            if "secret" in volume
        }
    )
