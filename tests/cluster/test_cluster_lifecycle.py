"""`hack/cluster` itself: repairs what was killed from outside, and leaves nothing behind."""

import os
import socket
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterlib import cgroups, containerd, layout, processes, whole
from clusterlib.errors import ClusterError
from support import workloads
from support.cluster import Cluster, start

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

SPACE = "kept"
COUNT_STARTS = """
import pathlib, http.server
page = pathlib.Path("/data/page")
page.write_text((page.read_text() if page.exists() else "") + "x")
http.server.test(http.server.SimpleHTTPRequestHandler, port=8080, bind="0.0.0.0")
"""


@pytest.fixture
def name() -> Iterator[str]:
    """A name of its own; whatever the test leaves of that cluster is taken down."""
    chosen = f"t{uuid.uuid4().hex[:6]}"
    yield chosen
    whole.down(chosen)


def _others(name: str) -> list[str]:
    """Words that stand in every trace of clusters that other people run on this host."""
    plans = [plan for each in layout.names() if each != name and (plan := layout.find(each))]
    words = [(str(plan.home), plan.bridge, plan.cgroup, f"ur{plan.slot}node") for plan in plans]
    addresses = [f"172.30.{plan.slot}." for plan in plans]
    return [word for group in words for word in group] + addresses


def _traces(others: list[str]) -> dict[str, set[str]]:
    """Links, routes, rules, mounts and cgroups of the host, those of other clusters apart."""
    groups = [
        folder
        for root in Path("/sys/fs/cgroup").iterdir()
        for folder, _, _ in os.walk(root)
        if "upgraderun" in folder
    ]
    found = {
        "links": _lines("ip", "-o", "link"),
        "routes": _lines("ip", "route"),
        "rules": _lines("nft", "list", "tables"),
        "mounts": [line.split()[4] for line in _read("/proc/self/mountinfo")],
        "cgroups": groups,
        "cni": [entry.read_text() for entry in containerd.CNI_CACHE.glob("*")],
    }
    left = {
        what: {line for line in lines if not any(other in line for other in others)}
        for what, lines in found.items()
    }
    # Only the whole line says whose link it is, by its bridge; its state doesn't matter.
    return {**left, "links": {line.split(": ")[1] for line in left["links"]}}


def _settle(cluster: Cluster) -> None:
    """Wait until nothing of the common cluster is being removed: its network isn't marked as its."""
    cluster.until(
        lambda: (
            not any(
                "deletionTimestamp" in each["metadata"]
                for each in cluster.get("pods,namespaces", "--all-namespaces")["items"]
            )
        ),
        "the pods of earlier tests are gone",
    )


def _lines(*argv: str) -> list[str]:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()


def _read(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


def _processes_naming(word: str) -> list[str]:
    """Command lines of running processes in which the word stands."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            argv = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if word in argv:
            found.append(argv)
    return found


def _run_keeper(cluster: Cluster) -> None:
    image = cluster.load("fixtures")["fixtures"]
    cluster.apply(workloads.namespace(SPACE))
    cluster.until(
        lambda: cluster.try_kubectl("get", "sa", "default", "-n", SPACE).returncode == 0,
        "the namespace has its service account",
    )
    cluster.apply(
        workloads.claim(SPACE, "keeper"),
        workloads.pod(SPACE, "keeper", image, COUNT_STARTS, claim_name="keeper"),
    )
    cluster.wait_for("condition=Ready", "pod/keeper", "-n", SPACE)


def _page(cluster: Cluster) -> str:
    done = cluster.try_kubectl("exec", "keeper", "-n", SPACE, "--", "cat", "/data/page")
    return done.stdout if done.returncode == 0 else ""


def test_killed_cluster_is_repaired_and_down_leaves_nothing(name: str, cluster: Cluster) -> None:
    """`up` works after SIGKILL of every process, with data kept; `down` removes every trace."""
    _settle(cluster)
    before = _traces(_others(name))
    fresh = start(name)
    plan = whole.existing(name)
    _run_keeper(fresh)
    during = _traces(_others(name))
    assert [] == [what for what in before if before[what] == during[what]]
    daemons = processes.recorded(plan.home)

    cgroups.kill_all(plan.cgroup)
    assert [] == [each.name for each in daemons if processes.is_alive(each)]
    repaired = start(name)

    repaired.until(lambda: _page(repaired) == "xx", "the pod started a second time on its data")
    repaired.wait_for("condition=Ready", "pod/keeper", "-n", SPACE)

    assert whole.down(name)

    assert before == _traces(_others(name))
    assert not plan.home.exists()
    assert [] == _processes_naming(str(plan.home))
    assert not cgroups.exists(plan.cgroup)


def test_forgotten_cluster_is_swept_before_a_new_one(name: str, cluster: Cluster) -> None:
    """Without its plan nothing of the old cluster can be trusted, but its traces are in the way."""
    _settle(cluster)
    before = _traces(_others(name))
    forgotten = start(name)
    plan = whole.existing(name)
    forgotten.apply(workloads.namespace(SPACE))
    cgroups.kill_all(plan.cgroup)
    (plan.home / "cluster.json").unlink()

    anew = start(name)

    assert plan == whole.existing(name)
    assert anew.try_kubectl("get", "namespace", SPACE).returncode == 1
    assert whole.down(name)
    assert before == _traces(_others(name))


def test_up_of_a_running_cluster_changes_nothing(cluster: Cluster) -> None:
    """Whoever isn't sure types `up`: no process is replaced."""
    home = whole.existing(cluster.name).home
    before = processes.recorded(home)

    start(cluster.name)

    assert before == processes.recorded(home)
    assert all(map(processes.is_alive, before))


def test_sockets_of_other_clusters_shims_are_left_alone() -> None:
    """Containerd keeps all shims' sockets in one folder, and they don't say whose they are."""
    folder = containerd.SHIM_SOCKETS
    folder.mkdir(parents=True, exist_ok=True)
    served, dead = (folder / f"test-{uuid.uuid4().hex}" for _ in range(2))
    with socket.socket(socket.AF_UNIX) as shim, socket.socket(socket.AF_UNIX) as gone:
        shim.bind(str(served))
        shim.listen()
        gone.bind(str(dead))

        containerd.remove_traces(layout.Layout("none", slot=7, node_count=1).nodes[0])

        assert served.exists()
        assert not dead.exists()
    served.unlink()


def test_down_of_nothing_is_harmless(name: str) -> None:
    assert not whole.down(name)


def test_shrinking_is_refused_with_the_next_step(name: str) -> None:
    layout.Layout(name, slot=7, node_count=2).save()
    try:
        with pytest.raises(ClusterError, match="down` first"):
            layout.plan(name, 1, mutating_policies=True)
    finally:
        whole.down(name)


def test_unknown_cluster_is_named_with_the_next_step(name: str) -> None:
    with pytest.raises(ClusterError, match=rf"no cluster {name} .*hack/cluster up"):
        whole.status(name)
