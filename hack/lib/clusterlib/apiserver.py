"""API mode: etcd and one or more API servers on free ports of loopback, ready in seconds.

Callers: the test fixture of `tests/support/apiserver.py` and `hack/cluster up --api-only`. Needs no
root and touches nothing but its folder, so any number runs side by side. Without `controllers`
nothing but the API server acts: namespaces don't get a `default` service account, deleted
namespaces stay, owned objects aren't collected.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from clusterlib import binaries, kubeconfig, processes
from clusterlib.certificates import ensure_authority, ensure_certificate
from clusterlib.client import Client
from clusterlib.controlplane import (
    DEFAULT_FEATURE_GATES,
    LOOPBACK,
    ServerOptions,
    admin_certificate,
    api_server_argv,
    controller_manager_argv,
    etcd_argv,
)
from clusterlib.errors import ClusterError
from clusterlib.ports import free_ports

READY_SECONDS = 120.0
PORT_TRIES = 5
SERVICE_CIDR = "10.96.0.0/16"
FIRST_SERVICE_IP = "10.96.0.1"
COLLECT_SELDOM = {"GOGC": "400"}
"""Collecting garbage is a fifth of a young API server's processor time, and memory is plenty."""


@dataclass(frozen=True, slots=True)
class Options:
    """How an API server is started; the defaults suit a developer's shell."""

    feature_gates: Mapping[str, bool] = field(default_factory=lambda: dict(DEFAULT_FEATURE_GATES))
    replicas: int = 1
    controllers: bool = False
    fsync: bool = True
    die_with_parent: bool = True


@dataclass(frozen=True, slots=True)
class ApiServer:
    """A running control plane. `urls` and `kubeconfigs` have one element per replica."""

    directory: Path
    urls: tuple[str, ...]
    kubeconfigs: tuple[Path, ...]

    @property
    def url(self) -> str:
        """Address of the first replica."""
        return self.urls[0]

    @property
    def kubeconfig(self) -> Path:
        """Cluster administrator at the first replica."""
        return self.kubeconfigs[0]

    @property
    def ca(self) -> Path:
        """Certificate of the authority that signed the servers and all users."""
        return self.directory / "pki" / "ca.crt"

    @property
    def audit_log(self) -> Path:
        """One JSON object per write, of the first replica (`-<n>` for the others)."""
        return self.directory / "log" / "audit-0.log"

    def add_user(self, name: str, groups: Iterable[str] = (), *, replica: int = 0) -> Path:
        """A kubeconfig for somebody else, with a certificate; rights come from RBAC as always."""
        pki = self.directory / "pki"
        identity = ensure_certificate(pki, f"user-{name}", name, groups)
        path = self.directory / f"user-{name}-{replica}.kubeconfig"
        return kubeconfig.write(path, self.urls[replica], self.ca, identity)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl as administrator; give back stdout. Raises ClusterError with its message."""
        return run_kubectl(self.kubeconfig, *arguments, stdin=stdin)

    def stop(self) -> None:
        """End every process of this instance; the folder stays."""
        stop_instance(self.directory)


def start_api_server(directory: Path, options: Options | None = None) -> ApiServer:
    """Start etcd, the API servers and perhaps the controllers; give back when all are ready.

    `directory` is kept between starts: the same folder gives the same data, authority and users.
    Raises ClusterError with the log's tail when something ends or doesn't get ready.
    """
    options = options or Options()
    directory = directory.resolve()
    names = [*binaries.API_SERVER, *(["kube-controller-manager"] if options.controllers else [])]
    binaries.ensure(names)
    directory.mkdir(parents=True, exist_ok=True)
    for attempt in range(PORT_TRIES):
        try:
            return _start(directory, options)
        except _PortTakenError:
            stop_instance(directory)
            if attempt == PORT_TRIES - 1:
                raise
        except BaseException:
            stop_instance(directory)
            raise
    raise AssertionError("unreachable")


def stop_instance(directory: Path) -> None:
    """End what runs from this folder, the API servers before etcd."""
    for daemon in sorted(processes.recorded(directory), key=lambda d: d.name, reverse=True):
        processes.stop(directory, daemon)


def run_kubectl(config: Path, *arguments: str, stdin: str | None = None) -> str:
    """Run kubectl with this kubeconfig; give back stdout. Raises ClusterError with its message."""
    done = subprocess.run(
        [str(binaries.path_of("kubectl")), f"--kubeconfig={config}", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HOME": str(config.parent)},
    )
    if done.returncode:
        raise ClusterError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


class _PortTakenError(ClusterError):
    """Somebody took a port between our look and our use."""


def _start(directory: Path, options: Options) -> ApiServer:
    etcd_port, peer_port, manager_port, *ports = free_ports(3 + options.replicas)
    pki = directory / "pki"
    authority = ensure_authority(pki)
    _launch(
        "etcd",
        etcd_argv(
            binaries.path_of("etcd"),
            directory / "etcd",
            etcd_port,
            peer_port,
            fsync=options.fsync,
        ),
        directory,
        options,
    )
    server = ServerOptions(
        address=LOOPBACK,
        port=0,
        etcd_port=etcd_port,
        service_cidr=SERVICE_CIDR,
        first_service_ip=FIRST_SERVICE_IP,
        feature_gates=options.feature_gates,
        advertise=False,
    )
    program = binaries.path_of("kube-apiserver")
    for number, port in enumerate(ports):
        audit = directory / "log" / f"audit-{number}.log"
        argv = api_server_argv(program, pki, audit, replace(server, port=port))
        _launch(f"kube-apiserver-{number}", argv, directory, options)
    urls = tuple(f"https://{LOOPBACK}:{port}" for port in ports)
    admin = admin_certificate(pki)
    configs = tuple(
        kubeconfig.write(directory / f"admin-{number}.kubeconfig", url, authority.crt, admin)
        for number, url in enumerate(urls)
    )
    for url in urls:
        _wait_ready(directory, Client(url, authority.crt, admin))
    if options.controllers:
        argv = controller_manager_argv(
            binaries.path_of("kube-controller-manager"), pki, configs[0], manager_port
        )
        _launch("kube-controller-manager", argv, directory, options)
        _wait_controllers(directory, Client(urls[0], authority.crt, admin))
    return ApiServer(directory, urls, configs)


def _launch(name: str, argv: list[str], directory: Path, options: Options) -> None:
    processes.log_path(directory, name).unlink(missing_ok=True)
    processes.start(
        name, argv, directory, env=COLLECT_SELDOM, die_with_parent=options.die_with_parent
    )


def _wait_ready(directory: Path, client: Client) -> None:
    """Wait until the server answers or a process of this instance has ended."""
    daemons = processes.recorded(directory)
    processes.wait_until(
        lambda: client.is_ready() or not all(map(processes.is_alive, daemons)), READY_SECONDS
    )
    if not client.is_ready():
        _explain(directory)


def _wait_controllers(directory: Path, client: Client) -> None:
    """The controllers work once `default` has its service account."""
    path = "/api/v1/namespaces/default/serviceaccounts/default"

    def there() -> bool:
        with contextlib.suppress(Exception):
            return bool(client.request("GET", path))
        return False

    if not processes.wait_until(there, READY_SECONDS):
        _explain(directory)


def _explain(directory: Path) -> None:
    daemons = processes.recorded(directory)
    ended = [each.name for each in daemons if not processes.is_alive(each)]
    name = (ended or [daemons[-1].name])[0]
    tail = processes.log_tail(directory, name)
    if ended and "address already in use" in tail:
        raise _PortTakenError(f"{name}: its port was taken by another process; try again")
    what = "ended" if ended else f"isn't ready after {READY_SECONDS:.0f} s"
    raise ClusterError(f"{name} {what}; whole log: {processes.log_path(directory, name)}\n{tail}")


def remove_instance(directory: Path) -> None:
    """Stop an instance and delete its folder."""
    stop_instance(directory)
    shutil.rmtree(directory, ignore_errors=True)
