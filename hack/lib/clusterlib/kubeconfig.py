"""Kubeconfig files with everything embedded, so that one file can be copied and used anywhere.

Callers: `apiserver` and `local`.
"""

import base64
import json
from pathlib import Path

from clusterlib.certificates import Certificate
from clusterlib.files import write_changed


def write(path: Path, server: str, authority: Path, identity: Certificate) -> Path:
    """Write a kubeconfig (JSON is YAML) that only its owner can read; give back its path."""
    user = {
        "client-certificate-data": _embedded(identity.crt),
        "client-key-data": _embedded(identity.key),
    }
    cluster = {"server": server, "certificate-authority-data": _embedded(authority)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "upgraderun", "cluster": cluster}],
        "users": [{"name": "upgraderun", "user": user}],
        "contexts": [
            {"name": "upgraderun", "context": {"cluster": "upgraderun", "user": "upgraderun"}}
        ],
        "current-context": "upgraderun",
    }
    return write_changed(path, json.dumps(config, indent=2) + "\n")


def _embedded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode("ascii")
