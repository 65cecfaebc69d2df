"""Bad input ends in its outcome or is refused, says what to do next, and then there is silence.

One representative of each kind, all in one namespace and at once; afterwards one common minute in
which nobody writes anything but Lease renewals, and a look at what is left of the runs.
"""

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from clusterlib.apiserver import ApiServer
from support.audit import writes_during
from support.kubeapi import Kube, path_of
from support.operators import free_port
from support.ordinary_user import RunnerEnvironment
from support.platform import REQUESTER, Platform, open_namespace, until
from support.scenarios import load_table
from support.worlds import TOKEN_KEY, Outside, Scene, merged, open_scene

SPACE = "bad-input"
QUIET_SECONDS = 60
ROWS = {row.id: row for row in load_table()}
ROBOT = f"system:serviceaccount:{SPACE}:robot"

pytestmark = pytest.mark.asyncio(loop_scope="session")


@dataclass(frozen=True, slots=True)
class Bad:
    """One kind of bad input: how it is asked for, how it ends, what people must be able to read.

    `run` is merged over the spec of the scene; `policy` over that of its policy, under a name of its
    own. `url` is another repository than the scene's.
    """

    name: str
    outcome: str
    says: tuple[str, ...]
    row: str = "patch-safe"
    mode: str = "Rules"
    url: str = ""
    run: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)


CLOSED = f"https://localhost:{free_port()}"
"""A git host that doesn't answer."""

CASES = (
    Bad(
        "unknown-policy",
        "PolicyRefused",
        ("UpgradePolicy nowhere", f"namespace {SPACE}", "create it"),
        run={"policyRef": {"name": "nowhere"}},
    ),
    Bad(
        "outside-the-policy",
        "PolicyRefused",
        ("others/app", "spec.repositories", "ask its owner to add it"),
        url="{host}/others/app.git",
    ),
    Bad(
        "unknown-repository",
        "DestinationRefused",
        ("repository", "doesn't exist, or the push token may not see it"),
        url="{host}/fixtures/nowhere.git",
    ),
    Bad(
        "missing-branch",
        "DestinationRefused",
        ("branch 'absent' doesn't exist", "mend spec.repository.branch"),
        run={"repository": {"branch": "absent"}},
    ),
    Bad(
        "wrong-push-token",
        "DestinationRefused",
        ("the forge refuses the push token", "give it contents and pull requests, write"),
        policy={"credentials": {"push": {"secretRef": {"name": "wrong", "key": TOKEN_KEY}}}},
    ),
    Bad(
        "wrong-clone-token",
        "AcquisitionFailed",
        ("git host", "bad-patch-safe.git", "Authentication failed", "create a new run"),
        mode="Baseline",
        policy={"credentials": {"clone": {"secretRef": {"name": "wrong", "key": TOKEN_KEY}}}},
    ),
    Bad(
        "silent-git-host",
        "AcquisitionFailed",
        ("git host", re.escape(CLOSED), "unreachable", "create a new run"),
        mode="Baseline",
        url=f"{CLOSED}/fixtures/app.git",
        policy={"repositories": [f"{CLOSED}/fixtures/*"]},
    ),
    Bad(
        "not-a-direct-dependency",
        "NoCandidate",
        ("iniconfig is no direct dependency", "name one that pyproject.toml declares"),
        run={"upgrade": {"dependency": "iniconfig"}},
    ),
    Bad(
        "link-outside",
        "Unsupported",
        ("src/storefront/secrets.py: its target leaves the tree", "create a new run"),
        row="unsupported-link-outside",
    ),
    Bad(
        "silent-registry",
        "AcquisitionFailed",
        ("localhost", "503", "create a new run"),
        row="registry-down-acquire",
    ),
    Bad(
        "failing-baseline",
        "BaselineFailing",
        ("test_shipping_is_added", "fix the branch first"),
        row="baseline-failing",
    ),
)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def space(
    platform: Platform, kube: Kube, runner: RunnerEnvironment, outside: Outside, folder: Path
) -> AsyncIterator[Platform]:
    """A namespace that holds nothing but these runs."""
    async with open_namespace(
        kube, SPACE, runner, outside.policy(), folder / SPACE, platform.operators
    ) as opened:
        await opened.apply_config("trust", {"ca.crt": outside.bundle.read_text()})
        await opened.apply_secret("wrong", {TOKEN_KEY: "wrong-token-canary"})
        yield opened


async def scenes_of(platform: Platform, outside: Outside, folder: Path) -> dict[str, Scene]:
    """One scene per row; cases of one row share its repository."""
    return {
        row: await open_scene(ROWS[row], f"bad-{row}", folder / "scenes", outside, platform)
        for row in sorted({case.row for case in CASES})
    }


async def ask(case: Bad, scene: Scene) -> None:
    """Create the run of a case, under a policy of its own if the case needs one."""
    platform, changes = scene.platform, dict(case.run)
    if case.url:
        url = case.url.format(host=scene.outside.seen.host_url)
        changes["repository"] = {"url": url}
    if case.policy:
        policy = await platform.kube.get(platform.path("upgradepolicies", scene.name))
        await platform.apply_named_policy(case.name, merged(policy["spec"], case.policy))
        changes["policyRef"] = {"name": case.name}
    await platform.create_run(case.name, merged(scene.spec(case.mode), changes))


async def words_of(platform: Platform, name: str) -> str:
    """What people are told of an end: conditions, Events, report."""
    status, report = await platform.status(name), await platform.report(name)
    shown = [report["message"], *report.get("notes", [])]
    told = [c["message"] for c in status["conditions"] if c["type"] == "Succeeded"]
    return "\n".join([*told, *shown, *map(str, report.get("checks", []))])


def missing(case: Bad, words: str) -> list[str]:
    return [pattern for pattern in case.says if not re.search(pattern, words)]


async def ignored(platform: Platform, name: str, *reasons: str) -> None:
    """Wait for one Event per approval that doesn't count, each with its reason."""

    async def told() -> bool:
        events = [e for e in await platform.events(name) if e["reason"] == "ApprovalIgnored"]
        notes = [event["message"] for event in events]
        return all(any(re.search(reason, note) for note in notes) for reason in reasons)

    await until(told, f"Events say {reasons}", seconds=30)


async def ask_and_answer_wrongly(scene: Scene, name: str) -> None:
    """A run that goes on waiting, since none of its approvals counts."""
    platform = scene.platform
    await scene.apply(approvals={"approvers": ["bob", REQUESTER]})
    await platform.create_run(name, scene.spec("Rules"))
    pending = await platform.asked(name)
    other = "0" * 64
    await platform.answer(name, digest=other)
    await platform.answer(name, approver=REQUESTER)
    await platform.answer(name, approver=ROBOT)
    await ignored(
        platform,
        name,
        f"names digest {other[:12]}, the run waits for {pending['digest'][:12]}",
        f"{REQUESTER} requested this run; another person must approve it",
        f"{ROBOT} isn't in approvals.approvers of policy",
    )


async def left_of(kube: Kube, uid: str) -> set[str]:
    """Kinds of everything in the namespace that belongs to a run, whatever it is."""
    owned = set()
    for prefix in await groups(kube):
        for resource in (await kube.get(prefix))["resources"]:
            if not resource["namespaced"] or "list" not in resource["verbs"]:
                continue
            for item in await kube.items(path_of(prefix, SPACE, resource["name"])):
                owners = item["metadata"].get("ownerReferences", [])
                if uid in {owner["uid"] for owner in owners}:
                    owned.add(resource["kind"])
    return owned


async def groups(kube: Kube) -> list[str]:
    """Every group and version that the API server serves."""
    found = (await kube.get("/apis"))["groups"]
    return ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in found)]


async def test_bad_input_ends_or_is_refused_and_then_nobody_writes(
    space: Platform, kube: Kube, api_server: ApiServer, outside: Outside, folder: Path
) -> None:
    scenes = await scenes_of(space, outside, folder)
    waiting = await open_scene(
        ROWS["patch-safe"], "bad-approvals", folder / "scenes", outside, space
    )
    for case in CASES:
        await ask(case, scenes[case.row])
    await ask_and_answer_wrongly(waiting, "bad-approvals")
    ends = {case.name: (await space.finished(case.name))["outcome"] for case in CASES}

    assert {case.name: case.outcome for case in CASES} == ends
    words = {case.name: await words_of(space, case.name) for case in CASES}
    gaps = {case.name: missing(case, words[case.name]) for case in CASES}
    assert {} == {name: (gap, words[name]) for name, gap in gaps.items() if gap}
    assert "wrong-token-canary" not in "".join(words.values())

    await until(partial(holds_nothing, space), "the waiting run holds neither pod nor Lease")
    assert [] == await writes_during(QUIET_SECONDS, api_server.audit_log)

    assert not (await space.status("bad-approvals")).get("outcome")
    await space.answer("bad-approvals", "Reject", comment="not this one")
    rejected = await space.finished("bad-approvals")
    assert "ApprovalRejected" == rejected["outcome"], space.story(rejected)
    assert [] == await space.leftovers()
    for name, outcome in {**ends, "bad-approvals": "ApprovalRejected"}.items():
        uid = (await space.run(name))["metadata"]["uid"]
        assert {"UpgradeReport"} == await left_of(kube, uid), name
        assert outcome in {event["reason"] for event in await space.events(name)}, name


async def holds_nothing(platform: Platform) -> bool:
    """Only claims may be there: a waiting run keeps its workspace."""
    return all(name.startswith("persistentvolumeclaims/") for name in await platform.leftovers())
