"""The demo's story, told step by step on stdout.

Callers: `hack/demo`. Git host, forge and registry are the tests' servers in this process; pods
reach them through Services. Each showing has a namespace of its own, so it may be repeated.
"""

import json
import os
import secrets
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from clusterlib import images, whole
from clusterlib.paths import CHECKOUT
from demolib import objects
from demolib.tools import DemoError, Kubectl, helm
from support.certificates import make_authority
from support.fixtures.httpd import Endpoint
from support.fixtures.launch import Servers, host_in_process, registry_in_process
from support.scenarios import BuiltScenario, Seen, build_world, load_table

HOST: Final = "172.30.0.1"
SYSTEM: Final = "upgraderun-system"
RUN: Final = "first"
RUN_SECONDS: Final = 900.0


def say(text: str) -> None:
    """Tell a step."""
    print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


def main() -> int:
    """Show one run; give back the exit status."""
    try:
        with tempfile.TemporaryDirectory(prefix="upgraderun-demo-") as folder:
            _show(Path(folder))
    except DemoError as error:
        print(f"error: {error}\nSee docs/cluster.md; `make demo` may be repeated.", file=sys.stderr)
        return 1
    return 0


def _show(folder: Path) -> None:
    space = f"demo-{secrets.token_hex(3)}"
    say("cluster and images")
    kubectl = Kubectl(whole.up(whole.DEFAULT_NAME))
    known = images.recipes(extra=None, fixtures=CHECKOUT / "tests" / "support")
    images.build([known["operator"], known["runner"]])
    operator, runner = whole.load(whole.DEFAULT_NAME, ("operator", "runner"))
    authority = make_authority(folder / "authority")
    name = f"forge.{space}.svc"
    tls = authority.issue(name, HOST)
    os.environ["GIT_SSL_CAINFO"] = str(authority.bundle)
    with (
        host_in_process(folder / "host", Endpoint(HOST, 0, 0, tls)) as host,
        registry_in_process(folder / "registry", Endpoint(HOST, 0, 0)) as registry,
    ):
        forge_port, index_port = (int(s.url.rsplit(":", 1)[1]) for s in (host, registry))
        seen = Seen(f"https://{name}:{forge_port}", f"http://registry.{space}.svc:{index_port}")
        say(f"repository and packages for namespace {space}")
        row = next(row for row in load_table() if row.id == "patch-safe")
        built = build_world(row, folder / "world", Servers(host, registry), name=space, seen=seen)
        kubectl.apply(objects.namespace(space))
        kubectl.apply(
            *objects.outside("forge", space, HOST, forge_port),
            *objects.outside("registry", space, HOST, index_port),
        )
        bundle = authority.bundle.read_text()
        say("operator")
        _install(kubectl, operator, bundle, forge_port)
        kubectl.apply(*_platform(space, built, seen, runner, bundle))
        _run(kubectl, space, built)


def _install(kubectl: Kubectl, operator: str, bundle: str, port: int) -> None:
    kubectl.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}},
        objects.plain("ConfigMap", "demo-ca", SYSTEM, data={"ca.crt": bundle}),
    )
    repository, digest = operator.split("@")
    values = {
        "image": {"repository": repository, "digest": digest},
        "replicas": 1,
        "sandbox": {"allowInline": True},
        "credentials": {"secretNames": ["demo-clone", "demo-push"]},
        "trust": {"caBundle": {"configMap": "demo-ca"}},
        "networkPolicy": {"extraEgress": [{"ports": [{"port": port, "protocol": "TCP"}]}]},
    }
    flags = [part for k, v in values.items() for part in ("--set-json", f"{k}={json.dumps(v)}")]
    chart = str(CHECKOUT / "charts" / "upgraderun-operator")
    helm(kubectl.kubeconfig, "upgrade", "--install", "upgraderun", chart, "-n", SYSTEM, *flags)
    kubectl("rollout", "restart", "deployment", "-n", SYSTEM)
    kubectl("rollout", "status", "deployment", "-n", SYSTEM, "--timeout=180s")


def _platform(
    space: str, built: BuiltScenario, seen: Seen, runner: str, bundle: str
) -> list[dict[str, Any]]:
    spec = {
        "repositories": [f"{seen.host_url}/fixtures/*"],
        "forge": {"type": "GitHub", "apiURL": built.api_url},
        "images": {"runner": runner, "python": [{"version": "3.11", "image": runner}]},
        "sandbox": {"type": "Inline"},
        "registries": {"python": [built.registry_url]},
        "trust": {"caBundle": {"configMapRef": {"name": "trust", "key": "ca.crt"}}},
        "credentials": {use: objects.secret_of(f"demo-{use}") for use in ("clone", "push")},
    }
    tokens = {"demo-clone": built.clone_token, "demo-push": built.push_token}
    return [
        *(
            objects.plain("ServiceAccount", f"upgraderun-{r}", space)
            for r in ("runner", "publisher")
        ),
        objects.plain("ConfigMap", "trust", space, data={"ca.crt": bundle}),
        *(
            objects.plain("Secret", name, space, stringData={objects.TOKEN_KEY: token})
            for name, token in tokens.items()
        ),
        objects.binding("alice", "upgraderun-editor", space),
        objects.binding("bob", "upgraderun-approver", space),
        objects.ours("UpgradePolicy", "default", space, {**spec, **built.row.policy}),
    ]


def _run(kubectl: Kubectl, space: str, built: BuiltScenario) -> None:
    alice, bob = (Kubectl(kubectl.kubeconfig, user) for user in ("alice", "bob"))
    spec = {"repository": {"url": built.repository_url}, "mode": "Rules", **built.row.run}
    alice.apply(objects.ours("UpgradeRun", RUN, space, spec, requested_by="alice"))
    say(f"alice applied run/{RUN}; look: kubectl get runs -n {space} --watch")
    told, approved, end = 0, False, time.monotonic() + RUN_SECONDS
    while time.monotonic() < end:
        run = alice.get("upgraderun", RUN, "-n", space)
        status = run.get("status", {})
        for entry in status.get("journal", {}).get("entries", []):
            if entry["seq"] > told:
                told = entry["seq"]
                say(f"{told:>4} {entry['id']:<20} {entry['state']}")
        if (pending := status.get("pendingApproval")) and not approved:
            say(f"asked: {json.dumps(pending)}")
            bob.create(_approval(space, run, pending))
            approved = True
            say("bob approved exactly this digest")
        if status.get("finished"):
            break
        time.sleep(1)
    else:
        raise DemoError(f"no end in {RUN_SECONDS:.0f} s: kubectl describe run/{RUN} -n {space}")
    print(kubectl("get", "runs", "-n", space, "-o", "wide"))
    print(kubectl("get", "upgradereport", RUN, "-n", space, "-o", "jsonpath={.patch}"))
    kubectl("wait", "--for=condition=Succeeded", "--timeout=10s", f"run/{RUN}", "-n", space)


def _approval(space: str, run: dict[str, Any], pending: dict[str, Any]) -> dict[str, Any]:
    spec = {
        "runRef": {"name": RUN, "uid": run["metadata"]["uid"]},
        "kind": "Publication",
        "digest": pending["digest"],
        "decision": "Approve",
        "approver": "bob",
    }
    return objects.ours("UpgradeApproval", f"{RUN}-bob", space, spec, requester="alice")
