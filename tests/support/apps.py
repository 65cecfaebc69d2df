"""A GitHub App for tests: its key pair, its place on the fixture forge, its Secret."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from support.fixtures.launch import Host
from upgraderun_operator.observe.ports import AppGrant
from upgraderun_protocol.redact import SecretText

APP_ID = "Iv23liFixtureApp"
SECRET = "forge-app"
FULL = {"contents": "write", "pull_requests": "write"}
WHERE = f"Secret {SECRET}, key private-key.pem"


@cache
def key_pair(name: str = "ours") -> RSAPrivateKey:
    """A key; made once a process, since primes take their time."""
    del name
    return generate_private_key(65537, 2048)


def pem(name: str = "ours") -> str:
    """The private key as GitHub hands it out: PKCS#1, PEM."""
    return (
        key_pair(name)
        .private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        .decode()
    )


@dataclass(frozen=True, slots=True)
class Installed:
    """What a test says of the App's one installation."""

    account: str
    permissions: Mapping[str, str] = field(default_factory=lambda: dict(FULL))
    repositories: tuple[str, ...] | None = None
    suspended: bool = False


def install_app(host: Host, installed: Installed, key: str = "ours") -> None:
    """Make the App and its installation on the host, or change them."""
    numbers = key_pair(key).public_key().public_numbers()
    row: dict[str, Any] = {
        "id": 71,
        "account": installed.account,
        "permissions": dict(installed.permissions),
        "repositories": installed.repositories and list(installed.repositories),
        "suspended": installed.suspended,
    }
    host.control.put_app(
        {
            "id": 4242,
            "client_id": APP_ID,
            "slug": "upgraderun",
            "modulus": f"{numbers.n:x}",
            "exponent": numbers.e,
            "installations": [row],
        }
    )


def grant(host: Host, repository: str, *, key: str | None = None, **more: Any) -> AppGrant:
    """What the operator asks with."""
    known = {
        "namespace": "team",
        "api_url": host.api_url,
        "repository": repository,
        "app_id": APP_ID,
        "key": SecretText(pem() if key is None else key),
        "where": WHERE,
        "publishes": True,
    }
    return AppGrant(**{**known, **more})
