"""The life of a release on a real API server: upgrade, rollback, uninstall, and what stays."""

from clusterlib.apiserver import ApiServer
from support.chart import CHART, NAMESPACE, RELEASE, crds, helm
from support.kinds import ALICE, make_namespace, run
from support.kube import Kube, eventually

LABEL = f"app.kubernetes.io/instance={RELEASE}"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
CLUSTERED = (
    f"{RBAC}/clusterroles",
    f"{RBAC}/clusterrolebindings",
    f"{ADMISSION}/validatingadmissionpolicies",
    f"{ADMISSION}/validatingadmissionpolicybindings",
)
NAMESPACED = (
    *(f"/api/v1/namespaces/{NAMESPACE}/{plural}" for plural in ("services", "serviceaccounts")),
    *(f"/api/v1/namespaces/{NAMESPACE}/{plural}" for plural in ("secrets", "configmaps")),
    f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims",
    f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
    f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies",
    *(f"{RBAC}/namespaces/{NAMESPACE}/{plural}" for plural in ("roles", "rolebindings")),
)


def names(admin: Kube, paths: tuple[str, ...]) -> set[str]:
    """Everything of the release below these paths."""
    found = set()
    for path in paths:
        answer = admin.send("GET", path, labelSelector=LABEL)
        assert answer.ok, answer.message
        plural = path.rpartition("/")[2]
        found |= {f"{plural}/{item['metadata']['name']}" for item in answer.body["items"]}
    return found


def stored(admin: Kube) -> list[bool]:
    """Whether each of the kinds is there."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    return [admin.send("GET", f"{path}/{crd['metadata']['name']}").ok for crd in crds()]


def act(server: ApiServer, command: str, *arguments: str) -> str:
    kubeconfig = ("--kubeconfig", str(server.kubeconfig), "--namespace", NAMESPACE)
    return helm(command, RELEASE, *arguments, *kubeconfig)


def test_upgrade_rollback_and_uninstall_leave_what_the_page_says(
    server: ApiServer, admin: Kube
) -> None:
    """One test, since each step needs the one before it; docs/install.md names what stays."""
    act(server, "install", str(CHART), "--create-namespace")
    everywhere = names(admin, CLUSTERED)
    make_namespace(admin, "team-a")
    alice = admin.as_user(ALICE, ("system:masters",))
    eventually(lambda: alice.create(run("team-a")).ok, "runs are served")

    act(server, "upgrade", str(CHART), "--set-json", 'watchNamespaces=["team-a"]')
    narrow = names(admin, CLUSTERED)
    assert {f"clusterrolebindings/{RELEASE}-runs"} == everywhere - narrow
    assert set() == narrow - everywhere

    act(server, "rollback", "1")
    assert everywhere == names(admin, CLUSTERED)

    act(server, "uninstall", "--wait")
    assert set() == names(admin, CLUSTERED)
    kept = {f"persistentvolumeclaims/{RELEASE}-artifacts", f"secrets/{RELEASE}-tls"}
    assert kept == names(admin, NAMESPACED)
    assert all(stored(admin))
    assert "spec" in admin.get(run("team-a"))

    act(server, "install", str(CHART), "--set", "crds.keep=false")
    assert everywhere == names(admin, CLUSTERED)

    act(server, "uninstall", "--wait")
    eventually(lambda: not any(stored(admin)), "the kinds go with the release")
