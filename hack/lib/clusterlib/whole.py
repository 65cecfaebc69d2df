"""The whole cluster, whichever way it is made: by kind where a Docker engine answers, else locally.

Callers: `cli` and the cluster suites.
"""

import os
import signal
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from clusterlib import containerd, images, kind, layout, local, processes
from clusterlib.errors import ClusterError
from clusterlib.locks import exclusive
from clusterlib.paths import state_home

DEFAULT_NAME = "default"


def up(name: str, node_count: int | None = None, *, mutating_policies: bool = True) -> Path:
    """Start, grow or repair the cluster; give back the administrator's kubeconfig."""
    if kind.is_chosen():
        kind.up(name, node_count)
        return kind.kubeconfig(name)
    with _alone():
        plan = layout.plan(name, node_count, mutating_policies=mutating_policies)
        local.up(plan)
    return plan.kubeconfig


def down(name: str) -> bool:
    """Remove the cluster with all it made; say whether there was one."""
    if kind.is_chosen():
        kind.down(name)
        return True
    with _alone():
        found = layout.find(name)
        if found is not None:
            local.down(found)
    return found is not None


def status(name: str) -> str:
    """What runs, for people."""
    return kind.status(name) if kind.is_chosen() else local.status(existing(name))


def kubeconfig(name: str) -> Path:
    """The administrator's kubeconfig of a cluster that exists."""
    return kind.kubeconfig(name) if kind.is_chosen() else existing(name).kubeconfig


def load(name: str, wanted: Iterable[str]) -> list[str]:
    """Import images, by name or archive, on every node; give back their references by digest."""
    references = []
    for archive in map(images.archive_of, wanted):
        tag, digest = images.identity(archive)
        repository = tag.rpartition(":")[0]
        reference = f"{repository}@{digest}"
        if kind.is_chosen():
            kind.load(name, archive, tag, reference)
        else:
            for node in existing(name).nodes:
                containerd.load(node, archive, repository)
        references.append(reference)
    return references


def pause_node(name: str, node: str) -> None:
    """Stop a node's kubelet without ending it: after about 20 s the node counts as lost."""
    _signal_kubelet(name, node, signal.SIGSTOP)


def resume_node(name: str, node: str) -> None:
    """Let a paused kubelet go on: the node is Ready again after seconds."""
    _signal_kubelet(name, node, signal.SIGCONT)


def existing(name: str) -> layout.Layout:
    """The plan of a local cluster; a message with the next step when there is none."""
    found = layout.find(name)
    if found is None:
        known = ", ".join(layout.names()) or "none"
        raise ClusterError(f"there is no cluster {name} (known: {known}); `hack/cluster up` first")
    return found


def _alone() -> AbstractContextManager[None]:
    return exclusive(state_home() / "clusters.lock", "starts or removes a cluster")


def _signal_kubelet(name: str, node: str, number: signal.Signals) -> None:
    if kind.is_chosen():
        raise ClusterError("on kind use: docker pause / docker unpause of the node's container")
    daemons = {each.name: each for each in processes.recorded(existing(name).home)}
    kubelet = daemons.get(f"kubelet-{node}")
    if kubelet is None or not processes.is_alive(kubelet):
        raise ClusterError(f"no kubelet of {node} runs in cluster {name}; `hack/cluster status`")
    os.kill(kubelet.pid, number)
