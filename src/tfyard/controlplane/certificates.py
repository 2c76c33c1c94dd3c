"""The certificate authority of one control plane.

kube-apiserver can sign its own serving certificate, but not those of its clients: a user of the cluster needs a
client certificate (common name = user, organisation = group), and that needs a CA key. The `openssl` command is
not on every machine, so this module, and no other, imports the `cryptography` package.
"""

import datetime
import ipaddress
from collections.abc import Iterable

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = datetime.timedelta(days=365)
"""Validity of certificates: longer than any control plane runs. The key of the CA is never written to disk."""


class KeyPair(msgspec.Struct, frozen=True):
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes


def new_key() -> ec.EllipticCurvePrivateKey:
    """A new P-256 key, in under a millisecond: RSA would take a good part of the start-up time."""
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def public_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def subject(common_name: str, groups: Iterable[str] = ()) -> x509.Name:
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


class CertificateAuthority:
    """Signs the serving certificates and a client certificate for each user."""

    def __init__(self) -> None:
        self._key = new_key()
        self._name = subject("tfyard control plane CA")
        builder = self._builder(self._name, self._key)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self._certificate = builder.sign(self._key, hashes.SHA256())
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    def client(self, user: str, groups: Iterable[str] = ()) -> KeyPair:
        key = new_key()
        builder = self._builder(subject(user, groups), key)
        return self._sign(builder, key, ExtendedKeyUsageOID.CLIENT_AUTH)

    def server(self, common_name: str, names: Iterable[str]) -> KeyPair:
        """A certificate for a server with these host names and addresses."""
        key = new_key()
        alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
        builder = self._builder(subject(common_name), key).add_extension(alternatives, False)
        return self._sign(builder, key, ExtendedKeyUsageOID.SERVER_AUTH)

    def _sign(
        self, builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, usage: x509.ObjectIdentifier
    ) -> KeyPair:
        certificate = builder.add_extension(x509.ExtendedKeyUsage([usage]), False).sign(
            self._key, hashes.SHA256()
        )
        return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), key_pem(key))

    def _builder(self, name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + LIFETIME)
            .add_extension(identifier, False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
