"""Settings of one operator process, read from the environment once, at start.

The chart sets them; `docs/settings.md` lists them. Only this module reads the environment.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from upgraderun_operator import limits
from upgraderun_protocol.limits import STATUS_SOFT_BYTES

PREFIX: Final = "UPGRADERUN_"


class SettingError(ValueError):
    """A setting is missing or no such value; the message names the variable and what it takes."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that an installation may choose.

    `watch_namespaces` empty: all. `tls_renew`: the leader fills and renews the certificate, nobody
    else does. `tls_names`: names and addresses that the certificate is for. `artifacts`: folder of the artifact store. `kubeconfig` None: the
    pod's own service account. Rates are per second and per process.
    """

    namespace: str
    identity: str
    service: str
    artifacts: Path
    watch_namespaces: tuple[str, ...]
    kubeconfig: Path | None
    api_host: str
    api_port: int
    metrics_port: int
    operator_url: str
    tls_secret: str
    tls_renew: bool
    tls_names: tuple[str, ...]
    lease_name: str
    allow_inline: bool
    worker_count: int
    write_rate: int
    write_burst: int
    lease_rate: int
    status_soft_bytes: int
    credential_secrets: tuple[str, ...]
    forge_ca: Path | None
    log_level: str


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read `UPGRADERUN_*`. Raises SettingError, which names the variable."""
    read = _Reader(environment)
    namespace = read.text("NAMESPACE")
    service = read.text("SERVICE", "upgraderun-operator")
    port = read.number("API_PORT", 8443, 0, 65535)
    return Settings(
        namespace=namespace,
        identity=read.text("IDENTITY"),
        service=service,
        artifacts=Path(read.text("ARTIFACTS", "/var/lib/upgraderun/artifacts")),
        watch_namespaces=read.names("WATCH_NAMESPACES"),
        kubeconfig=read.path("KUBECONFIG"),
        api_host=read.text("API_HOST", "0.0.0.0"),  # noqa: S104 - pods reach it through a Service
        api_port=port,
        metrics_port=read.number("METRICS_PORT", 8080, 0, 65535),
        operator_url=read.text("OPERATOR_URL", f"https://{service}.{namespace}.svc:{port}"),
        tls_secret=read.text("TLS_SECRET", f"{service}-tls"),
        tls_renew=read.flag("TLS_RENEW", default=True),
        tls_names=(f"{service}.{namespace}.svc", *read.names("TLS_NAMES")),
        lease_name=read.text("LEASE_NAME", "upgraderun-operator"),
        allow_inline=read.flag("ALLOW_INLINE", default=False),
        worker_count=read.number("WORKERS", limits.WORKERS, 1, 64),
        write_rate=read.number("WRITE_RATE", 200, 1, 10_000),
        write_burst=read.number("WRITE_BURST", 400, 1, 20_000),
        lease_rate=read.number("LEASE_RATE", 200, 1, 10_000),
        status_soft_bytes=read.number("STATUS_SOFT_BYTES", STATUS_SOFT_BYTES, 2048, 65_536),
        credential_secrets=read.names("CREDENTIAL_SECRETS"),
        forge_ca=read.path("FORGE_CA"),
        log_level=read.text("LOG_LEVEL", "INFO"),
    )


class _Reader:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def text(self, name: str, default: str | None = None) -> str:
        value = self._environment.get(PREFIX + name, "").strip()
        if value:
            return value
        if default is None:
            raise SettingError(f"{PREFIX}{name} is not set; the chart sets it")
        return default

    def path(self, name: str) -> Path | None:
        value = self.text(name, "")
        return Path(value) if value else None

    def names(self, name: str) -> tuple[str, ...]:
        parts = (part.strip() for part in self.text(name, "").split(","))
        return tuple(part for part in parts if part)

    def number(self, name: str, default: int, smallest: int, largest: int) -> int:
        text = self.text(name, str(default))
        if not (text.isascii() and text.isdigit() and smallest <= int(text) <= largest):
            raise SettingError(
                f"{PREFIX}{name} is {text[:32]!r}; it takes a whole number "
                f"from {smallest} to {largest}"
            )
        return int(text)

    def flag(self, name: str, *, default: bool) -> bool:
        text = self.text(name, "true" if default else "false").lower()
        if text not in {"true", "false"}:
            raise SettingError(f"{PREFIX}{name} is {text[:32]!r}; it takes true or false")
        return text == "true"
