"""What tests may expect of API mode (docs/cluster.md)."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clusterlib import processes
from clusterlib.apiserver import ApiServer, Options, run_kubectl, start_api_server
from clusterlib.errors import ClusterError

pytestmark = pytest.mark.api

START = """
import sys
from pathlib import Path
from clusterlib.apiserver import Options, start_api_server
start_api_server(Path(sys.argv[1]), Options(fsync=False))
print("ready", flush=True)
sys.stdin.read()
"""


def test_users_have_the_rights_that_rbac_gives(api_server: ApiServer) -> None:
    config = api_server.add_user("carol", ["readers"])

    assert "yes\n" == api_server.kubectl("auth", "can-i", "create", "pods")
    with pytest.raises(ClusterError, match='User "carol" cannot list'):
        run_kubectl(config, "get", "pods")


def test_writes_stand_in_the_audit_log_with_their_user(api_server: ApiServer) -> None:
    api_server.kubectl("create", "configmap", "audited")

    written = [json.loads(line) for line in api_server.audit_log.read_text().splitlines()]
    mine = [each for each in written if each.get("objectRef", {}).get("name") == "audited"]
    assert [("create", "kubernetes-admin", 201)] == [
        (each["verb"], each["user"]["username"], each["responseStatus"]["code"]) for each in mine
    ]
    assert "get" not in {each["verb"] for each in written}


def test_replicas_share_their_objects_and_mutating_policies_can_be_off(tmp_path: Path) -> None:
    options = Options(replicas=2, fsync=False, feature_gates={})
    server = start_api_server(tmp_path, options)
    try:
        server.kubectl("create", "configmap", "shared")

        seen = run_kubectl(server.kubeconfigs[1], "get", "configmap", "shared", "-o", "name")
        served = server.kubectl("api-resources", "-o", "name").split()
    finally:
        server.stop()

    assert "configmap/shared\n" == seen
    assert "validatingadmissionpolicies.admissionregistration.k8s.io" in served
    assert "mutatingadmissionpolicies.admissionregistration.k8s.io" not in served


def test_mutating_policies_are_served_by_default(api_server: ApiServer) -> None:
    served = api_server.kubectl("api-resources", "-o", "name").split()

    assert "mutatingadmissionpolicies.admissionregistration.k8s.io" in served


def test_killed_test_process_takes_its_servers_along(tmp_path: Path) -> None:
    """An aborted run leaves no API server on the machine."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", START, str(tmp_path)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert "ready\n" == child.stdout.readline()
        daemons = processes.recorded(tmp_path)
        assert {"etcd", "kube-apiserver-0"} == {each.name for each in daemons}

        child.send_signal(signal.SIGKILL)

    gone = processes.wait_until(lambda: not any(map(processes.is_alive, daemons)), 30)
    assert gone


def test_broken_server_is_explained_with_the_end_of_its_log(tmp_path: Path) -> None:
    options = Options(fsync=False, feature_gates={"NoSuchGate": True})

    with pytest.raises(ClusterError, match=r"kube-apiserver-0 ended(.|\n)*NoSuchGate"):
        start_api_server(tmp_path, options)

    assert [] == processes.recorded(tmp_path)
