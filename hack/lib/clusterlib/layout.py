"""The plan of one whole cluster: names, addresses and folders, all derived from its slot.

Callers: everything that belongs to a whole cluster. Slots let several clusters run side by side:
each has its own bridge, its own address ranges and its own cgroup.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from clusterlib import cgroups
from clusterlib.errors import ClusterError
from clusterlib.paths import state_home

SLOTS = 8
NODES_MAX = 2
API_PORT = 6443
SOCKET_PATH_MAX = 100  # the kernel's limit is 108, and containerd appends `.ttrpc`


@dataclass(frozen=True, slots=True)
class Node:
    """One node: a network namespace with its own containerd and kubelet."""

    name: str
    address: str
    pod_cidr: str
    pod_gateway: str
    cgroup: str
    link: str
    home: Path

    @property
    def namespace(self) -> Path:
        """File that the node's network namespace is bound to."""
        return self.home / "netns"

    @property
    def socket(self) -> Path:
        """Where its containerd listens."""
        return self.home / "containerd.sock"

    @property
    def volumes(self) -> Path:
        """Folder of its local volumes."""
        return self.home / "volumes"


@dataclass(frozen=True, slots=True)
class Layout:
    """One cluster."""

    name: str
    slot: int
    node_count: int
    mutating_policies: bool = True

    @property
    def home(self) -> Path:
        """Folder with all state."""
        return _clusters() / self.name

    @property
    def pki(self) -> Path:
        """Folder of certificates."""
        return self.home / "pki"

    @property
    def kubeconfig(self) -> Path:
        """Cluster administrator."""
        return self.home / "admin.kubeconfig"

    @property
    def bridge(self) -> str:
        """Link on the host that the nodes hang on; also the name of the host's nftables table."""
        return f"upgraderun{self.slot}"

    @property
    def cgroup(self) -> str:
        """Group, in every hierarchy, of all processes of the cluster."""
        return f"upgraderun-{self.slot}"

    @property
    def network(self) -> str:
        """Network of host and nodes."""
        return f"172.30.{self.slot}.0/24"

    @property
    def host_address(self) -> str:
        """The host, as seen from nodes and pods."""
        return f"172.30.{self.slot}.1"

    @property
    def pod_cidr(self) -> str:
        """Addresses of all pods."""
        return f"10.{244 - self.slot}.0.0/16"

    @property
    def service_cidr(self) -> str:
        """Addresses of all Services."""
        return f"10.{96 + self.slot}.0.0/16"

    @property
    def first_service_ip(self) -> str:
        """Address of the `kubernetes` Service."""
        return f"10.{96 + self.slot}.0.1"

    @property
    def dns_ip(self) -> str:
        """Address of the cluster's DNS."""
        return f"10.{96 + self.slot}.0.10"

    @property
    def server(self) -> str:
        """URL of the API server, which runs in the first node's network."""
        return f"https://{self.nodes[0].address}:{API_PORT}"

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes, the first one with the control plane."""
        return tuple(
            Node(
                name=f"node{number}",
                address=f"172.30.{self.slot}.{10 + number}",
                pod_cidr=f"10.{244 - self.slot}.{number - 1}.0/24",
                pod_gateway=f"10.{244 - self.slot}.{number - 1}.1",
                cgroup=f"{self.cgroup}/node{number}",
                link=f"ur{self.slot}node{number}",
                home=self.home / f"node{number}",
            )
            for number in range(1, self.node_count + 1)
        )

    def save(self) -> None:
        """Keep the plan, so that later commands find the cluster again."""
        self.home.mkdir(parents=True, exist_ok=True)
        facts = {
            "slot": self.slot,
            "nodes": self.node_count,
            "mutating_policies": self.mutating_policies,
        }
        (self.home / "cluster.json").write_text(json.dumps(facts))


def find(name: str) -> Layout | None:
    """The plan of a cluster that was started and not taken down."""
    path = _clusters() / name / "cluster.json"
    if not path.exists():
        return None
    facts = json.loads(path.read_text())
    return Layout(name, facts["slot"], facts["nodes"], facts["mutating_policies"])


def plan(name: str, node_count: int | None, *, mutating_policies: bool) -> Layout:
    """The plan that `up` follows: the kept one, grown if asked, or a fresh one on a free slot."""
    kept = find(name)
    if kept is None:
        layout = Layout(name, _free_slot(), node_count or 1, mutating_policies)
    elif node_count is not None and node_count < kept.node_count:
        raise ClusterError(
            f"cluster {name} has {kept.node_count} nodes; `hack/cluster down` first, then start anew"
        )
    else:
        layout = Layout(name, kept.slot, node_count or kept.node_count, mutating_policies)
    if not 1 <= layout.node_count <= NODES_MAX:
        raise ClusterError(f"a cluster has 1 to {NODES_MAX} nodes, not {layout.node_count}")
    socket = layout.nodes[0].socket
    if len(str(socket)) > SOCKET_PATH_MAX:
        raise ClusterError(f"{socket} is too long for a socket; set XDG_STATE_HOME to a short path")
    return layout


def names() -> list[str]:
    """Clusters that exist now."""
    return sorted(path.parent.name for path in _clusters().glob("*/cluster.json"))


def _free_slot() -> int:
    """The first slot without a cluster.

    A slot that has processes but no plan belongs to a cluster of another state folder; one that
    has only leftovers is swept and used.
    """
    taken = {layout.slot for name in names() if (layout := find(name))}
    free = [slot for slot in range(SLOTS) if slot not in taken and not _has_processes(slot)]
    if not free:
        raise ClusterError(f"{SLOTS} clusters exist already: {names()}; take one down")
    return free[0]


def _has_processes(slot: int) -> bool:
    return bool(cgroups.members(Layout("", slot, NODES_MAX).cgroup))


def _clusters() -> Path:
    return state_home() / "clusters"
