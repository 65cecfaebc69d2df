"""The container runtime of one node: its files, its command line, its images.

Callers: `local` and `images`. It has its own root, state, socket and CNI folder; a containerd that
the system may run is never touched.
"""

import json
import socket
from pathlib import Path

from clusterlib.host import run, succeeds
from clusterlib.layout import Node
from clusterlib.ociarchive import PAUSE_IMAGE

CNI_PLUGINS = "/usr/lib/cni"
CNI_CACHE = Path("/var/lib/cni/results")  # libcni has no setting for it
SHIM_SOCKETS = Path("/run/containerd/s")  # nor has containerd for these
CONFIG = """\
version = 2
root = "{home}/containerd/root"
state = "{home}/containerd/state"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp",
]

[grpc]
address = "{socket}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
# Lowering oom_score_adj needs CAP_SYS_RESOURCE, which root in a virtual machine may lack.
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
stream_server_address = "127.0.0.1"

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{plugins}"
conf_dir = "{home}/cni"

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
Root = "{home}/runc"
"""


def argv(node: Node, mtu: str) -> list[str]:
    """Write the configuration; give back the command line."""
    config = node.home / "containerd.toml"
    config.write_text(
        CONFIG.format(home=node.home, socket=node.socket, pause=PAUSE_IMAGE, plugins=CNI_PLUGINS)
    )
    networks = node.home / "cni" / "10-upgraderun.conflist"
    networks.parent.mkdir(exist_ok=True)
    networks.write_text(json.dumps(_network(node, int(mtu)), indent=2))
    return ["containerd", "--config", str(config)]


def is_ready(node: Node) -> bool:
    """Whether it answers."""
    return node.socket.exists() and succeeds([*_ctr(node), "version"])


def load(node: Node, archive: Path, name: str | None = None) -> None:
    """Import an OCI archive; with a name, its content can be asked for by digest as well."""
    by_digest = ["--base-name", name, "--digests"] if name else []
    run([*_ctr(node), "images", "import", *by_digest, str(archive)])


def image_names(node: Node) -> list[str]:
    """Names of all images on the node."""
    return run([*_ctr(node), "images", "list", "--quiet"]).split()


def remove_traces(node: Node) -> None:
    """Delete what CNI and the shims leave outside the node's folder."""
    for entry in cached_networks(node):
        entry.unlink(missing_ok=True)
    for path in SHIM_SOCKETS.glob("*"):
        if not _is_served(path):
            path.unlink(missing_ok=True)


def cached_networks(node: Node) -> list[Path]:
    """Entries of libcni's cache that name the node's folder, as the path of a pod's network."""
    return [entry for entry in CNI_CACHE.glob("*") if str(node.home) in entry.read_text()]


def _is_served(path: Path) -> bool:
    """Whether a shim still listens there; those of other clusters do."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def _ctr(node: Node) -> list[str]:
    return ["ctr", "--address", str(node.socket), "--namespace", "k8s.io"]


def _network(node: Node, mtu: int) -> dict[str, object]:
    ranges = [[{"subnet": node.pod_cidr, "gateway": node.pod_gateway}]]
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "hairpinMode": True,
        "mtu": mtu,
        "ipam": {
            "type": "host-local",
            "ranges": ranges,
            "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": str(node.home / "addresses"),
        },
    }
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "0.4.0", "name": "upgraderun", "plugins": [bridge, portmap]}
