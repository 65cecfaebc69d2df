"""A certificate authority for the fixture servers, and the bundle that pods trust."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from support.fixtures.httpd import Tls


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _san(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


@dataclass(frozen=True, slots=True)
class Authority:
    """A CA in a folder; `bundle` is its certificate in PEM form."""

    directory: Path

    @property
    def bundle(self) -> Path:
        """What clients trust."""
        return self.directory / "ca.crt"

    def issue(self, *names: str) -> Tls:
        """Issue a server certificate for DNS names and addresses, valid for a day."""
        authority = x509.load_pem_x509_certificate(self.bundle.read_bytes())
        signer = serialization.load_pem_private_key(
            (self.directory / "ca.key").read_bytes(), password=None
        )
        assert isinstance(signer, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        certificate = (
            _builder(names[0], authority.subject, key)
            .add_extension(x509.SubjectAlternativeName([_san(name) for name in names]), False)
            .add_extension(usages, False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), False
            )
            .sign(signer, hashes.SHA256())
        )
        stem = self.directory / names[0]
        crt, private = stem.with_suffix(".crt"), stem.with_suffix(".key")
        crt.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        private.write_bytes(_private(key))
        return Tls(certificate=crt, key=private, authority=self.bundle)


def make_authority(directory: Path) -> Authority:
    """Make a CA, valid for a day."""
    directory.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    subject = _name("fixture authority")
    certificate = (
        _builder("fixture authority", subject, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    (directory / "ca.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (directory / "ca.key").write_bytes(_private(key))
    return Authority(directory)


def _builder(
    subject: str, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(identifier, critical=False)
    )


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
