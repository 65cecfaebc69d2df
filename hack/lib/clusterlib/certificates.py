"""Certificates of a test cluster: one authority, one certificate per component, by `openssl`.

Callers: `apiserver` and `local`. Keys are P-256, made in milliseconds; nothing here is meant to
protect anything but a cluster on the developer's own machine.
"""

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from clusterlib.errors import ClusterError

NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
VALID_DAYS = "365"


@dataclass(frozen=True, slots=True)
class Certificate:
    """The two files of one identity."""

    crt: Path
    key: Path


def ensure_authority(folder: Path) -> Certificate:
    """The cluster's authority; made once per folder."""
    made = Certificate(folder / "ca.crt", folder / "ca.key")
    if not made.crt.exists():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        _openssl(
            *("req", "-x509", *NEW_KEY, "-days", VALID_DAYS, "-subj", "/CN=upgraderun-test-ca"),
            *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
            *("-keyout", str(made.key), "-out", str(made.crt)),
        )
    return made


def ensure_certificate(
    folder: Path, name: str, user: str, groups: Iterable[str] = (), hosts: Iterable[str] = ()
) -> Certificate:
    """A certificate of the authority in `folder`, for a user or for a server with these hosts."""
    made = Certificate(folder / f"{name}.crt", folder / f"{name}.key")
    if made.crt.exists():
        return made
    subject = "".join(f"/O={group}" for group in groups) + f"/CN={user}"
    names = ",".join(f"IP:{h}" if h.replace(".", "").isdigit() else f"DNS:{h}" for h in hosts)
    _openssl(
        *("req", "-x509", *NEW_KEY, "-days", VALID_DAYS, "-subj", subject),
        *("-CA", str(folder / "ca.crt"), "-CAkey", str(folder / "ca.key")),
        *("-addext", "basicConstraints=critical,CA:FALSE"),
        *("-addext", "keyUsage=critical,digitalSignature"),
        *("-addext", "extendedKeyUsage=clientAuth,serverAuth"),
        *(("-addext", f"subjectAltName={names}") if names else ()),
        *("-keyout", str(made.key), "-out", str(made.crt)),
    )
    return made


def ensure_key_pair(folder: Path, name: str) -> Path:
    """A private key that signs service account tokens; its public half is beside it (`.pub`)."""
    key = folder / f"{name}.key"
    if not key.exists():
        _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(key))
        _openssl("ec", "-in", str(key), "-pubout", "-out", str(key.with_suffix(".pub")))
    return key


def _openssl(*arguments: str) -> None:
    try:
        done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise ClusterError(
            "openssl isn't installed; install it (apt-get install openssl)"
        ) from None
    if done.returncode:
        raise ClusterError(f"openssl {arguments[0]} failed: {done.stderr.strip()}")
