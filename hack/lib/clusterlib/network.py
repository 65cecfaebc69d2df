"""Links, routes and rules of a whole cluster.

Callers: `local`. Each node is a network namespace on one bridge of the host, so that everything
inside (pod links, kube-proxy's and kube-router's rules) vanishes together with the namespace. The
host itself gets a bridge, routes over it and one nftables table, all named after the slot.
"""

import json
from pathlib import Path

from clusterlib import host, mounts
from clusterlib.host import run, succeeds
from clusterlib.layout import Layout, Node

PREFIX_BITS = "/24"
NAMESPACED_SETTINGS = ("net.ipv4.ip_forward=1", "net.bridge.bridge-nf-call-iptables=1")


def up(layout: Layout) -> None:
    """Make what is missing; what is there from an earlier start is used again."""
    if not succeeds(["ip", "link", "show", layout.bridge]):
        run(["ip", "link", "add", layout.bridge, "mtu", uplink_mtu(), "type", "bridge"])
    run(["ip", "address", "replace", f"{layout.host_address}{PREFIX_BITS}", "dev", layout.bridge])
    run(["ip", "link", "set", layout.bridge, "up"])
    host.set_kernel("net/ipv4/ip_forward", "1")
    run(["nft", "-f", "-"], stdin=_host_rules(layout))
    for node in layout.nodes:
        _node_up(layout, node)
    for node in layout.nodes:
        run(["ip", "route", "replace", node.pod_cidr, "via", node.address])
        for other in layout.nodes:
            if other != node:
                route = ["ip", "route", "replace", other.pod_cidr, "via", other.address]
                run(inside(node, route))
    run(["ip", "route", "replace", layout.service_cidr, "via", layout.nodes[0].address])


def down(layout: Layout) -> None:
    """Remove all of it; harmless when nothing is there."""
    for node in layout.nodes:
        _delete_link(node.link)
        mounts.unmount_below(node.namespace)
    _delete_link(layout.bridge)
    if succeeds(["nft", "list", "table", "ip", layout.bridge]):
        run(["nft", "delete", "table", "ip", layout.bridge])


def inside(node: Node, argv: list[str]) -> list[str]:
    """The command line that runs `argv` in the node's network, under the same pid."""
    return ["nsenter", f"--net={node.namespace}", "--", *argv]


def uplink_mtu() -> str:
    """MTU of the way out: a larger one inside would lose packets without a word."""
    routes = json.loads(run(["ip", "-json", "route", "show", "default"]))
    if not routes:
        return "1500"
    return Path(f"/sys/class/net/{routes[0]['dev']}/mtu").read_text().strip()


def _node_up(layout: Layout, node: Node) -> None:
    node.home.mkdir(parents=True, exist_ok=True)
    if not mounts.is_mounted(node.namespace):
        _delete_link(node.link)  # of a namespace that is gone, or soon will be
        node.namespace.touch()
        run(["unshare", f"--net={node.namespace}", "true"])
    if not succeeds(["ip", "link", "show", node.link]):
        peer = ["peer", "name", "eth0", "mtu", uplink_mtu(), "netns", str(node.namespace)]
        run(["ip", "link", "add", node.link, "mtu", uplink_mtu(), "type", "veth", *peer])
    run(["ip", "link", "set", node.link, "master", layout.bridge, "up"])
    for argv in (
        ["ip", "link", "set", "lo", "up"],
        ["ip", "address", "replace", f"{node.address}{PREFIX_BITS}", "dev", "eth0"],
        ["ip", "link", "set", "eth0", "up"],
        ["ip", "route", "replace", "default", "via", layout.host_address],
        ["sysctl", "-q", "-w", *NAMESPACED_SETTINGS],
    ):
        run(inside(node, argv))
    run(inside(node, ["nft", "-f", "-"]), stdin=_node_rules(layout))


def _delete_link(name: str) -> None:
    """Delete a link; one whose other end just vanished may go by itself meanwhile."""
    if not succeeds(["ip", "link", "delete", name]) and succeeds(["ip", "link", "show", name]):
        run(["ip", "link", "delete", name])


def _host_rules(layout: Layout) -> str:
    """Nodes reach the world with the host's address."""
    own = layout.network
    return _replace_table(layout.bridge, f"ip saddr {own} ip daddr != {own} masquerade")


def _node_rules(layout: Layout) -> str:
    """Pods reach the world with their node's address, but each other and Services with their own.

    Network policies of another node see who really speaks.
    """
    own = f"{{ {layout.pod_cidr}, {layout.service_cidr}, {layout.network} }}"
    return _replace_table("upgraderun", f"ip saddr {layout.pod_cidr} ip daddr != {own} masquerade")


def _replace_table(name: str, rule: str) -> str:
    chain = f"chain out {{\n type nat hook postrouting priority srcnat;\n {rule}\n}}\n"
    return f"table ip {name} {{\n}}\ndelete table ip {name}\ntable ip {name} {{\n{chain}}}\n"
