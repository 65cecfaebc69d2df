"""kubectl and helm as the demo's people type them.

Callers: `demolib`. Nothing here knows the operator.
"""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusterlib import binaries

Manifest = dict[str, Any]


class DemoError(Exception):
    """The demo can't go on; the message says what to do."""


def call(argv: list[str], stdin: str | None = None) -> str:
    """Run a program; give back its stdout."""
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        words = " ".join([Path(argv[0]).name, *argv[1:]])
        raise DemoError(f"{words}\n{done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl at one cluster, perhaps as somebody else than its administrator."""

    kubeconfig: Path
    user: str = ""

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl."""
        who = ["--as", self.user] if self.user else []
        program = str(binaries.path_of("kubectl"))
        return call([program, f"--kubeconfig={self.kubeconfig}", *who, *arguments], stdin)

    def get(self, *arguments: str) -> Any:
        """Whatever `kubectl get` knows, decoded."""
        return json.loads(self("get", *arguments, "-o", "json"))

    def apply(self, *manifests: Manifest) -> None:
        """Apply manifests."""
        items = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        self("apply", "-f", "-", stdin=json.dumps(items))

    def create(self, manifest: Manifest) -> None:
        """Create one object, as a generated name needs."""
        self("create", "-f", "-", stdin=json.dumps(manifest))


def helm(kubeconfig: Path, *arguments: str) -> str:
    """Run helm."""
    return call([str(binaries.path_of("helm")), f"--kubeconfig={kubeconfig}", *arguments])
