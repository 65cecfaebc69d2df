"""What a cluster of `hack/cluster` gives to pods: identity, storage, names, Services, policies."""

import base64
import json
import socket
import time
import uuid
from collections.abc import Iterator

import pytest

from clusterlib import whole
from support import workloads
from support.cluster import Cluster, start

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

LOOK_AROUND = """
import json, os, pathlib, socket, urllib.request
pathlib.Path("/data/note").write_text("kept")
try:
    pathlib.Path("/note").write_text("lost")
    root = "writable"
except OSError:
    root = "read-only"
print(json.dumps({
    "uid": os.getuid(),
    "root": root,
    "token": pathlib.Path("/token/token").read_text(),
    "name": socket.gethostbyname("server"),
    "page": urllib.request.urlopen("http://server/page", timeout=10).read().decode(),
}))
"""
WAIT = "import threading; threading.Event().wait()"
FETCH = "import urllib.request as u, sys; print(u.urlopen(sys.argv[1], timeout=2).read().decode())"


@pytest.fixture(scope="module")
def two_nodes() -> Iterator[Cluster]:
    """A cluster of this module's own."""
    name = f"t{uuid.uuid4().hex[:6]}"
    yield start(name, nodes=2)
    whole.down(name)


@pytest.fixture(scope="module")
def image(two_nodes: Cluster) -> str:
    return two_nodes.load("fixtures")["fixtures"]


@pytest.fixture
def space(two_nodes: Cluster) -> Iterator[str]:
    name = f"s{uuid.uuid4().hex[:8]}"
    two_nodes.apply(workloads.namespace(name))
    two_nodes.until(
        lambda: two_nodes.try_kubectl("get", "sa", "default", "-n", name).returncode == 0,
        "the namespace has its service account",
    )
    yield name
    two_nodes.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def server(two_nodes: Cluster, image: str, space: str) -> str:
    """A web server on node1 with its page on a claim; gives back the pod's address."""
    two_nodes.apply(
        workloads.claim(space, "server"),
        workloads.service(space, "server"),
        workloads.pod(space, "server", image, workloads.SERVER, node="node1", claim_name="server"),
    )
    two_nodes.wait_for("condition=Ready", "pod/server", "-n", space)
    status = two_nodes.get("pod", "server", "-n", space)["status"]
    address: str = status["podIP"]
    return address


def _fetch(cluster: Cluster, space: str, url: str) -> bool:
    """Whether the waiting client can fetch from there, asked from inside its pod."""
    asked = cluster.try_kubectl(
        "exec", "client", "-n", space, "--", "python3", "-c", FETCH, f"{url}/page"
    )
    return asked.returncode == 0


def test_restricted_pod_has_identity_storage_names_and_services(
    two_nodes: Cluster, image: str, space: str, server: str
) -> None:
    """What the pods of this project build on: all of it in one pod, on the other node."""
    two_nodes.apply(
        workloads.claim(space, "client"),
        workloads.pod(
            space,
            "client",
            image,
            LOOK_AROUND,
            node="node2",
            claim_name="client",
            restart="OnFailure",
        ),
    )

    two_nodes.wait_for("jsonpath={.status.phase}=Succeeded", "pod/client", "-n", space)

    seen = json.loads(two_nodes.kubectl("logs", "client", "-n", space).splitlines()[-1])
    claims = json.loads(base64.urlsafe_b64decode(seen["token"].split(".")[1] + "=="))
    address = two_nodes.get("service", "server", "-n", space)["spec"]["clusterIP"]
    assert [workloads.AUDIENCE] == claims["aud"]
    assert {"uid": workloads.UID, "root": "read-only", "name": address, "page": "first"} == {
        key: seen[key] for key in ("uid", "root", "name", "page")
    }
    assert server != address


def test_image_id_of_a_pod_is_the_built_digest(
    two_nodes: Cluster, image: str, space: str, server: str
) -> None:
    """Evidence of what ran: the digest in the pod's status is the one that was built."""
    status = two_nodes.get("pod", "server", "-n", space)["status"]

    assert server
    assert image == status["containerStatuses"][0]["imageID"]


def test_policies_decide_who_talks_to_whom_across_nodes(
    two_nodes: Cluster, image: str, space: str, server: str
) -> None:
    """Default deny blocks pod, Service and API server; a selector opens exactly one way."""
    two_nodes.apply(workloads.pod(space, "client", image, WAIT, node="node2"))
    two_nodes.wait_for("condition=Ready", "pod/client", "-n", space)
    by_pod = f"http://{server}:{workloads.HTTP_PORT}"
    service = two_nodes.get("service", "server", "-n", space)["spec"]["clusterIP"]
    by_service = f"http://{service}"
    two_nodes.until(lambda: _fetch(two_nodes, space, by_pod), "open before any policy")
    assert _fetch(two_nodes, space, by_service)

    two_nodes.apply(workloads.deny_all(space))
    two_nodes.until(lambda: not _fetch(two_nodes, space, by_pod), "closed by default deny")
    assert not _fetch(two_nodes, space, by_service)

    two_nodes.apply(workloads.allow(space, "client", "server"))
    two_nodes.until(lambda: _fetch(two_nodes, space, by_pod), "opened by selector")
    assert _fetch(two_nodes, space, by_service)


def test_deleted_claim_leaves_no_data(
    two_nodes: Cluster, image: str, space: str, server: str
) -> None:
    """Volumes are wiped on release, so that a pool never runs dry and no data is inherited."""
    volume = two_nodes.get("pvc", "server", "-n", space)["spec"]["volumeName"]
    folder = whole.existing(two_nodes.name).nodes[0].volumes / volume
    assert "first" == (folder / "page").read_text()
    assert server

    two_nodes.kubectl("delete", "pod/server", "pvc/server", "-n", space, "--wait=false")

    two_nodes.until(
        lambda: two_nodes.try_kubectl("get", "pv", volume).returncode != 0, "the volume is gone"
    )
    assert not folder.exists()


def test_pods_leave_their_node_with_its_address(two_nodes: Cluster, image: str, space: str) -> None:
    """Registries answer through the node's NAT; here the host's own uplink plays the world."""
    call = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)"
    two_nodes.apply(workloads.pod(space, "client", image, WAIT, node="node2"))
    two_nodes.wait_for("condition=Ready", "pod/client", "-n", space)
    with socket.create_server(("0.0.0.0", 0)) as world:
        world.settimeout(20)
        port = str(world.getsockname()[1])

        command = ("exec", "client", "-n", space, "--", "python3", "-c", call)
        two_nodes.kubectl(*command, _uplink_address(), port)

        connection, (caller, _) = world.accept()
        connection.close()
    assert whole.existing(two_nodes.name).nodes[1].address == caller


def _uplink_address() -> str:
    """The host's address on its way out; connecting a datagram socket sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("198.51.100.1", 9))
        address: str = probe.getsockname()[0]
    return address


def test_silent_node_is_lost_after_seconds_and_comes_back(two_nodes: Cluster) -> None:
    """Loss of a node can be played without losing the other one's pods."""
    began = time.monotonic()
    whole.pause_node(two_nodes.name, "node2")
    try:
        two_nodes.wait_for("condition=Ready=Unknown", "node/node2", seconds=60)
        lost_after = time.monotonic() - began
        ready = two_nodes.get("node", "node1")["status"]["conditions"][-1]
    finally:
        whole.resume_node(two_nodes.name, "node2")

    two_nodes.wait_for("condition=Ready", "node/node2", seconds=60)
    assert ("Ready", "True") == (ready["type"], ready["status"])
    assert lost_after < 45
