"""What clusters and tests need from the host: root, Debian packages, kernel settings.

Callers: `local`, `images`, tests of alert rules. Kernel settings are noted before the first cluster
touches them and written back when the last one is gone.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from clusterlib.binaries import say
from clusterlib.errors import ClusterError
from clusterlib.paths import state_home

# Package, and a file that tells whether it is there.
CLUSTER_PACKAGES = {
    "conntrack": "/usr/sbin/conntrack",
    "containerd": "/usr/bin/containerd",
    "containernetworking-plugins": "/usr/lib/cni/bridge",
    "ipset": "/usr/sbin/ipset",
    "iproute2": "/usr/sbin/ip",
    "iptables": "/usr/sbin/iptables",
    "nftables": "/usr/sbin/nft",
    "openssl": "/usr/bin/openssl",
    "runc": "/usr/sbin/runc",
    "util-linux": "/usr/bin/nsenter",
}
IMAGE_PACKAGES = {
    "buildah": "/usr/bin/buildah",
    "containerd": "/usr/bin/containerd",
    "mmdebstrap": "/usr/bin/mmdebstrap",
}
# What tests ask for themselves: rules in promtool and in a real server.
TEST_PACKAGES = {"prometheus": "/usr/bin/promtool"}
# Forwarding is ours; the rest is set by the kubelet.
SETTINGS = (
    "net/ipv4/ip_forward",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)


def require_root() -> None:
    """Links, mounts and cgroups can't be made otherwise."""
    if os.geteuid() != 0:
        raise ClusterError("a whole cluster needs root: run this with sudo, or use --api-only")


def ensure_packages(packages: dict[str, str]) -> None:
    """Install the Debian packages that are missing. No service of theirs is used or started."""
    missing = [name for name, proof in packages.items() if not Path(proof).exists()]
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise ClusterError(f"install these programs by hand, this isn't Debian: {missing}")
    say(f"installing {' '.join(missing)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing]
    for argv in (["apt-get", "update", "-q"], install):
        run(argv, env=environment)


def run(argv: Sequence[str], *, stdin: str | None = None, env: dict[str, str] | None = None) -> str:
    """Run a program to its end; give back stdout. Raises ClusterError with what it complained."""
    done = subprocess.run(
        list(argv), input=stdin, capture_output=True, text=True, check=False, env=env
    )
    if done.returncode:
        complaint = done.stderr.strip() or done.stdout.strip()
        raise ClusterError(f"{' '.join(argv)} failed ({done.returncode}): {complaint[-2000:]}")
    return done.stdout


def succeeds(argv: Sequence[str]) -> bool:
    """Run a program for its exit status alone."""
    return subprocess.run(list(argv), capture_output=True, check=False).returncode == 0


def note_settings() -> None:
    """Remember kernel settings, unless another cluster has them noted already."""
    note = _note()
    if note.exists():
        return
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(json.dumps({name: _setting(name).read_text().strip() for name in SETTINGS}))


def restore_settings() -> None:
    """Write the noted settings back and forget them."""
    note = _note()
    if note.exists():
        for name, value in json.loads(note.read_text()).items():
            if _setting(name).read_text().strip() != value:
                _setting(name).write_text(value)
        note.unlink()


def set_kernel(name: str, value: str) -> None:
    """Write one kernel setting."""
    _setting(name).write_text(value)


def _setting(name: str) -> Path:
    return Path("/proc/sys") / name


def _note() -> Path:
    return state_home() / "host-settings.json"
