"""The kinds that the operator touches, as REST paths.

Callers: whoever names a resource through a client protocol. Adding one here means adding it to the
chart's RBAC.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource of the API server."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """What manifests say."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None, name: str | None = None) -> str:
        """URL path of the collection or of one object."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{root}{scope}/{self.plural}" + (f"/{name}" if name else "")


_OURS: Final = ("upgraderun.dev", "v1alpha1")

UPGRADE_RUNS: Final = Resource(*_OURS, "upgraderuns", "UpgradeRun")
UPGRADE_POLICIES: Final = Resource(*_OURS, "upgradepolicies", "UpgradePolicy")
UPGRADE_APPROVALS: Final = Resource(*_OURS, "upgradeapprovals", "UpgradeApproval")
UPGRADE_REPORTS: Final = Resource(*_OURS, "upgradereports", "UpgradeReport")
PODS: Final = Resource("", "v1", "pods", "Pod")
CLAIMS: Final = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS: Final = Resource("", "v1", "secrets", "Secret")
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)
SERVICE_ACCOUNTS: Final = Resource("", "v1", "serviceaccounts", "ServiceAccount")
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")
EVENTS: Final = Resource("events.k8s.io", "v1", "events", "Event")
TOKEN_REVIEWS: Final = Resource(
    "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False
)
