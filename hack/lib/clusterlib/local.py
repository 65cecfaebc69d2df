"""A whole cluster on this host, without a container engine.

Callers: `cli`. `up` makes what is missing and starts what doesn't run, whatever state an earlier
cluster was left in; `down` removes all of it. Everything is found again by the layout's names:
links, mounts, rules and cgroups, also when every process and record is gone.
"""

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from string import Template

from clusterlib import (
    binaries,
    cgroups,
    containerd,
    host,
    kubeconfig,
    mounts,
    network,
    nodeagents,
    ociarchive,
    processes,
)
from clusterlib.apiserver import run_kubectl
from clusterlib.binaries import path_of, say
from clusterlib.certificates import Certificate, ensure_authority, ensure_certificate
from clusterlib.client import Client
from clusterlib.controlplane import (
    DEFAULT_FEATURE_GATES,
    ServerOptions,
    admin_certificate,
    api_server_argv,
    controller_manager_argv,
    etcd_argv,
    scheduler_argv,
)
from clusterlib.errors import ClusterError
from clusterlib.layout import API_PORT, Layout, Node, find
from clusterlib.layout import names as cluster_names
from clusterlib.paths import HACK

READY_SECONDS = 180.0
ETCD_PORT, ETCD_PEER_PORT = 2379, 2380
MANAGER_PORT, SCHEDULER_PORT = 10257, 10259
STORAGE_CLASS = "standard"
LOG_LINKS = Path("/var/log/containers")


def up(layout: Layout) -> None:
    """Start or repair the cluster; return when its nodes are Ready and its DNS answers."""
    host.require_root()
    host.ensure_packages(host.CLUSTER_PACKAGES)
    binaries.ensure()
    host.note_settings()
    if find(layout.name) is None:
        _sweep(layout)
    layout.save()
    say(f"cluster {layout.name}: network and cgroups")
    for group in ("daemons", *(node.name for node in layout.nodes)):
        cgroups.create(f"{layout.cgroup}/{group}")
    network.up(layout)
    _control_plane(layout)
    for node in layout.nodes:
        _node(layout, node)
    say(f"cluster {layout.name}: DNS and storage")
    _add_ons(layout)
    _wait_for_nodes(layout)
    for daemon in processes.recorded(layout.home):
        _require(layout, daemon, works=processes.is_alive(daemon))
    say(f"cluster {layout.name} is ready")


def down(layout: Layout) -> None:
    """Remove the cluster: processes, mounts, links, rules, cgroups, files. May be repeated."""
    host.require_root()
    _sweep(layout)
    if not cluster_names():
        host.restore_settings()


def _sweep(layout: Layout) -> None:
    """Remove whatever carries the names of this cluster, known or forgotten."""
    cgroups.kill_all(layout.cgroup)  # nothing needs to end in order: all state goes with it
    for daemon in processes.recorded(layout.home):
        processes.stop(layout.home, daemon)
    mounts.unmount_below(layout.home)
    network.down(layout)
    for node in layout.nodes:
        containerd.remove_traces(node)
    for link in LOG_LINKS.glob("*.log"):
        if link.is_symlink() and link.readlink().is_relative_to(layout.home):
            link.unlink()
    cgroups.remove(layout.cgroup)
    shutil.rmtree(layout.home, ignore_errors=True)
    if layout.home.exists():
        raise ClusterError(f"{layout.home} can't be deleted; look at what is in it")


def status(layout: Layout) -> str:
    """Daemons and nodes, for people."""
    lines = [f"cluster {layout.name}: {layout.node_count} node(s), API server {layout.server}"]
    for daemon in processes.recorded(layout.home):
        state = f"pid {daemon.pid}" if processes.is_alive(daemon) else "NOT RUNNING"
        lines.append(f"  {daemon.name:<28} {state}")
    if not client(layout).is_ready():
        return "\n".join([*lines, "the API server doesn't answer; `hack/cluster up` repairs"])
    return "\n".join([*lines, run_kubectl(layout.kubeconfig, "get", "nodes", "-o", "wide")])


def client(layout: Layout, user: str = "admin") -> Client:
    """A client with one of the cluster's certificates."""
    identity = Certificate(layout.pki / f"{user}.crt", layout.pki / f"{user}.key")
    return Client(layout.server, layout.pki / "ca.crt", identity)


@dataclass(frozen=True, slots=True)
class _Program:
    """One daemon to be: what it runs as, in which node's network, and how one sees it is ready."""

    name: str
    argv: list[str]
    node: Node
    is_ready: Callable[[], bool] | None = None


def _control_plane(layout: Layout) -> None:
    first = layout.nodes[0]
    authority = ensure_authority(layout.pki)
    admin = admin_certificate(layout.pki)
    kubeconfig.write(layout.kubeconfig, layout.server, authority.crt, admin)
    etcd = etcd_argv(path_of("etcd"), layout.home / "etcd", ETCD_PORT, ETCD_PEER_PORT, fsync=True)
    _ensure_running(layout, _Program("etcd", etcd, first))
    options = ServerOptions(
        address=first.address,
        port=API_PORT,
        etcd_port=ETCD_PORT,
        service_cidr=layout.service_cidr,
        first_service_ip=layout.first_service_ip,
        feature_gates=DEFAULT_FEATURE_GATES if layout.mutating_policies else {},
        advertise=True,
    )
    audit = layout.home / "log" / "audit.log"
    server = api_server_argv(path_of("kube-apiserver"), layout.pki, audit, options)
    say(f"cluster {layout.name}: control plane")
    ready = client(layout).is_ready
    _ensure_running(layout, _Program("kube-apiserver", server, first, ready))
    for name, build in (
        ("kube-controller-manager", _manager_argv),
        ("kube-scheduler", _scheduler_argv),
    ):
        identity = ensure_certificate(layout.pki, name, f"system:{name}")
        config = layout.home / f"{name}.kubeconfig"
        kubeconfig.write(config, layout.server, authority.crt, identity)
        _ensure_running(layout, _Program(name, build(layout, config), first))


def _manager_argv(layout: Layout, config: Path) -> list[str]:
    program = path_of("kube-controller-manager")
    return controller_manager_argv(program, layout.pki, config, MANAGER_PORT)


def _scheduler_argv(layout: Layout, config: Path) -> list[str]:
    return scheduler_argv(path_of("kube-scheduler"), layout.pki, config, SCHEDULER_PORT)


def _node(layout: Layout, node: Node) -> None:
    say(f"cluster {layout.name}: {node.name}")
    runtime = containerd.argv(node, network.uplink_mtu())
    _ensure_running(
        layout,
        _Program(f"containerd-{node.name}", runtime, node, lambda: containerd.is_ready(node)),
    )
    present = containerd.image_names(node)
    for name, program in (
        (ociarchive.PAUSE_IMAGE, path_of("pause")),
        (ociarchive.DNS_IMAGE, path_of("coredns")),
    ):
        if name not in present:
            archive = node.home / f"{program.name}.tar"
            ociarchive.write(archive, name, program)
            containerd.load(node, archive)
            archive.unlink()
    kubelet = nodeagents.kubelet_argv(layout, node)
    _ensure_running(layout, _Program(f"kubelet-{node.name}", kubelet, node))
    proxy = nodeagents.proxy_argv(layout, node)
    _ensure_running(layout, _Program(f"kube-proxy-{node.name}", proxy, node))


def _add_ons(layout: Layout) -> None:
    template = Template((Path(__file__).parent / "manifests.yaml").read_text())
    manifest = template.substitute(DNS_IMAGE=ociarchive.DNS_IMAGE, DNS_IP=layout.dns_ip)
    run_kubectl(layout.kubeconfig, "apply", "--server-side", "-f", "-", stdin=manifest)
    for node in layout.nodes:
        router = nodeagents.router_argv(layout, node)
        _ensure_running(layout, _Program(f"kube-router-{node.name}", router, node))
    ensure_certificate(layout.pki, "local-provisioner", "local-provisioner")
    provision = [sys.executable, "-I", str(HACK / "cluster"), "provision", "--name", layout.name]
    _ensure_running(layout, _Program("local-provisioner", provision, layout.nodes[0]))


def _wait_for_nodes(layout: Layout) -> None:
    seconds = f"{READY_SECONDS:.0f}s"
    names = [f"node/{node.name}" for node in layout.nodes]

    def registered() -> bool:
        listed = run_kubectl(layout.kubeconfig, "get", "nodes", "-o", "name").split()
        return set(names) <= set(listed)

    if not processes.wait_until(registered, READY_SECONDS):
        raise ClusterError(f"a node didn't register; look into {layout.home / 'log'}")
    wait = ["wait", "--for=condition=Ready", *names, f"--timeout={seconds}"]
    run_kubectl(layout.kubeconfig, *wait)
    dns = ["wait", "--for=condition=Available", "deployment/coredns", "-n", "kube-system"]
    run_kubectl(layout.kubeconfig, *dns, f"--timeout={seconds}")


def _ensure_running(layout: Layout, program: _Program) -> None:
    """Start a daemon unless the very same one runs; wait until it is ready."""
    argv = cgroups.joining(f"{layout.cgroup}/daemons", network.inside(program.node, program.argv))
    record = layout.home / "run" / f"{program.name}.argv"
    running = {each.name: each for each in processes.recorded(layout.home)}.get(program.name)
    if running and processes.is_alive(running) and record.read_text() == "\0".join(argv):
        daemon = running
    else:
        if running:
            processes.stop(layout.home, running)
        daemon = processes.start(program.name, argv, layout.home)
        record.write_text("\0".join(argv))
    ready = program.is_ready or (lambda: True)
    processes.wait_until(lambda: ready() or not processes.is_alive(daemon), READY_SECONDS)
    _require(layout, daemon, works=processes.is_alive(daemon) and ready())


def _require(layout: Layout, daemon: processes.Daemon, *, works: bool) -> None:
    if not works:
        raise ClusterError(
            f"{daemon.name} doesn't work; whole log: "
            f"{processes.log_path(layout.home, daemon.name)}; if the state is broken, "
            f"`hack/cluster down` and start anew\n"
            f"{processes.log_tail(layout.home, daemon.name)}"
        )
