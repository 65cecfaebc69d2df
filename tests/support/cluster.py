"""A whole cluster in tests: the shared one, and throw-away ones of the suite about clusters itself.

Callers: suites under `tests/cluster`. The shared cluster is the one that a developer works with
(`hack/cluster up`): it is started if it doesn't run, and left running. Tests make their own
namespaces in it and clean up after themselves.
"""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from clusterlib import images, processes, whole
from clusterlib.kubectl import Kubectl, Manifest
from clusterlib.paths import CHECKOUT

NAME_VARIABLE: Final = "UPGRADERUN_TEST_CLUSTER"
FAULT_HOOK: Final = "hack/fault"
WAIT_SECONDS: Final = 180.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster, as its administrator."""

    name: str
    kubeconfig: Path

    @property
    def client(self) -> Kubectl:
        """The administrator's kubectl; `as_user` makes it somebody else's."""
        return Kubectl(self.kubeconfig)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl; give back stdout."""
        return self.client(*arguments, stdin=stdin)

    def try_kubectl(
        self, *arguments: str, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl for a test that looks at the failure."""
        return self.client.attempt(*arguments, stdin=stdin)

    def apply(self, *manifests: Manifest) -> None:
        """Apply manifests, server side."""
        self.client.apply(*manifests)

    def get(self, *arguments: str) -> Any:
        """Whatever `kubectl get` knows, decoded."""
        return self.client.get(*arguments)

    def wait_for(self, condition: str, *arguments: str, seconds: float = WAIT_SECONDS) -> None:
        """`kubectl wait` for a condition such as `condition=Ready`."""
        self.kubectl("wait", f"--for={condition}", *arguments, f"--timeout={seconds:.0f}s")

    def until(self, holds: Callable[[], bool], what: str, seconds: float = WAIT_SECONDS) -> None:
        """Wait for a state of the world, with a deadline."""
        assert processes.wait_until(holds, seconds), f"not within {seconds:.0f} s: {what}"

    def load(self, *names: str) -> dict[str, str]:
        """Build images if their sources changed, load them; give back references by digest.

        `operator-test` and `runner-test` contain the fault hook.
        """
        known = images.recipes(extra=FAULT_HOOK, fixtures=CHECKOUT / "tests" / "support")
        images.build([known[name] for name in names])
        return dict(zip(names, whole.load(self.name, names), strict=True))


def start(name: str, nodes: int | None = None) -> Cluster:
    """Start or repair a cluster of this name."""
    return Cluster(name, whole.up(name, nodes))


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """The shared cluster; one that is already up is used as it is."""
    return start(os.environ.get(NAME_VARIABLE, whole.DEFAULT_NAME))
