"""kubectl as people type it: somebody at one cluster.

Callers: the cluster suites and the demo. Nothing here knows the operator.
"""

import json
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clusterlib import binaries
from clusterlib.errors import ClusterError

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with a kubeconfig, as its administrator or as another user."""

    kubeconfig: Path
    user: str = ""

    def as_user(self, name: str) -> "Kubectl":
        """Act as somebody else, by impersonation."""
        return replace(self, user=name)

    def attempt(
        self, *arguments: str, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl; the caller looks at the exit status."""
        return subprocess.run(
            self._argv(arguments), input=stdin, capture_output=True, text=True, check=False
        )

    def read(self, *arguments: str) -> bytes:
        """Run kubectl for bytes that it writes, such as an archive."""
        done = subprocess.run(self._argv(arguments), capture_output=True, check=False)
        if done.returncode:
            raise ClusterError(f"kubectl {' '.join(arguments)}: {done.stderr.decode().strip()}")
        return done.stdout

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl; give back stdout. A failure raises ClusterError with its message."""
        done = self.attempt(*arguments, stdin=stdin)
        if done.returncode:
            raise ClusterError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def get(self, *arguments: str) -> Any:
        """Whatever `kubectl get` knows, decoded."""
        return json.loads(self("get", *arguments, "-o", "json"))

    def apply(self, *manifests: Manifest) -> None:
        """Apply manifests, server side."""
        self("apply", "--server-side", "-f", "-", stdin=_stream(manifests))

    def create(self, *manifests: Manifest) -> None:
        """Create objects, as generated names need."""
        self("create", "-f", "-", stdin=_stream(manifests))

    def _argv(self, arguments: tuple[str, ...]) -> list[str]:
        who = ["--as", self.user] if self.user else []
        return [
            str(binaries.path_of("kubectl")),
            f"--kubeconfig={self.kubeconfig}",
            *who,
            *arguments,
        ]


def _stream(manifests: tuple[Manifest, ...]) -> str:
    return "\n---\n".join(json.dumps(manifest) for manifest in manifests)
