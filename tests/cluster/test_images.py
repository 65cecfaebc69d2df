"""What the built images contain, asked from inside their pods (security.md H36)."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from support import workloads
from support.cluster import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

PROBE = """
import importlib.util, json, os, shutil, subprocess, sys
modules = ("kopf", "kubernetes", "pip", "upgraderun_fault", "upgraderun_operator", "upgraderun_runner")
tools = ("git", "uv", "pip", "pip3", "gcc", "make")
code = importlib.util.find_spec("upgraderun_protocol").origin
print(json.dumps({
    "modules": [name for name in modules if importlib.util.find_spec(name)],
    "tools": [name for name in tools if shutil.which(name)],
    "user": [os.getuid(), os.getgid()],
    "isolated": sys.flags.isolated,
    "code": code,
    "uv": subprocess.run(["uv", "--version"], capture_output=True, text=True).stdout
          if shutil.which("uv") else "",
    "coverage": os.path.exists("/usr/local/coverage/coverage/__init__.py"),
}))
"""


@pytest.fixture
def space(cluster: Cluster) -> Iterator[str]:
    name = f"s{uuid.uuid4().hex[:8]}"
    cluster.apply(workloads.namespace(name))
    cluster.until(
        lambda: cluster.try_kubectl("get", "sa", "default", "-n", name).returncode == 0,
        "the namespace has its service account",
    )
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def _probe(cluster: Cluster, space: str, image: str) -> dict[str, Any]:
    reference = cluster.load(image)[image]
    manifest = workloads.pod(space, image, reference, PROBE, restart="Never")
    manifest["spec"]["containers"][0]["command"] = ["/opt/venv/bin/python", "-I", "-c", PROBE]
    cluster.apply(manifest)
    cluster.wait_for("jsonpath={.status.phase}=Succeeded", f"pod/{image}", "-n", space)
    found: dict[str, Any] = json.loads(cluster.kubectl("logs", image, "-n", space))
    return found


def test_fault_hook_is_in_test_images_alone(cluster: Cluster, space: str) -> None:
    """Release images can't be told to kill themselves: the other tests here list what they have."""
    found = _probe(cluster, space, "runner-test")

    assert ["upgraderun_fault", "upgraderun_runner"] == found["modules"]


def test_operator_image_has_no_git_and_no_toolchain(cluster: Cluster, space: str) -> None:
    assert {
        "modules": ["kopf", "kubernetes", "upgraderun_operator"],
        "tools": [],
        "user": [workloads.UID, workloads.UID],
        "isolated": 1,
        "code": "/opt/app/upgraderun_protocol/__init__.py",
        "uv": "",
        "coverage": False,
    } == _probe(cluster, space, "operator")


def test_runner_image_has_git_and_uv_but_no_operator(cluster: Cluster, space: str) -> None:
    found = _probe(cluster, space, "runner")

    assert found.pop("uv").startswith("uv 0.13.9")
    assert {
        "modules": ["upgraderun_runner"],
        "tools": ["git", "uv"],
        "user": [workloads.UID, workloads.UID],
        "isolated": 1,
        "code": "/opt/app/upgraderun_protocol/__init__.py",
        "coverage": True,
    } == found
