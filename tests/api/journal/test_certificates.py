"""TLS of the runner API: filled, renewed, served, trusted (security.md H13)."""

import base64
import contextlib
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from clusterlib.apiserver import ApiServer
from support.replicas import Replica, Scene, serve
from upgraderun_operator.adapters.certificates import (
    CertificateError,
    Certificates,
    ServingPair,
    renew,
)
from upgraderun_operator.adapters.clock import SystemClock
from upgraderun_operator.answers import KubeObject, Ok, PutAnswer
from upgraderun_operator.resources import SECRETS, Resource

HOSTS = ("operator.upgraderun.svc", "localhost")
NOW = datetime(2026, 11, 30, tzinfo=UTC)


class TestRenewal:
    """Ten years for the authority, thirty days for the leaf; unchanged while both are good."""

    def test_an_empty_secret_is_filled(self) -> None:
        data = renew({}, HOSTS, NOW)
        leaf = x509.load_pem_x509_certificate(data["tls.crt"])
        authority = x509.load_pem_x509_certificate(data["ca.crt"])

        assert leaf.not_valid_after_utc == NOW + timedelta(days=30)
        assert authority.not_valid_after_utc == NOW + timedelta(days=3650)
        leaf.verify_directly_issued_by(authority)

    def test_nothing_changes_while_all_is_good(self) -> None:
        data = renew({}, HOSTS, NOW)

        assert renew(data, HOSTS, NOW + timedelta(days=19)) == data

    def test_a_leaf_is_renewed_under_the_same_authority(self) -> None:
        data = renew({}, HOSTS, NOW)
        later = renew(data, HOSTS, NOW + timedelta(days=21))

        assert later["ca.crt"] == data["ca.crt"]
        assert later["tls.crt"] != data["tls.crt"]

    def test_another_service_name_needs_another_leaf(self) -> None:
        data = renew({}, HOSTS, NOW)

        assert renew(data, ("other.svc",), NOW)["tls.crt"] != data["tls.crt"]

    def test_an_old_authority_takes_its_leaves_along(self) -> None:
        data = renew({}, HOSTS, NOW)
        later = renew(data, HOSTS, NOW + timedelta(days=3600))

        assert later["ca.crt"] != data["ca.crt"]
        assert later["tls.crt"] != data["tls.crt"]

    @pytest.mark.parametrize("field", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
    def test_what_doesn_t_fit_together_is_replaced(self, field: str) -> None:
        data, other = renew({}, HOSTS, NOW), renew({}, HOSTS, NOW)
        mixed = renew({**data, field: other[field]}, HOSTS, NOW)

        assert renew(mixed, HOSTS, NOW) == mixed

    def test_keys_of_another_kind_are_replaced(self) -> None:
        from cryptography.hazmat.primitives.asymmetric import ed25519

        key = ed25519.Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        data = renew({}, HOSTS, NOW)

        assert renew({**data, "tls.key": key}, HOSTS, NOW)["tls.key"] != key

    def test_a_strict_client_trusts_it(self, tmp_path: Path) -> None:
        """Python 3.13 and newer check by default what older ones leave out."""
        data = renew({}, HOSTS, datetime.now(UTC))
        for name in ("tls.crt", "tls.key"):
            (tmp_path / name).write_bytes(data[name])
        serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        serving.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
        asking = ssl.create_default_context(cadata=data["ca.crt"].decode())
        asking.verify_flags |= ssl.VERIFY_X509_STRICT

        assert "TLSv1.3" == shake_hands(asking, serving, HOSTS[0])

    def test_an_authority_that_no_strict_client_trusts_is_replaced(self) -> None:
        data = renew({}, HOSTS, NOW)
        old = x509.load_pem_x509_certificate(data["ca.crt"])
        key = serialization.load_pem_private_key(data["ca.key"], password=None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        nameless = (
            x509.CertificateBuilder()
            .subject_name(old.subject)
            .issuer_name(old.issuer)
            .public_key(old.public_key())
            .serial_number(old.serial_number)
            .not_valid_before(old.not_valid_before_utc)
            .not_valid_after(old.not_valid_after_utc)
            .sign(key, hashes.SHA256())
        )
        before = nameless.public_bytes(serialization.Encoding.PEM)

        assert before != renew({**data, "ca.crt": before}, HOSTS, NOW)["ca.crt"]


def shake_hands(asking: ssl.SSLContext, serving: ssl.SSLContext, host: str) -> str | None:
    """Connect both ends in memory; gives the protocol's version. Raises SSLError."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = asking.wrap_bio(down, up, server_hostname=host)
    server = serving.wrap_bio(up, down, server_side=True)
    for end in (client, server, client, server):
        with contextlib.suppress(ssl.SSLWantReadError):
            end.do_handshake()
    return client.version()


class TestSecret:
    """The chart creates it empty; the leader fills it; every replica serves what it holds."""

    async def certificates(self, scene: Scene, name: str = "release-tls") -> Certificates:
        await scene.create(
            SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
        )
        return Certificates(
            scene.replica.client, scene.replica.clock, scene.ref.namespace, name, HOSTS
        )

    async def test_a_follower_waits_for_the_leader(self, scene: Scene) -> None:
        certificates = await self.certificates(scene)
        with pytest.raises(CertificateError, match="isn't filled"):
            await certificates.load()

        filled = await certificates.ensure()

        assert await certificates.load() == filled
        assert await certificates.ensure() == filled

    async def test_what_cert_manager_wrote_is_served(self, scene: Scene) -> None:
        """It keeps the key of the authority to itself, and its Secret has a type of its own."""
        made = renew({}, HOSTS, datetime.now(UTC))
        parts = {key: base64.b64encode(made[key]).decode() for key in ("ca.crt", "tls.crt")}
        parts["tls.key"] = base64.b64encode(made["tls.key"]).decode()
        await scene.create(
            SECRETS,
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "issued-tls"},
                "type": "kubernetes.io/tls",
                "data": parts,
            },
        )
        certificates = Certificates(
            scene.replica.client, scene.replica.clock, scene.ref.namespace, "issued-tls", HOSTS
        )

        pair = await certificates.load()

        assert (made["tls.crt"], made["ca.crt"]) == (pair.certificate, pair.authority)

    async def test_an_issuer_that_names_no_authority_is_told(self, scene: Scene) -> None:
        made = renew({}, HOSTS, datetime.now(UTC))
        parts = {key: base64.b64encode(made[key]).decode() for key in ("tls.crt", "tls.key")}
        await scene.create(
            SECRETS,
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "acme-tls"},
                "data": parts,
            },
        )
        certificates = Certificates(
            scene.replica.client, scene.replica.clock, scene.ref.namespace, "acme-tls", HOSTS
        )

        with pytest.raises(CertificateError, match=r"isn't filled yet: no ca\.crt"):
            await certificates.load()

    async def test_no_secret_is_the_chart_s_fault(self, scene: Scene) -> None:
        nowhere = Certificates(
            scene.replica.client, scene.replica.clock, scene.ref.namespace, "nobody", HOSTS
        )

        with pytest.raises(CertificateError, match="the chart creates it"):
            await nowhere.ensure()

    async def test_a_lost_race_serves_what_the_winner_wrote(self, scene: Scene) -> None:
        certificates = await self.certificates(scene)
        late = Racing(scene.replica)
        second = Certificates(late, SystemClock(), scene.ref.namespace, "release-tls", HOSTS)

        mine = await second.ensure()

        assert mine == await certificates.load()


class Racing:
    """A client that is overtaken once between reading and writing."""

    def __init__(self, replica: Replica) -> None:
        self.get = replica.client.get
        self._client = replica.client

    async def put(self, resource: Resource, body: KubeObject) -> PutAnswer:
        winner = renew({}, HOSTS, datetime.now(UTC))
        encoded = {key: base64.b64encode(value).decode() for key, value in winner.items()}
        answer = await self._client.put(SECRETS, {**body, "data": encoded})
        assert isinstance(answer, Ok)
        return await self._client.put(SECRETS, body)


class TestServing:
    """TLS only, our authority only (H13)."""

    async def test_pods_trust_our_authority_and_nobody_else(
        self, cluster: ApiServer, tmp_path: Path
    ) -> None:
        data = renew({}, HOSTS, datetime.now(UTC))
        pair = ServingPair(data["tls.crt"], data["tls.key"], data["ca.crt"])
        trusting = ssl.create_default_context(cadata=data["ca.crt"].decode())
        async with serve(cluster, tmp_path / "store", tls=pair.context()) as replica:
            url = f"{replica.url.replace('127.0.0.1', 'localhost')}/runner/a/b/c/journal"
            async with replica.session.get(url, ssl=trusting) as answer:
                served = answer.status
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await replica.session.get(url, ssl=ssl.create_default_context())
            with pytest.raises(aiohttp.ClientError):
                await replica.session.get(url.replace("https", "http"))

        assert served == 401
