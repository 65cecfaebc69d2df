"""What the pages show works: every manifest is taken as written, every command runs as it stands."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterlib import binaries
from support.chart import NAMESPACE as OPERATOR_NAMESPACE
from support.kinds import ALICE, DIGEST, Kinds, make_namespace, report
from support.kinds import run as wish
from support.kube import Kube
from support.pages import DOCS, ROOT, SAMPLES, files, objects, script
from upgraderun_operator.model.objects import MODELS, strict

PAGES = sorted(page for page in (*DOCS.glob("*.md"), ROOT / "README.md") if objects(page))
COMMANDS = sorted(page for page in DOCS.glob("*.md") if script(page))
RUN = "library-weekly"
ASKING: dict[str, Any] = {
    "phase": "AwaitingApproval",
    "finished": False,
    "pendingApproval": {
        "kind": "Publication",
        "digest": DIGEST,
        "headline": "Upgrade markupsafe from 2.1.4 to 2.1.5",
        "target": {"name": "markupsafe", "from": "2.1.4", "to": "2.1.5"},
        "files": 2,
        "lines": 6,
        "approvals": 0,
        "presentationSha256": DIGEST,
        "requestedAt": "2026-11-30T08:00:00Z",
        "expiresAt": "2026-12-07T08:00:00Z",
    },
}
SHOWN: dict[str, Any] = {
    "patch": "--- a/uv.lock\n+++ b/uv.lock\n",
    "checks": [{"name": "baseline/test", "state": "Pass"}],
    "notes": ["the repository has no tests"],
}
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "upgraderun-operator", "namespace": OPERATOR_NAMESPACE},
    "spec": {"holderIdentity": "upgraderun-operator-0"},
}
SPEAKERS = {
    "UpgradeRun": lambda one: one["metadata"]["annotations"]["upgraderun.dev/requested-by"],
    "UpgradeApproval": lambda one: one["spec"]["approver"],
}


def creator(kinds: Kinds, one: dict[str, Any]) -> Kube:
    """Who says of himself what the object says, with every right."""
    annotations = one["metadata"].setdefault("annotations", {})
    if one["kind"] == "UpgradeRun":
        annotations.setdefault("upgraderun.dev/requested-by", "alice@example.com")
    speaker: Callable[[Any], str] = SPEAKERS.get(one["kind"], lambda _one: "admin@example.com")
    return kinds.admin.as_user(speaker(one), ("system:masters",))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_manifest_of_a_page_is_taken(kinds: Kinds, namespace: str, page: Path) -> None:
    for one in objects(page):
        if one["kind"] != "Namespace":
            one["metadata"]["namespace"] = namespace
        answer = creator(kinds, one).create(one, dryRun="All")

        assert answer.ok, f"{one['kind']} {one['metadata']['name']}: {answer.message}"
        if one["kind"] in MODELS:
            assert isinstance(strict(one), MODELS[one["kind"]])


@pytest.mark.parametrize("page", COMMANDS, ids=lambda page: page.name)
def test_every_command_of_a_page_runs(stage: Kinds, page: Path, tmp_path: Path) -> None:
    for name, text in files(page).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "docs").symlink_to(DOCS)
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n", encoding="utf-8")

    done = followed(stage, page, tmp_path)

    assert 0 == done.returncode, done.stdout + done.stderr


def clear(kinds: Kinds) -> None:
    """Remove what stands in the namespace of the samples, which other tests create there, too."""
    ours = "upgradepolicies,upgraderuns,upgradereports,upgradeapprovals"
    everything = f"{ours},secrets,configmaps"
    kinds.server.kubectl("delete", everything, "--all", "-n", "upgrades", "--ignore-not-found")


@pytest.fixture
def stage(kinds: Kinds) -> Iterator[Kinds]:
    """What the pages speak of: the sample policy, a run that asks, its report, an operator's Lease."""
    clear(kinds)
    for name in ("namespace.yaml", "policy.yaml"):
        kinds.admin.apply(yaml.safe_load((SAMPLES / name).read_text(encoding="utf-8")))
    make_namespace(kinds.admin, OPERATOR_NAMESPACE)
    kinds.admin.apply(LEASE)
    asked = kinds.admin.as_user(ALICE, ("system:masters",)).create(wish("upgrades", RUN))
    assert asked.ok, asked.message
    answers = (
        kinds.operator.replace({**asked.body, "status": ASKING}, "status"),
        kinds.operator.create({**report("upgrades", RUN), **SHOWN}),
    )
    assert all(answer.ok for answer in answers), [answer.message for answer in answers]
    yield kinds
    clear(kinds)


def followed(kinds: Kinds, page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a page's commands in one shell, as somebody who follows it."""
    tools = binaries.path_of("kubectl").parent
    known = {
        "KUBECONFIG": str(kinds.server.kubeconfig),
        "PATH": f"{tools}:{os.environ['PATH']}",
        "READ_TOKEN": "read-only",
        "WRITE_TOKEN": "read-and-write",
        "BUNDLE": "ca.pem",
    }
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script(page)],
        cwd=folder,
        env={**os.environ, **known},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
