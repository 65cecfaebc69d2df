"""Named instances of API mode that outlive the command that started them.

Callers: `cli`. Tests use `apiserver` directly, so that their servers end with them.
"""

import json
from pathlib import Path

from clusterlib import processes
from clusterlib.apiserver import (
    ApiServer,
    Options,
    remove_instance,
    start_api_server,
    stop_instance,
)
from clusterlib.certificates import Certificate
from clusterlib.client import Client
from clusterlib.controlplane import DEFAULT_FEATURE_GATES
from clusterlib.errors import ClusterError
from clusterlib.paths import state_home


def folder(name: str) -> Path:
    """State of a named instance."""
    return state_home() / "api" / name


def up(
    directory: Path, *, replicas: int, controllers: bool, fsync: bool, mutating_policies: bool
) -> ApiServer:
    """Start an instance, or give back the one that runs well in this folder."""
    running = find(directory)
    if running is not None:
        return running
    stop_instance(directory)
    options = Options(
        feature_gates=DEFAULT_FEATURE_GATES if mutating_policies else {},
        replicas=replicas,
        controllers=controllers,
        fsync=fsync,
        die_with_parent=False,
    )
    server = start_api_server(directory, options)
    facts = {"urls": server.urls, "kubeconfigs": [str(each) for each in server.kubeconfigs]}
    (directory / "instance.json").write_text(json.dumps(facts))
    return server


def find(directory: Path) -> ApiServer | None:
    """The instance of this folder, if all of it runs and answers."""
    description = directory / "instance.json"
    daemons = processes.recorded(directory)
    if not description.exists() or not daemons or not all(map(processes.is_alive, daemons)):
        return None
    facts = json.loads(description.read_text())
    server = ApiServer(directory, tuple(facts["urls"]), tuple(map(Path, facts["kubeconfigs"])))
    pki = directory / "pki"
    admin = Certificate(pki / "admin.crt", pki / "admin.key")
    ready = all(Client(url, server.ca, admin).is_ready() for url in server.urls)
    return server if ready else None


def down(directory: Path) -> None:
    """Stop an instance and delete its folder. Harmless when there is none."""
    if directory.exists() and not (directory / "pki").exists():
        raise ClusterError(f"{directory} isn't a folder of API mode; nothing was deleted")
    remove_instance(directory)
