"""TLS of the runner API: an authority for ten years, a leaf for thirty days, in one Secret.

The chart creates the Secret `<release>-tls` empty; the leader fills and renews it (security.md §9),
every replica serves what it holds, pods mount `ca.crt`. Keys are ECDSA P-256. Made by `main`.
Where cert-manager fills it, in a Secret without `ca.key`, nobody here calls `ensure`.

    ca.crt, ca.key      the authority          tls.crt, tls.key      the leaf for the Service
"""

import base64
import ssl
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID

from upgraderun_operator.adapters.ports import Clock
from upgraderun_operator.answers import (
    Conflict,
    Denied,
    GetAnswer,
    KubeObject,
    NotFound,
    Ok,
    PutAnswer,
    Unknown,
)
from upgraderun_operator.resources import SECRETS, Resource

AUTHORITY_LIFE: Final = timedelta(days=3650)
LEAF_LIFE: Final = timedelta(days=30)
RENEW_BEFORE: Final = timedelta(days=10)
AUTHORITY_RENEW_BEFORE: Final = timedelta(days=60)
BACKDATED: Final = timedelta(minutes=5)
_SERVED: Final = ("ca.crt", "tls.crt", "tls.key")
_FIELDS: Final = (*_SERVED, "ca.key")


class CertificateError(Exception):
    """The Secret can't be read or written, or holds nothing to serve yet; the message says what."""


class Secrets(Protocol):
    """The part of the client that certificates need."""

    async def get(self, resource: Resource, namespace: str | None, name: str) -> GetAnswer:
        """Read one object."""
        ...

    async def put(self, resource: Resource, body: KubeObject) -> PutAnswer:
        """Replace one object."""
        ...


@dataclass(frozen=True, slots=True)
class ServingPair:
    """What a replica serves with: leaf and key, and the authority that pods trust. PEM."""

    certificate: bytes
    key: bytes
    authority: bytes

    def context(self) -> ssl.SSLContext:
        """Server context: TLS 1.2 or newer; `ssl` takes files only, so they live for a moment."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            file.write(self.certificate + self.key)
            file.flush()
            context.load_cert_chain(file.name)
        return context


class Certificates:
    """The Secret of one release; `hosts` are the names of the Service."""

    def __init__(
        self, client: Secrets, clock: Clock, namespace: str, name: str, hosts: Sequence[str]
    ) -> None:
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._name = name
        self._hosts = tuple(hosts)

    async def load(self) -> ServingPair:
        """Read what to serve. Raises CertificateError while a part is missing in the Secret."""
        data = _decoded(await self._read())
        missing = [field for field in _SERVED if not data[field]]
        if missing:
            place = f"Secret {self._namespace}/{self._name}"
            raise CertificateError(f"{place} isn't filled yet: no {', '.join(missing)}")
        return ServingPair(data["tls.crt"], data["tls.key"], data["ca.crt"])

    async def ensure(self) -> ServingPair:
        """Fill or renew the Secret where that is due, and read what to serve. Leader only.

        A lost race is fine: what the other wrote is served. Raises CertificateError.
        """
        raw = await self._read()
        data = _decoded(raw)
        fresh = renew(data, self._hosts, self._clock.now())
        if fresh == data:
            return ServingPair(data["tls.crt"], data["tls.key"], data["ca.crt"])
        encoded = {key: base64.b64encode(value).decode("ascii") for key, value in fresh.items()}
        match await self._client.put(SECRETS, {**raw, "data": encoded}):
            case Ok():
                return ServingPair(fresh["tls.crt"], fresh["tls.key"], fresh["ca.crt"])
            case Conflict():
                return await self.load()
            case NotFound() | Denied() | Unknown() as answer:
                raise CertificateError(f"Secret {self._namespace}/{self._name}: {answer}")

    async def _read(self) -> KubeObject:
        match await self._client.get(SECRETS, self._namespace, self._name):
            case Ok(raw):
                return raw
            case NotFound():
                raise CertificateError(
                    f"no Secret {self._namespace}/{self._name}; the chart creates it, or "
                    "cert-manager does"
                )
            case Denied() | Unknown() as answer:
                raise CertificateError(f"Secret {self._namespace}/{self._name}: {answer}")


def renew(data: Mapping[str, bytes], hosts: Sequence[str], now: datetime) -> dict[str, bytes]:
    """The Secret's content as it should be now: unchanged while everything is valid for long."""
    authority = _pair(data.get("ca.crt", b""), data.get("ca.key", b""))
    if authority is None or _ends(authority[0]) - now < AUTHORITY_RENEW_BEFORE:
        authority = _new_authority(now)
    leaf = _pair(data.get("tls.crt", b""), data.get("tls.key", b""))
    if leaf is None or not _serves(leaf[0], authority[0], hosts, now):
        leaf = _new_leaf(authority, hosts, now)
    return {
        "ca.crt": _pem(authority[0]),
        "ca.key": _key_pem(authority[1]),
        "tls.crt": _pem(leaf[0]),
        "tls.key": _key_pem(leaf[1]),
    }


_Pair = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def _decoded(raw: KubeObject) -> dict[str, bytes]:
    data = raw.get("data") or {}
    return {field: base64.b64decode(str(data.get(field, ""))) for field in _FIELDS}


def _pair(certificate: bytes, key: bytes) -> _Pair | None:
    """Parse a pair that we wrote; anything else counts as absent and is replaced."""
    try:
        parsed = x509.load_pem_x509_certificate(certificate)
        private = serialization.load_pem_private_key(key, password=None)
    except (ValueError, TypeError):
        return None
    if not isinstance(private, ec.EllipticCurvePrivateKey) or not _is_identified(parsed):
        return None
    return (parsed, private) if parsed.public_key() == private.public_key() else None


def _is_identified(certificate: x509.Certificate) -> bool:
    """Whether it names its key: what Python 3.13 and newer ask of every certificate they trust."""
    return any(e.oid == ExtensionOID.SUBJECT_KEY_IDENTIFIER for e in certificate.extensions)


def _ends(certificate: x509.Certificate) -> datetime:
    return certificate.not_valid_after_utc


def _serves(
    leaf: x509.Certificate, authority: x509.Certificate, hosts: Sequence[str], now: datetime
) -> bool:
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return (
        leaf.issuer == authority.subject
        and _signed_by(leaf, authority)
        and names.get_values_for_type(x509.DNSName) == list(hosts)
        and _ends(leaf) - now >= RENEW_BEFORE
    )


def _signed_by(leaf: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _new_authority(now: datetime) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("upgraderun-operator authority")
    certificate = (
        _builder(name, name, key, now, AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return certificate, key


def _new_leaf(authority: _Pair, hosts: Sequence[str], now: datetime) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority[1].public_key())
    certificate = (
        _builder(_name(hosts[0][:64]), authority[0].subject, key, now, LEAF_LIFE)
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(signer, critical=False)
        .sign(authority[1], hashes.SHA256())
    )
    return certificate, key


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    life: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
