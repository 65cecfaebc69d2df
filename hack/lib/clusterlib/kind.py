"""The same cluster by kind, where a Docker engine answers.

Callers: `cli`. Needs the `kind` and `docker` programs; everything else is kind's own affair.
"""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from clusterlib.binaries import say
from clusterlib.errors import ClusterError
from clusterlib.host import run
from clusterlib.paths import CHECKOUT, state_home

BACKEND_VARIABLE = "UPGRADERUN_CLUSTER_BACKEND"
ENGINE_SECONDS = 10
CONFIG = CHECKOUT / "kind-config.yaml"


def is_chosen() -> bool:
    """Whether kind makes the cluster: told so, or a Docker engine answers."""
    chosen = os.environ.get(BACKEND_VARIABLE, "")
    if chosen in ("kind", "local"):
        return chosen == "kind"
    if chosen:
        raise ClusterError(f"{BACKEND_VARIABLE} is kind or local, not {chosen}")
    return _engine_answers()


def up(name: str, node_count: int | None) -> None:
    """Create the cluster unless it exists."""
    if shutil.which("kind") is None:
        raise ClusterError(
            "a Docker engine answers but `kind` isn't installed; install it, "
            f"or set {BACKEND_VARIABLE}=local"
        )
    if _cluster(name) in run(["kind", "get", "clusters"]).split():
        say(f"kind cluster {_cluster(name)} exists")
        return
    config = CONFIG.read_text() + "- role: worker\n" * ((node_count or 1) - 1)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(config)
        file.flush()
        arguments = ["--name", _cluster(name), "--config", file.name, "--wait", "180s"]
        subprocess.run(["kind", "create", "cluster", *arguments], check=True)


def down(name: str) -> None:
    """Delete the cluster; harmless when there is none."""
    run(["kind", "delete", "cluster", "--name", _cluster(name)])
    kubeconfig_path(name).unlink(missing_ok=True)


def status(name: str) -> str:
    """Its nodes, for people."""
    return run(["docker", "ps", "--filter", f"label=io.x-k8s.kind.cluster={_cluster(name)}"])


def kubeconfig(name: str) -> Path:
    """Write the administrator's kubeconfig; give back its path."""
    path = kubeconfig_path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(run(["kind", "get", "kubeconfig", "--name", _cluster(name)]))
    return path


def load(name: str, archive: Path, tag: str, by_digest: str) -> None:
    """Import an OCI archive on every node, under its tag and by digest."""
    run(["kind", "load", "image-archive", str(archive), "--name", _cluster(name)])
    retag = ["ctr", "--namespace", "k8s.io", "images", "tag", "--force", tag, by_digest]
    for node in run(["kind", "get", "nodes", "--name", _cluster(name)]).split():
        run(["docker", "exec", node, *retag])


def kubeconfig_path(name: str) -> Path:
    """Where the kubeconfig of a kind cluster is kept."""
    return state_home() / "kind" / f"{name}.kubeconfig"


def _cluster(name: str) -> str:
    return f"upgraderun-{name}"


def _engine_answers() -> bool:
    if shutil.which("docker") is None:
        return False
    try:
        asked = subprocess.run(
            ["docker", "version", "--format", "{{json .Server}}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=ENGINE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return False
    return asked.returncode == 0 and bool(json.loads(asked.stdout or "null"))
