"""How to reach the API server: from a pod's service account or from a kubeconfig file.

Callers: `main` and tests. The token of a service account is read again for each minute of use,
since the kubelet renews it.
"""

import base64
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ConfigError(ValueError):
    """No usable configuration; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """One server and one identity.

    `token_file` wins over `token`; `tls` holds the CA and the client certificate.
    """

    server: str
    tls: ssl.SSLContext
    token: str | None = None
    token_file: Path | None = None


def in_cluster(environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> ClusterConfig:
    """Configuration of a pod. Raises ConfigError outside of one."""
    host = environment.get("KUBERNETES_SERVICE_HOST")
    port = environment.get("KUBERNETES_SERVICE_PORT", "443")
    token_file, ca = folder / "token", folder / "ca.crt"
    if not host or not token_file.is_file():
        raise ConfigError("not in a pod: no KUBERNETES_SERVICE_HOST or no service account token")
    shown = f"[{host}]" if ":" in host else host
    return ClusterConfig(
        server=f"https://{shown}:{port}",
        tls=ssl.create_default_context(cafile=str(ca)),
        token_file=token_file,
    )


def from_kubeconfig(path: Path) -> ClusterConfig:
    """Configuration of the current context. Raises ConfigError for what isn't supported."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        context = _named(document, "contexts", document["current-context"])["context"]
        cluster = _named(document, "clusters", context["cluster"])["cluster"]
        user = _named(document, "users", context["user"])["user"]
        server = str(cluster["server"])
    except (KeyError, TypeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: no usable current context ({error})") from error
    if "exec" in user or "auth-provider" in user:
        raise ConfigError(
            f"{path}: credential plugins aren't supported; use a token or certificate"
        )
    tls = ssl.create_default_context(cadata=_text(cluster, "certificate-authority", path))
    certificate = _text(user, "client-certificate", path)
    key = _text(user, "client-key", path)
    if certificate and key:
        _load_pair(tls, certificate, key)
    token_file = user.get("tokenFile")
    return ClusterConfig(
        server=server.rstrip("/"),
        tls=tls,
        token=user.get("token"),
        token_file=path.parent / token_file if token_file else None,
    )


def _named(document: Any, part: str, name: str) -> Any:
    for item in document[part]:
        if item["name"] == name:
            return item
    raise KeyError(f"{part}: {name}")


def _text(block: Mapping[str, Any], key: str, path: Path) -> str | None:
    """A PEM text, given inline as `<key>-data` or as a file beside the kubeconfig."""
    if f"{key}-data" in block:
        return base64.b64decode(block[f"{key}-data"]).decode("ascii")
    return (path.parent / block[key]).read_text(encoding="ascii") if key in block else None


def _load_pair(tls: ssl.SSLContext, certificate: str, key: str) -> None:
    """`ssl` takes a client certificate from a file only; it is gone before this returns."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem", encoding="ascii") as file:
        file.write(f"{certificate}\n{key}")
        file.flush()
        tls.load_cert_chain(file.name)
