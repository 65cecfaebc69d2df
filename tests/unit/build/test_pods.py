"""Manifests of runner and publisher pods: security.md H1 to H3, H6, H16, H17 as assertions."""

from typing import Any

import pytest

from support.scenes import OPTIONS, UID, Scene, a_policy
from upgraderun_operator.build.claims import run_lease, workspace_claim
from upgraderun_operator.build.pods import (
    CA_ANNOTATION,
    PodPlan,
    attempt_seconds,
    delivery_seconds,
    publisher_pod,
    runner_pod,
)
from upgraderun_operator.model.policy_spec import Workspace

IMAGE = "registry.example/runner@sha256:" + "1" * 64
TRUST = {"caBundle": {"configMapRef": {"name": "trust", "key": "ca.crt"}}}


def runner(**policy: Any) -> dict[str, Any]:
    plan = PodPlan("run-3f1c9a2b-a1", "a1", IMAGE, attempt_seconds(21600), "run-3f1c9a2b")
    return dict(runner_pod(Scene().view.ref, plan, a_policy(**policy).spec, OPTIONS))


def publisher(**policy: Any) -> dict[str, Any]:
    plan = PodPlan("run-3f1c9a2b-d1", "d1", IMAGE, delivery_seconds(), None)
    return dict(publisher_pod(Scene().view.ref, plan, a_policy(**policy).spec, OPTIONS))


@pytest.mark.parametrize("pod", [runner(), publisher()], ids=["runner", "publisher"])
class TestEveryPod:
    """What holds for both roles."""

    def test_is_restricted(self, pod: dict[str, Any]) -> None:
        spec, container = pod["spec"], pod["spec"]["containers"][0]
        assert len(spec["containers"]) == 1
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] == 65532
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }

    def test_is_bounded(self, pod: dict[str, Any]) -> None:
        spec, container = pod["spec"], pod["spec"]["containers"][0]
        wanted = {"cpu", "memory", "ephemeral-storage"}
        assert wanted == set(container["resources"]["limits"])
        assert wanted == set(container["resources"]["requests"])
        assert spec["activeDeadlineSeconds"] > 0
        assert spec["restartPolicy"] == "Never"
        assert spec["enableServiceLinks"] is False
        for volume in spec["volumes"]:
            assert "sizeLimit" in volume.get("emptyDir", {"sizeLimit": ""})

    def test_has_one_token_for_the_runner_api_and_no_other(self, pod: dict[str, Any]) -> None:
        assert pod["spec"]["automountServiceAccountToken"] is False
        tokens = [
            source["serviceAccountToken"]
            for volume in pod["spec"]["volumes"]
            for source in volume.get("projected", {}).get("sources", ())
            if "serviceAccountToken" in source
        ]
        assert tokens == [
            {"audience": "upgraderun-operator", "expirationSeconds": 3600, "path": "token"}
        ]

    def test_uses_allowed_volume_types_only(self, pod: dict[str, Any]) -> None:
        allowed = {"projected", "emptyDir", "secret", "configMap", "persistentVolumeClaim"}
        for volume in pod["spec"]["volumes"]:
            assert set(volume) - {"name"} <= allowed

    def test_belongs_to_the_run_by_uid(self, pod: dict[str, Any]) -> None:
        (owner,) = pod["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (UID, True)
        assert pod["metadata"]["labels"]["upgraderun.dev/run-uid"] == UID

    def test_trusts_the_operators_authority(self, pod: dict[str, Any]) -> None:
        assert pod["metadata"]["annotations"] == {CA_ANNOTATION: OPTIONS.authority}

    def test_names_identity_and_files_in_its_arguments(self, pod: dict[str, Any]) -> None:
        container = pod["spec"]["containers"][0]
        assert "command" not in container
        arguments = dict(zip(container["args"][1::2], container["args"][2::2], strict=True))
        assert arguments["--operator-url"] == OPTIONS.operator_url
        assert arguments["--run-uid"] == UID
        assert arguments["--token-file"].endswith("/token")
        assert arguments["--termination-log"] == "/dev/termination-log"

    def test_mounts_every_volume_once(self, pod: dict[str, Any]) -> None:
        volumes = [volume["name"] for volume in pod["spec"]["volumes"]]
        mounts = [mount["name"] for mount in pod["spec"]["containers"][0]["volumeMounts"]]
        assert sorted(volumes) == sorted(mounts)


class TestRoles:
    """What only one of them has."""

    def test_the_runner_has_volume_and_clone_token(self) -> None:
        pod = runner()
        arguments = pod["spec"]["containers"][0]["args"]
        assert arguments[0] == "run"
        assert "--workspace" in arguments
        assert "--clone-token-file" in arguments
        assert "--push-token-file" not in arguments
        secrets = [v["secret"]["secretName"] for v in pod["spec"]["volumes"] if "secret" in v]
        assert secrets == ["clone"]
        assert pod["spec"]["serviceAccountName"] == "upgraderun-runner"

    def test_the_publisher_has_the_push_token_and_no_volume_of_the_run(self) -> None:
        pod = publisher()
        arguments = pod["spec"]["containers"][0]["args"]
        assert arguments[0] == "publish"
        assert "--workspace" not in arguments
        assert "--push-token-file" in arguments
        assert not [v for v in pod["spec"]["volumes"] if "persistentVolumeClaim" in v]
        assert pod["spec"]["serviceAccountName"] == "upgraderun-publisher"

    def test_a_repository_without_credentials_mounts_none(self) -> None:
        for pod in (runner(credentials={}), publisher(credentials={})):
            assert not [v for v in pod["spec"]["volumes"] if "secret" in v]

    def test_the_policys_bundle_is_mounted(self) -> None:
        pod = runner(trust=TRUST)
        assert "--trust-bundle" in pod["spec"]["containers"][0]["args"]
        (trust,) = [v for v in pod["spec"]["volumes"] if "configMap" in v]
        assert trust["configMap"]["name"] == "trust"


def test_nothing_of_the_runs_metadata_but_name_and_uid_reaches_a_pod() -> None:
    scene = Scene()
    scene.metadata["labels"] = {"upgraderun.dev/role": "operator", "evil": "x"}
    scene.metadata["annotations"]["evil"] = "x"
    plan = PodPlan("p", "a1", IMAGE, 60, "c")
    pod = runner_pod(scene.view.ref, plan, a_policy().spec, OPTIONS)
    assert "evil" not in str(pod)
    assert pod["metadata"]["labels"]["upgraderun.dev/role"] == "runner"


@pytest.mark.parametrize("storage_class", [None, "fast"])
def test_the_volume_is_the_policys(storage_class: str | None) -> None:
    claim = workspace_claim(
        Scene().view.ref, Workspace(storage_class_name=storage_class, size="5Gi")
    )
    assert claim["spec"]["resources"]["requests"] == {"storage": "5Gi"}
    assert claim["spec"].get("storageClassName") == storage_class
    assert claim["metadata"]["name"] == "run-3f1c9a2b"


def test_the_run_lease_is_made_free() -> None:
    lease = run_lease(Scene().view.ref)
    assert "holderIdentity" not in lease["spec"]
    assert lease["metadata"]["ownerReferences"][0]["uid"] == UID


def test_a_long_name_is_cut_where_labels_end() -> None:
    pod = runner_pod(
        Scene(name="x" * 62 + "-").view.ref,
        PodPlan("p", "a1", IMAGE, 60, "c"),
        a_policy().spec,
        OPTIONS,
    )
    assert pod["metadata"]["labels"]["upgraderun.dev/run"] == "x" * 62
