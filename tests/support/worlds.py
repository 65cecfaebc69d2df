"""The outside of whole runs: git host and forge over TLS, registry, tokens, policies.

Callers: tests of whole runs. `Outside` is made once a session; `Scene` is one row of the scenario
table with a repository of its own, and what a run of it needs.
"""

import contextlib
import hashlib
import os
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from support.certificates import make_authority
from support.fixtures.launch import Servers, host_process, registry_process
from support.kubeapi import Json
from support.platform import IMAGE, Platform
from support.scenarios import BuiltScenario, Row, Seen, build_world

TOKEN_KEY: Final = "token"


@dataclass(frozen=True, slots=True)
class Outside:
    """Running servers, the bundle that trusts them, and the image that runs are made of.

    `seen`: addresses as pods and operator name them: host names, never addresses.
    """

    servers: Servers
    bundle: Path
    seen: Seen
    image: str = IMAGE

    def policy(self) -> Json:
        """The spec that every policy of these tests starts from."""
        return {
            "repositories": [f"{self.seen.host_url}/fixtures/*"],
            "forge": {"type": "GitHub", "apiURL": f"{self.seen.host_url}/api/v3"},
            "images": {
                "runner": self.image,
                "python": [{"version": "3.11", "image": self.image}],
            },
            "sandbox": {"type": "Inline"},
            "trust": {"caBundle": {"configMapRef": {"name": "trust", "key": "ca.crt"}}},
            "recovery": {"lossGraceSeconds": 10},
            "validation": {"checkTimeoutSeconds": 120},
        }


def _named(url: str) -> str:
    return url.replace("127.0.0.1", "localhost")


@contextlib.contextmanager
def open_outside(folder: Path) -> Iterator[Outside]:
    """Start host (TLS) and registry in processes of their own."""
    authority = make_authority(folder / "authority")
    bundle = folder / "bundle.crt"
    bundle.write_text(authority.bundle.read_text() + system_authorities())
    bundle.chmod(0o644)
    with (
        trusted_by_git(bundle),
        host_process(folder / "host", authority.issue("localhost", "127.0.0.1")) as host,
        registry_process(folder / "registry") as registry,
    ):
        yield Outside(Servers(host, registry), bundle, Seen(_named(host.url), _named(registry.url)))


def system_authorities() -> str:
    """This machine's own bundle, for what of the real world a test talks to."""
    system = ssl.get_default_verify_paths().cafile
    return Path(system).read_text() if system and Path(system).exists() else ""


@contextlib.contextmanager
def trusted_by_git(bundle: Path) -> Iterator[None]:
    """Let the git of this process's children trust a bundle."""
    before = os.environ.get("GIT_SSL_CAINFO")
    os.environ["GIT_SSL_CAINFO"] = str(bundle)
    try:
        yield
    finally:
        if before is None:
            del os.environ["GIT_SSL_CAINFO"]
        else:
            os.environ["GIT_SSL_CAINFO"] = before


@dataclass(frozen=True, slots=True)
class Scene:
    """One row in one mode: its world, and a policy of its own in the platform's namespace."""

    built: BuiltScenario
    platform: Platform
    outside: Outside
    name: str

    @property
    def repository(self) -> str:
        """`owner/name` on the host."""
        return f"fixtures/{self.name}"

    def spec(self, mode: str, **changes: Any) -> Json:
        """The run's spec in a mode."""
        asked = merged({"repository": {"url": self.built.repository_url}}, self.built.row.run)
        return {**asked, "mode": mode, "policyRef": {"name": self.name}, **changes}

    async def apply(self, **changes: Any) -> None:
        """Apply the policy with its Secrets and decision list."""
        built, platform = self.built, self.platform
        await platform.apply_secret(f"{self.name}-clone", {TOKEN_KEY: built.clone_token})
        await platform.apply_secret(f"{self.name}-push", {TOKEN_KEY: built.push_token})
        lines = built.row.decision_lines()
        await platform.apply_config(f"{self.name}-decisions", {"list": lines.decode()})
        spec = merged(platform.policy, built.row.policy)
        spec["registries"] = {"python": [built.registry_url]}
        spec["credentials"] = {
            use: {"secretRef": {"name": f"{self.name}-{use}", "key": TOKEN_KEY}}
            for use in ("clone", "push")
        }
        spec["scripted"] = {
            "configMapRef": {"name": f"{self.name}-decisions", "key": "list"},
            "sha256": hashlib.sha256(lines).hexdigest(),
        }
        await platform.apply_named_policy(self.name, {**spec, **changes})


def merged(base: Any, more: Any) -> Any:
    """Merge maps deeply; anything else is replaced."""
    if not isinstance(base, Mapping) or not isinstance(more, Mapping):
        return more
    keys = {**base, **more}
    return {
        key: merged(base[key], more[key]) if key in base and key in more else keys[key]
        for key in keys
    }


async def open_scene(
    row: Row, name: str, folder: Path, outside: Outside, platform: Platform
) -> Scene:
    """Build a row's repository under a name of its own and apply its policy."""
    built = build_world(row, folder / name, outside.servers, name=name, seen=outside.seen)
    scene = Scene(built, platform, outside, name)
    await scene.apply()
    return scene
